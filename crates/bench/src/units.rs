//! Numbers for people: at most four characters and a unit.

/// Formats nanoseconds as `1.23 ms`.
#[must_use]
pub fn time(ns: u64) -> String {
    let ns = ns as f64;
    let (value, unit) = match ns {
        _ if ns < 1e3 => return format!("{ns:.0} ns"),
        _ if ns < 1e6 => (ns / 1e3, "µs"),
        _ if ns < 1e9 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    format!("{} {unit}", three_digits(value))
}

/// Formats bytes as `1.23 MB` (powers of 1000).
#[must_use]
pub fn bytes(bytes: u64) -> String {
    let bytes = bytes as f64;
    let (value, unit) = match bytes {
        _ if bytes < 1e3 => return format!("{bytes:.0} B"),
        _ if bytes < 1e6 => (bytes / 1e3, "KB"),
        _ if bytes < 1e9 => (bytes / 1e6, "MB"),
        _ if bytes < 1e12 => (bytes / 1e9, "GB"),
        _ => (bytes / 1e12, "TB"),
    };
    format!("{} {unit}", three_digits(value))
}

/// Formats a number as `12.3k`. A whole number below 1000 has no decimals.
#[must_use]
pub fn count(number: f64) -> String {
    match number {
        _ if number < 1e3 && number.fract() == 0.0 => format!("{number:.0}"),
        _ if number < 1e3 => three_digits(number),
        _ if number < 1e6 => format!("{}k", three_digits(number / 1e3)),
        _ if number < 1e9 => format!("{}M", three_digits(number / 1e6)),
        _ => format!("{}G", three_digits(number / 1e9)),
    }
}

/// Formats a number with three significant digits.
#[must_use]
pub fn three_digits(value: f64) -> String {
    match value.abs() {
        size if size < 9.995 => format!("{value:.2}"),
        size if size < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Parses a size: `64M`, `1GiB`, `4096`, `256 MB` (all in powers of 1024).
///
/// # Errors
/// If the text is not a size. The error says what was expected.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(split);
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(format!("{unit:?} is not a unit of size: B, K, M, G, T")),
    };
    let number: f64 = number.parse().map_err(|_| format!("{text:?} is not a size such as 64M"))?;
    let bytes = number * (1u64 << shift) as f64;
    if bytes > u64::MAX as f64 / 2.0 {
        return Err(format!("{text:?} is too large"));
    }
    Ok(bytes as u64)
}

/// Parses a count: `8M`, `50k`, `1000000` (powers of 1000).
///
/// # Errors
/// If the text is not a count.
pub fn parse_count(text: &str) -> Result<u64, String> {
    let trimmed = text.trim().replace('_', "");
    let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(split);
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        _ => return Err(format!("{unit:?} is not a unit of counts: k, M, G")),
    };
    let number: f64 = number.parse().map_err(|_| format!("{text:?} is not a count such as 8M"))?;
    let count = number * factor;
    if count > 1e15 {
        return Err(format!("{text:?} is too large"));
    }
    Ok(count as u64)
}

/// Checks the lengths of peaks and valleys.
///
/// # Errors
/// If a length is not a positive number. The error names the option.
pub fn check_bursts(peak_seconds: f64, valley_seconds: f64) -> Result<(), String> {
    for (option, seconds) in
        [("--peak-seconds", peak_seconds), ("--valley-seconds", valley_seconds)]
    {
        if !(seconds > 0.0 && seconds < 1e7) {
            return Err(format!("{option} must be a positive number of seconds"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(time(999), "999 ns");
        assert_eq!(time(1_234), "1.23 µs");
        assert_eq!(time(45_600_000), "45.6 ms");
        assert_eq!(time(2_000_000_000), "2.00 s");
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(123_456_789), "123 MB");
        assert_eq!(count(12_345.0), "12.3k");
        assert_eq!((count(22.0).as_str(), count(7.5).as_str()), ("22", "7.50"));
    }

    #[test]
    fn sizes_and_counts_are_understood_or_refused() {
        assert_eq!(parse_bytes("64M"), Ok(64 << 20));
        assert_eq!(parse_bytes("1.5 GiB"), Ok(3 << 29));
        assert_eq!(parse_bytes("4096"), Ok(4096));
        assert_eq!(parse_count("8M"), Ok(8_000_000));
        assert_eq!(parse_count("50_000"), Ok(50_000));
        for bad in ["", "M", "-1", "12Q", "1e30", "99999999T"] {
            assert!(parse_bytes(bad).is_err(), "{bad}");
        }
        for bad in ["", "k", "-5", "3x", "99999999G"] {
            assert!(parse_count(bad).is_err(), "{bad}");
        }
    }
}
