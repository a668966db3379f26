//! The sizes of values, as text.

use sateen_workload::ValueSize;

use crate::units::parse_bytes;

pub(super) fn parse_value_size(text: &str) -> std::result::Result<String, String> {
    value_size(text).map(|_| text.to_owned())
}

/// Parses `400`, `250-1000`, `nutanix` or `mixgraph`.
pub(super) fn value_size(text: &str) -> std::result::Result<ValueSize, String> {
    let number = |text: &str| {
        let bytes = parse_bytes(text)?;
        u32::try_from(bytes)
            .ok()
            .filter(|bytes| *bytes <= 1 << 30)
            .ok_or_else(|| format!("a value of {text} is larger than 1G"))
    };
    match text.to_ascii_lowercase().as_str() {
        "nutanix" => Ok(ValueSize::Nutanix),
        "mixgraph" => Ok(ValueSize::MIXGRAPH),
        range => match range.split_once('-') {
            None => Ok(ValueSize::Fixed(number(range)?)),
            Some((low, high)) => {
                let (low, high) = (number(low)?, number(high)?);
                if low > high {
                    return Err(format!("{text}: the range is reversed"));
                }
                Ok(ValueSize::Uniform(low, high))
            }
        },
    }
}
