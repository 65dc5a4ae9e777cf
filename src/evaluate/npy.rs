//! Reads arrays of NumPy (.npy, versions 1 to 3; numpy.lib.format): two axes of little-endian floats.

use std::path::Path;

use anyhow::{Context, ensure};

use super::pfm::Floats;
use stereod_core::picture::header;

pub fn read(path: &Path) -> anyhow::Result<Floats> {
    let named = || format!("cannot read {}", path.display());
    let content = header::read_file(path).with_context(named)?;
    parse(&content).with_context(named)
}

fn parse(bytes: &[u8]) -> anyhow::Result<Floats> {
    const DAMAGED: &str = "the file is no array of NumPy, or damaged";
    let rest = bytes.strip_prefix(b"\x93NUMPY").context(DAMAGED)?;
    // The length of the header has two bytes in version 1, and four later.
    let (version, rest) = rest.split_at_checked(2).context(DAMAGED)?;
    let of_length = if version[0] == 1 { 2 } else { 4 };
    let (length, rest) = rest.split_at_checked(of_length).context(DAMAGED)?;
    let length = length.iter().rev().fold(0, |length, &byte| length << 8 | usize::from(byte));
    let (header, data) = rest.split_at_checked(length).context(DAMAGED)?;
    let header = std::str::from_utf8(header).context(DAMAGED)?;
    let value = |key: &str| {
        let (_, value) = header.split_once(&format!("'{key}':"))?;
        Some(value.trim_start())
    };
    let is = |key: &str, due: &str| value(key).is_some_and(|value| value.starts_with(due));
    let bytes_each = match () {
        () if is("descr", "'<f4'") => 4,
        () if is("descr", "'<f8'") => 8,
        () => anyhow::bail!("the array has other values than <f4 and <f8: {}", header.trim_end()),
    };
    ensure!(is("fortran_order", "False"), "the array is stored column by column (fortran_order)");
    let shape = value("shape").and_then(|value| value.strip_prefix('(')?.split_once(')'));
    let sides = shape.context(DAMAGED)?.0.split(',').map(str::trim).filter(|side| !side.is_empty());
    let sides = sides.map(str::parse).collect::<Result<Vec<usize>, _>>().context(DAMAGED)?;
    let &[height, width] = &sides[..] else {
        anyhow::bail!("the array has {} axes; an image of one value a pixel has two", sides.len());
    };
    let values = width.checked_mul(height).filter(|values| *values > 0);
    ensure!(
        values.and_then(|values| values.checked_mul(bytes_each)) == Some(data.len()),
        "the array of {width}x{height} values has {} bytes",
        data.len()
    );
    let values = match bytes_each {
        4 => data.as_chunks().0.iter().map(|&four| f32::from_le_bytes(four)).collect(),
        _ => data.as_chunks().0.iter().map(|&eight| f64::from_le_bytes(eight) as f32).collect(),
    };
    Ok(Floats { width, height, values })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An array as numpy.save writes it.
    fn array(header: &str, data: &[u8]) -> Vec<u8> {
        let length = (header.len() as u16).to_le_bytes();
        [&b"\x93NUMPY\x01\x00"[..], &length, header.as_bytes(), data].concat()
    }

    const HEADER: &str = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }   \n";

    #[test]
    fn rows_come_from_above() {
        let data = [1.5_f32, -2.0].map(f32::to_le_bytes).concat();
        let whole = array(HEADER, &data);
        let Floats { width, height, values } = parse(&whole).unwrap();
        assert_eq!((width, height, values), (2, 1, vec![1.5, -2.0]));
        for length in 0..whole.len() {
            assert!(parse(&whole[..length]).is_err(), "{length} bytes");
        }
        let doubles = [1.5_f64, -2.0].map(f64::to_le_bytes).concat();
        let array8 = array(&HEADER.replace("f4", "f8"), &doubles);
        assert_eq!(parse(&array8).unwrap().values, [1.5, -2.0]);
        for (from, to, words) in [
            ("<f4", ">f4", "other values"),
            ("False", "True", "column by column"),
            ("(1, 2)", "(2,)", "1 axes"),
            ("(1, 2)", "(1, 3)", "3x1 values has 8 bytes"),
            ("(1, 2)", "(4294967296, 4294967296)", "has 8 bytes"),
        ] {
            let error = parse(&array(&HEADER.replace(from, to), &data)).err().unwrap().to_string();
            assert!(error.contains(words), "{words}: {error}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn any_bytes_are_read_or_refused(
            header in "\\{'descr': '<f[48]', 'fortran_order': False, 'shape': \\([0-9, ]{0,12}\\), \\}",
            data in prop::collection::vec(any::<u8>(), 0..40),
            cut in 0..100_usize,
        ) {
            let whole = array(&header, &data);
            let _ = parse(&whole[..cut.min(whole.len())]);
            if let Ok(floats) = parse(&whole) {
                prop_assert_eq!(floats.values.len(), floats.width * floats.height);
            }
        }
    }
}
