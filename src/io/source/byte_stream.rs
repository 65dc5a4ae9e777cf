//! Byte streams of H.264 and H.265 (Annex B of both standards).

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    H264,
    H265,
}

impl Codec {
    /// Returns the codec of a name by its first word: `h264`, `libx264`, `hevc_nvenc` or `h264;yuv420p`.
    pub fn of_words(name: &str) -> Option<Self> {
        let name = name.split([';', '_', ' ']).next()?.to_ascii_lowercase();
        match name.trim_start_matches("lib") {
            "h264" | "x264" | "avc" => Some(Self::H264),
            "h265" | "x265" | "hevc" => Some(Self::H265),
            _ => None,
        }
    }

    /// Returns the codec of a byte stream that begins with a delimiter or a parameter set, as the first unit
    /// that can be decoded does; `None` for other bytes.
    pub fn of_stream(stream: &[u8]) -> Option<Self> {
        match *stream.get(start_code(stream)?..)?.first()? {
            // ITU-T H.265, 7.3.1.2: a bit of 0, six bits of type (32 to 35), the upper bit of the layer.
            0x40 | 0x42 | 0x44 | 0x46 => Some(Self::H265),
            // ITU-T H.264, 7.3.1: a bit of 0, two bits of importance, five bits of type.
            header if matches!(header & 0x9f, 7..=9) => Some(Self::H264),
            _ => None,
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::H264 => "h264",
            Self::H265 => "h265",
        })
    }
}

/// Returns the length of the start code at the beginning of a byte stream (Annex B of both standards).
pub fn start_code(stream: &[u8]) -> Option<usize> {
    let zeros = stream.iter().take_while(|byte| **byte == 0).count();
    (zeros >= 2 && stream.get(zeros) == Some(&1)).then_some(zeros + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_formats_and_encoders() {
        for (name, codec) in [
            ("h264", Some(Codec::H264)),
            ("libx264", Some(Codec::H264)),
            ("h264;yuv420p;bgr8;bgr8", Some(Codec::H264)),
            ("hevc_nvenc", Some(Codec::H265)),
            ("H265", Some(Codec::H265)),
            ("jpeg", None),
            ("bayer_rggb8; png compressed ", None),
            ("vp9", None),
            ("", None),
        ] {
            assert_eq!(Codec::of_words(name), codec, "{name}");
        }
    }

    #[test]
    fn the_first_unit_tells_the_codec() {
        for (stream, codec) in [
            (&[0, 0, 0, 1, 0x67, 9][..], Some(Codec::H264)),
            (&[0, 0, 1, 0x09], Some(Codec::H264)),
            (&[0, 0, 0, 1, 0x40, 1], Some(Codec::H265)),
            (&[0, 0, 0, 0, 1, 0x46], Some(Codec::H265)),
            // Slices, no start code, and no end of one.
            (&[0, 0, 1, 0x41], None),
            (&[0, 0, 1, 0x26], None),
            (&[0, 1, 0x67], None),
            (&[0, 0, 1], None),
            (&[0, 0], None),
        ] {
            assert_eq!(Codec::of_stream(stream), codec, "{stream:?}");
        }
    }
}
