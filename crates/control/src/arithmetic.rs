//! Whole numbers that scheduling reckons with: rates, parts, averages.

use std::time::Duration;

pub(crate) const NS_PER_SECOND: u64 = 1_000_000_000;

/// `value * by / of`, without overflow. 0 counts as 1 in `of`.
pub(crate) fn scale(value: u64, by: u64, of: u64) -> u64 {
    let scaled = u128::from(value) * u128::from(by) / u128::from(of.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// `whole * part`, rounded up, for parts from 0 to 1.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a rounding error of a limit does not matter, and the cast back saturates"
)]
pub(crate) fn part_of(whole: u64, part: f64) -> u64 {
    (whole as f64 * part).ceil() as u64
}

/// Bytes a second, if there were `bytes` in `over_ns`.
pub(crate) fn per_second(bytes: u64, over_ns: u64) -> u64 {
    scale(bytes, NS_PER_SECOND, over_ns)
}

/// An average after it was `now` for `over_ns`: one that follows within `time_ns`.
pub(crate) fn follow(average: u64, now: u64, over_ns: u64, time_ns: u64) -> u64 {
    let step = scale(now.abs_diff(average), over_ns.min(time_ns), time_ns);
    if now > average { average.saturating_add(step) } else { average.saturating_sub(step) }
}

pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

pub(crate) fn to_i64(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Spreads numbers that follow each other: a choice that is random enough, and the same each time.
pub(crate) fn mix(n: u64) -> u64 {
    let n = (n ^ (n >> 31)).wrapping_mul(0x7FB5_D329_728E_A185);
    (n ^ (n >> 27)).wrapping_mul(0x81DA_DEF4_BC2D_D44D)
}
