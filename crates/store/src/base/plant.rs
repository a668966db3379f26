//! Bugs that engines of this kind have had, each of them where it would be: compiled in with
//! `--cfg plant` and picked at run time by the environment variable `SATEEN_PLANT`. The suites must
//! find every one (`cargo xtask rel planted`, docs/decisions/0017-planted-bugs.md).
//!
//! What must stay true: without the cfg nothing of them is compiled; and the names that are asked
//! for here are those that the suite has, which it checks.

/// Whether the bug `name` is to be there.
#[cfg(not(plant))]
#[inline(always)]
pub const fn planted(_name: &'static str) -> bool {
    false
}

/// Whether the bug `name` is to be there.
#[cfg(plant)]
pub fn planted(name: &'static str) -> bool {
    static PICKED: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    PICKED.get_or_init(|| std::env::var("SATEEN_PLANT").ok()).as_deref() == Some(name)
}
