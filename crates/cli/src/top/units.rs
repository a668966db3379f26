//! Numbers in a few characters.

/// Returns a number with at most four digits and a unit of thousands.
pub(crate) fn count(number: u64) -> String {
    scaled(number, 1000, &["", "k", "M", "G", "T"])
}

/// Returns bytes with at most four digits and a unit.
pub(crate) fn size(bytes: u64) -> String {
    scaled(bytes, 1024, &[" B", " K", " M", " G", " T", " P", " E"])
}

fn scaled(number: u64, step: u64, units: &[&str]) -> String {
    let mut whole = number as f64;
    let mut units = units.iter();
    let mut unit = units.next().copied().unwrap_or_default();
    let limit = if step == 1000 { 9999.5 } else { 999.5 };
    for next in units {
        if whole < limit {
            break;
        }
        whole /= step as f64;
        unit = next;
    }
    let is_whole = (whole - whole.round()).abs() < 0.05;
    if whole < 9.95 && !is_whole {
        format!("{whole:.1}{unit}")
    } else {
        format!("{whole:.0}{unit}")
    }
}

/// Returns a time with at most four digits and a unit.
pub(crate) fn time(ns: u64) -> String {
    let of = |unit_ns: f64, unit: &str| {
        let value = ns as f64 / unit_ns;
        if value < 9.95 { format!("{value:.1} {unit}") } else { format!("{value:.0} {unit}") }
    };
    match ns {
        0 => "0".to_owned(),
        1..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => of(1e3, "µs"),
        1_000_000..1_000_000_000 => of(1e6, "ms"),
        1_000_000_000..6_000_000_000_000 => of(1e9, "s"),
        _ => of(60e9, "min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_short() {
        for (number, text) in
            [(0, "0"), (999, "999"), (9999, "9999"), (10_000, "10k"), (12_345_678, "12M")]
        {
            assert_eq!(count(number), text);
        }
        for (bytes, text) in
            [(0, "0 B"), (1000, "1 K"), (1536, "1.5 K"), (200 << 20, "200 M"), (u64::MAX, "16 E")]
        {
            assert_eq!(size(bytes), text);
        }
        for (ns, text) in [
            (0, "0"),
            (900, "900 ns"),
            (1500, "1.5 µs"),
            (25_000_000, "25 ms"),
            (90_000_000_000, "90 s"),
        ] {
            assert_eq!(time(ns), text);
        }
        assert!(
            [u64::MAX, 1 << 40, 999_499]
                .into_iter()
                .all(|n| count(n).len() <= 9 && size(n).len() <= 6)
        );
    }
}
