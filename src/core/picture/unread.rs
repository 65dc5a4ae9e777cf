//! Intact images that are not read. Each is named with a command that converts it, of programs that Debian has.

/// Why an intact image is not read, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unread(String);

impl Unread {
    /// The image has a format or coding that is not read; `command` converts it.
    pub(super) fn kind(kind: &str, command: &str) -> Self {
        Self(format!("{kind} is not read; convert it: `{command}`"))
    }

    /// The file has more than one image; `command` splits it.
    pub(super) fn several(content: &str, command: &str) -> Self {
        Self(format!(
            "it holds {content}, and only files of one picture are read; split it: `{command}`"
        ))
    }

    pub(super) fn other(why: String) -> Self {
        Self(why)
    }
}

/// Command for everything that ImageMagick reads as one image or several.
const CONVERT: &str = "convert IN -coalesce OUT.png";
const HEIF: &str = "heif-convert IN OUT.png";
const JXL: &str = "djxl IN OUT.png";
pub(super) const RAW: &str = "the raw picture of a camera";
/// Writes IN.tiff, 16 bits.
pub(super) const DEVELOP: &str = "dcraw -T -6 IN";
const DPX: &str =
    "ffmpeg -start_number 1001 -i shot.%04d.dpx -start_number 1001 -pix_fmt rgb48be shot.%04d.png";

/// Position and bytes that identify a format, its name and the command that converts it.
const FORMATS: [(usize, &[u8], &str, &str); 28] = [
    // Both orders of bytes.
    (0, b"SDPX", "DPX", DPX),
    (0, b"XPDS", "DPX", DPX),
    (0, b"GIF87a", "GIF", CONVERT),
    (0, b"GIF89a", "GIF", CONVERT),
    (8, b"WEBP", "WebP", CONVERT),
    (0, b"8BPS", "PSD", "convert 'IN[0]' OUT.png"),
    (0, b"#?RADIANCE", "Radiance HDR", "convert IN -depth 16 OUT.png"),
    (0, b"PF\n", "PFM as a view", "convert IN -depth 16 OUT.png"),
    (0, b"Pf\n", "PFM as a view", "convert IN -depth 16 OUT.png"),
    (0, b"\0\0\0\x0cjP  ", "JPEG 2000", "opj_decompress -i IN -o OUT.png"),
    (0, b"\xff\x4f\xff\x51", "JPEG 2000", "opj_decompress -i IN -o OUT.png"),
    (0, b"\xff\x0a", "JPEG XL", JXL),
    (0, b"\0\0\0\x0cJXL ", "JPEG XL", JXL),
    (4, b"ftypavif", "AVIF", HEIF),
    (4, b"ftypavis", "AVIF", HEIF),
    (4, b"ftypheic", "HEIC", HEIF),
    (4, b"ftypheix", "HEIC", HEIF),
    (4, b"ftypheim", "HEIC", HEIF),
    (4, b"ftypmif1", "HEIF", HEIF),
    // Raw files of Canon, Fujifilm, Olympus, Panasonic, Sigma and Minolta; those of others are TIFF.
    (4, b"ftypcrx ", RAW, "darktable-cli IN OUT.png"),
    (8, b"CR\x02\0", RAW, DEVELOP),
    (0, b"FUJIFILMCCD-RAW", RAW, DEVELOP),
    (0, b"IIRO", RAW, DEVELOP),
    (0, b"IIRS", RAW, DEVELOP),
    (0, b"MMOR", RAW, DEVELOP),
    (0, b"IIU\0", RAW, DEVELOP),
    (0, b"FOVb", RAW, DEVELOP),
    (0, b"\0MRM", RAW, DEVELOP),
];

/// Returns the reason why an image of this content is not read, if it begins like a known format that is not.
pub fn by_first_bytes(content: &[u8]) -> Option<Unread> {
    let begins = |at: usize, magic: &[u8]| content.get(at..).is_some_and(|c| c.starts_with(magic));
    let (.., kind, command) = FORMATS.iter().find(|(at, magic, ..)| begins(*at, magic))?;
    Some(Unread::kind(kind, command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_named_with_a_command() {
        for (content, kind, program) in [
            (&b"RIFF\x10\0\0\0WEBPVP8X"[..], "WebP", "convert"),
            (b"GIF89a\x01\0", "GIF", "convert"),
            (b"\0\0\0\x20ftypheic", "HEIC", "heif-convert"),
            (b"II*\0\x10\0\0\0CR\x02\0", "raw picture", "dcraw"),
            (b"\xff\x0a\0", "JPEG XL", "djxl"),
            (b"Pf\n3 2\n-1\n", "PFM", "convert"),
        ] {
            let told = by_first_bytes(content).unwrap().to_string();
            assert!(told.contains(kind) && told.contains(&format!("`{program} ")), "{told}");
        }
        for content in [&b"II*\0\x08\0\0\0"[..], b"\x89PNG\r\n", b"\0\0\0\x20ftypisom", b"", b"P"] {
            assert!(by_first_bytes(content).is_none(), "{content:?}");
        }
    }
}
