//! The memtable against a sorted map, alone and with many threads.
