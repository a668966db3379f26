//! The real engine in virtual time on a modelled device: from one seed come options, device,
//! clients, faults and power failures; every answer is compared with a model, and each run ends in
//! rest. One in a hundred is done twice and must be the same call by call.
//!
//! A run is a list of operations. When one fails, operations are left out of its list while it
//! still fails, and what remains is printed. `SATEEN_SIM_SEED=<n>` replays a seed.
#![expect(clippy::unwrap_used, reason = "a test stops when its own set-up is wrong")]

mod act;
#[path = "../../../engine/tests/it/common.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod common;
#[path = "../../../engine/tests/it/meta/draw.rs"]
mod draw;
mod end;
#[path = "../../../engine/tests/it/meta/model.rs"]
mod model;
mod plan;
#[path = "../../../engine/tests/it/process.rs"]
mod process;
#[path = "../../../engine/tests/it/rel.rs"]
#[allow(dead_code, reason = "other suites use the rest")]
mod rel;
mod seeds;
mod world;
