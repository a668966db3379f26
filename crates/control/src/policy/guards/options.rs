//! The options of the policy with guards.

/// How fragmented levels are kept.
#[derive(Clone, Debug, PartialEq)]
pub struct GuardsOptions {
    /// Runs of a level that share keys from which on they go down, or are merged in the deepest
    /// level. At least 2.
    pub runs: u32,
}

impl Default for GuardsOptions {
    fn default() -> GuardsOptions {
        GuardsOptions { runs: 8 }
    }
}
