//! Several logs: what is replayed after a crash is one prefix, and damage is told from loss.
