//! Numbers in calibration files.

/// Formats a number with all its digits and always a point, because some readers of YAML take
/// `1e-7` for a text.
pub(super) fn digits(value: f64) -> String {
    let text = format!("{value:?}");
    match text.split_once('e') {
        Some((mantissa, exponent)) if !mantissa.contains('.') => format!("{mantissa}.0e{exponent}"),
        _ => text,
    }
}

/// Joins numbers with commas.
pub(super) fn joined(values: &[f64]) -> String {
    values.iter().map(|value| digits(*value)).collect::<Vec<_>>().join(", ")
}
