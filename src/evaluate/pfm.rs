//! Portable float maps, a format for published disparities (<https://www.pauldebevec.com/Research/HDR/PFM/>).

use std::path::Path;

use anyhow::{Context, bail, ensure};

use stereod_core::memory::product;
use stereod_core::picture::header;

/// An image of one float per pixel.
#[derive(Debug, PartialEq)]
pub struct Floats {
    pub width: usize,
    pub height: usize,
    /// Every value, row by row, top row first.
    pub values: Vec<f32>,
}

/// Reads a PFM file; the first channel if it is in colour (`PF`).
pub fn read(path: &Path) -> anyhow::Result<Floats> {
    let named = || format!("cannot read {}", path.display());
    let content = header::read_file(path).with_context(named)?;
    parse(&content).with_context(named)
}

fn parse(content: &[u8]) -> anyhow::Result<Floats> {
    let mut rest = content;
    let channels = match line(&mut rest).trim_ascii() {
        b"Pf" => 1,
        b"PF" => 3,
        _ => bail!("it is no PFM file"),
    };
    let mut size = line(&mut rest);
    while size.starts_with(b"#") {
        size = line(&mut rest);
    }
    let words = |line| std::str::from_utf8(line).unwrap_or_default().split_ascii_whitespace();
    let numbers: Vec<usize> = words(size).map_while(|word| word.parse().ok()).collect();
    let &[width, height] = numbers.as_slice() else {
        bail!("its second line does not tell width and height");
    };
    let scale: Option<f64> = words(line(&mut rest)).next().and_then(|word| word.parse().ok());
    let scale = scale.context("its third line is no number")?;
    ensure!(width > 0 && height > 0, "it has no pixels ({width}x{height})");
    let bytes = product([width, height, channels, size_of::<f32>()]);
    ensure!(
        bytes <= rest.len() as u64,
        "it was cut off: {width}x{height} pixels are {bytes} bytes, and {} are there",
        rest.len()
    );
    // The sign gives the order of bytes; the magnitude has no use.
    let number = if scale < 0.0 { f32::from_le_bytes } else { f32::from_be_bytes };
    let (samples, _) = rest[..bytes as usize].as_chunks();
    let rows = samples.chunks_exact(width * channels).rev();
    let values = rows.flat_map(|row| row.iter().step_by(channels).map(|&sample| number(sample)));
    Ok(Floats { width, height, values: values.collect() })
}

fn line<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let end = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
    let (line, after) = rest.split_at(end);
    *rest = after.get(1..).unwrap_or_default();
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(head: &str, values: &[f32], bytes: fn(f32) -> [u8; 4]) -> Vec<u8> {
        head.bytes().chain(values.iter().flat_map(|&value| bytes(value))).collect()
    }

    #[test]
    fn rows_come_from_the_bottom_in_either_order_of_bytes() {
        let values = [4.0, 5.5, f32::INFINITY, 1.0, 2.0, 3.0];
        let expected =
            Floats { width: 3, height: 2, values: vec![1.0, 2.0, 3.0, 4.0, 5.5, f32::INFINITY] };
        let little = file("Pf\n3 2\n-0.0039\n", &values, f32::to_le_bytes);
        assert_eq!(parse(&little).unwrap(), expected);
        let big = file("Pf\r\n# made by hand\n3 2 \n1\n", &values, f32::to_be_bytes);
        assert_eq!(parse(&big).unwrap(), expected);
        let colours: Vec<f32> = values.iter().flat_map(|&value| [value, 7.0, 8.0]).collect();
        assert_eq!(parse(&file("PF\n3 2\n-1\n", &colours, f32::to_le_bytes)).unwrap(), expected);
    }

    #[test]
    fn what_is_no_map_is_told() {
        for (content, part) in [
            (&b""[..], "no PFM"),
            (b"P5\n1 1\n255\n1", "no PFM"),
            (b"Pf\n", "width and height"),
            (b"Pf\n1\n-1\n....", "width and height"),
            (b"Pf\n1 -1\n-1\n....", "width and height"),
            (b"Pf\n1 1\nx\n....", "no number"),
            (b"Pf\n0 4\n-1\n....", "no pixels"),
            (b"Pf\n1 2\n-1\n....", "cut off: 1x2 pixels are 8 bytes, and 4 are there"),
            (b"Pf\n9999999999 9999999999\n-1\n....", "cut off"),
        ] {
            let error = parse(content).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        assert!(parse(&[b'#'; 100]).is_err());
    }

    #[test]
    fn damaged_files_are_no_more_than_errors() {
        let whole = file("PF\n2 2\n-1\n", &[1.0; 12], f32::to_le_bytes);
        for length in 0..whole.len() {
            assert!(parse(&whole[..length]).is_err(), "{length}");
        }
        for at in 0..12 {
            for byte in 0..=255 {
                let mut damaged = whole.clone();
                damaged[at] = byte;
                if let Ok(map) = parse(&damaged) {
                    assert_eq!(map.values.len(), map.width * map.height);
                }
            }
        }
    }
}
