//! Planted bugs: bugs that engines of this kind have had, each where it would occur. They are
//! compiled in with `--cfg plant`, and the environment variable `SATEEN_PLANT` picks one. The
//! suites must find every one (`cargo xtask rel planted`, docs/decisions/0017-planted-bugs.md).
//!
//! What must stay true: without the cfg, no planted bug is compiled. The suite's list has exactly
//! the names that the code asks for, which the suite checks.

/// Returns true if the bug `name` is to be present.
#[cfg(not(plant))]
#[inline(always)]
pub const fn planted(_name: &'static str) -> bool {
    false
}

/// Returns true if the bug `name` is to be present.
#[cfg(plant)]
pub fn planted(name: &'static str) -> bool {
    static PICKED: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    PICKED.get_or_init(|| std::env::var("SATEEN_PLANT").ok()).as_deref() == Some(name)
}
