//! Modes of a camera: pixel formats, sizes and rates.

use std::fmt;

/// Readable pixel formats, in order of preference: uncompressed ones by their size, then compressed ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// 8-bit intensity.
    Grey,
    /// Luma plane, then chroma of a quarter of the resolution.
    Nv12,
    /// Luma and chroma in turn, luma first.
    Yuyv,
    /// Luma and chroma in turn, chroma first.
    Uyvy,
    /// 16-bit intensity, lowest byte first; many cameras fill only the lower 10 or 12 bits.
    Y16,
    /// 8-bit intensity of two views, their pixels in turn.
    Y8i,
    /// 10-bit intensity of two views, their pixels in turn, 3 bytes for both.
    Y12i,
    Mjpg,
    H264,
}

impl Format {
    pub const ALL: [Format; 9] = [
        Format::Grey,
        Format::Nv12,
        Format::Yuyv,
        Format::Uyvy,
        Format::Y16,
        Format::Y8i,
        Format::Y12i,
        Format::Mjpg,
        Format::H264,
    ];

    /// Returns V4L2's name and the bytes a pixel of a view, if it is uncompressed.
    fn row(self) -> (&'static str, Option<f64>) {
        match self {
            Format::Grey => ("GREY", Some(1.0)),
            Format::Nv12 => ("NV12", Some(1.5)),
            Format::Yuyv => ("YUYV", Some(2.0)),
            Format::Uyvy => ("UYVY", Some(2.0)),
            Format::Y16 => ("Y16", Some(2.0)),
            Format::Y8i => ("Y8I", Some(1.0)),
            Format::Y12i => ("Y12I", Some(1.5)),
            Format::Mjpg => ("MJPG", None),
            Format::H264 => ("H264", None),
        }
    }

    /// Returns the format of a V4L2 code; `None` if it is not readable.
    pub fn of_code(code: [u8; 4]) -> Option<Self> {
        let name = if code == *b"JPEG" { "MJPG".to_owned() } else { code_text(code) };
        Self::ALL.into_iter().find(|format| format.row().0 == name)
    }

    pub(super) fn code(self) -> [u8; 4] {
        let mut code = *b"    ";
        let name = self.row().0.as_bytes();
        code[..name.len()].copy_from_slice(name);
        code
    }

    /// Number of views in a frame: 2 if their pixels are interleaved.
    pub fn views(self) -> u32 {
        if matches!(self, Format::Y8i | Format::Y12i) { 2 } else { 1 }
    }

    /// Bytes a pixel; `None` for compressed formats.
    pub fn bytes_per_pixel(self) -> Option<f64> {
        self.row().1
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().0)
    }
}

/// Frames per second as a fraction, as drivers state them: 30/1, 30000/1001.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Frames ...
    pub frames: u32,
    /// ... in this many seconds; above 0.
    pub seconds: u32,
}

impl Rate {
    pub fn whole(frames: u32) -> Self {
        Self { frames, seconds: 1 }
    }

    pub fn value(self) -> f64 {
        f64::from(self.frames) / f64::from(self.seconds)
    }

    /// Reports whether two rates are equal for users: 29.97 is 30.
    pub fn is_about(self, other: f64) -> bool {
        (self.value() - other).abs() <= 0.01 * other
    }
}

/// Frames per second: "30", "29.97".
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:.2}", self.value());
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Mode {
    /// V4L2's code of the pixel format, such as `YUYV`.
    pub code: [u8; 4],
    pub width: u32,
    pub height: u32,
    /// Frames per second, the fastest first.
    pub rates: Vec<Rate>,
}

impl Mode {
    pub fn format(&self) -> Option<Format> {
        Format::of_code(self.code)
    }

    pub fn size(&self) -> (u32, u32) {
        (self.width, self.height)
    }
}

pub fn code_text(code: [u8; 4]) -> String {
    String::from_utf8_lossy(&code).trim_end().to_owned()
}

/// Common sizes, for cameras with any size within a range.
const USUAL_SIZES: [(u32, u32); 10] = [
    (320, 240),
    (640, 360),
    (640, 480),
    (752, 480),
    (800, 600),
    (1280, 720),
    (1280, 800),
    (1280, 960),
    (1920, 1080),
    (2560, 720),
];

/// Returns the common sizes within a range, `(least, largest, step)` of width and of height in
/// pixels, and the largest one.
pub(super) fn sizes_within(
    width: (u32, u32, u32),
    height: (u32, u32, u32),
) -> impl Iterator<Item = (u32, u32)> {
    let on_grid = |(least, largest, step): (u32, u32, u32), side: u32| {
        (least..=largest).contains(&side) && (side - least).is_multiple_of(step.max(1))
    };
    let usual =
        USUAL_SIZES.into_iter().filter(move |&(w, h)| on_grid(width, w) && on_grid(height, h));
    let largest = (width.1, height.1);
    usual.chain((!USUAL_SIZES.contains(&largest)).then_some(largest))
}

/// Common rates, for cameras with any rate within a range of frames per second.
pub(super) fn rates_within(least: f64, largest: f64) -> Vec<Rate> {
    const USUAL: [u32; 10] = [120, 100, 90, 60, 50, 30, 25, 20, 15, 10];
    USUAL
        .into_iter()
        .filter(|&rate| (least..=largest).contains(&f64::from(rate)))
        .map(Rate::whole)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_names_agree() {
        for format in Format::ALL {
            assert_eq!(Format::of_code(format.code()), Some(format));
        }
        assert_eq!(Format::of_code(*b"RGB3"), None);
        assert_eq!(code_text(*b"Y8  "), "Y8");
    }

    #[test]
    fn rates_are_told_as_people_write_them() {
        assert_eq!(Rate::whole(30).to_string(), "30");
        let ntsc = Rate { frames: 30000, seconds: 1001 };
        assert_eq!(ntsc.to_string(), "29.97");
        assert!(ntsc.is_about(30.0) && !Rate::whole(25).is_about(30.0));
        assert_eq!(Rate { frames: 15, seconds: 2 }.to_string(), "7.5");
    }

    #[test]
    fn ranges_become_usual_sizes_and_rates() {
        let sizes: Vec<_> = sizes_within((16, 1000, 16), (16, 800, 16)).collect();
        assert_eq!(sizes, [(320, 240), (640, 480), (752, 480), (1000, 800)]);
        assert_eq!(rates_within(12.5, 30.0), [30, 25, 20, 15].map(Rate::whole));
    }
}
