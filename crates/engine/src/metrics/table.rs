//! placeholder
pub(crate) fn prometheus_text(_: &super::Metrics) -> String {
    String::new()
}
