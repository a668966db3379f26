//! The real engine in virtual time on a modelled device. A seed determines options, device,
//! clients, faults and power failures. Every answer is compared with a model, and each run ends at
//! rest. One run in a hundred is repeated and must make the same calls.
//!
//! A run is a list of operations. If it fails, operations are removed while it still fails, and the
//! rest is printed. `SATEEN_SIM_SEED=<n>` replays a seed.
#![expect(clippy::unwrap_used, reason = "a test stops when its own set-up is wrong")]

mod act;
#[path = "../../../engine/tests/it/model/meta/draw.rs"]
mod draw;
mod end;
#[path = "../../../engine/tests/it/model/meta/model.rs"]
mod model;
mod plan;
mod seeds;
#[path = "../../../engine/tests/it/support"]
#[allow(dead_code, reason = "other tests use the rest")]
mod support {
    pub(crate) mod common;
    pub(crate) mod process;
    pub(crate) mod rel;
}
mod world;
