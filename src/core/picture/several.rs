//! Files with more than one image: animated PNG and joined PNM.

use std::io::Cursor;

use image::ImageDecoder;
use image::codecs::pnm::{PnmDecoder, PnmSubtype, SampleEncoding};

use super::unread::Unread;

/// Iterates over the whole chunks of a PNG file: kind and data (ISO/IEC 15948, 5.3).
pub(super) fn chunks(content: &[u8]) -> impl Iterator<Item = (&[u8; 4], &[u8])> {
    let mut rest = content.get(8..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let (kind, after) = after.split_first_chunk::<4>()?;
        let length = u32::from_be_bytes(*length) as usize;
        let (data, after) = after.split_at_checked(length)?;
        // Behind the data stands its check value.
        rest = after.get(4..)?;
        Some((kind, data))
    })
}

/// Fails if a PNG file is an animation (third edition of PNG, 11.3.4.1).
pub(super) fn check_png(content: &[u8]) -> Result<(), Unread> {
    let control = chunks(content).take_while(|(kind, _)| *kind != b"IDAT");
    let frames = control.filter(|(kind, _)| *kind == b"acTL");
    let frames = frames.filter_map(|(_, data)| data.first_chunk().copied());
    match frames.map(u32::from_be_bytes).max() {
        Some(frames @ 2..) => Err(Unread::several(
            &format!("an animation of {frames} pictures"),
            "ffmpeg -f apng -i IN.png OUT-%03d.png",
        )),
        _ => Ok(()),
    }
}

/// Fails if another image follows in a PNM file. Content with an unreadable header passes, because the decoder
/// reports it.
pub(super) fn check_pnm(content: &[u8]) -> Result<(), Unread> {
    let mut pictures = 0_usize;
    let mut rest = content;
    while let Some(length) = pnm_length(rest) {
        pictures += 1;
        rest = rest.get(length..).unwrap_or_default().trim_ascii_start();
    }
    if pictures < 2 {
        return Ok(());
    }
    Err(Unread::several(&format!("{pictures} pictures"), "convert IN.pgm OUT-%03d.png"))
}

/// Returns the length of the PNM image at the start of `content`, if there is one.
fn pnm_length(content: &[u8]) -> Option<usize> {
    if !matches!(content, [b'P', b'1'..=b'7', space, ..] if space.is_ascii_whitespace() || *space == b'#')
    {
        return None;
    }
    let decoder = PnmDecoder::new(Cursor::new(content)).ok()?;
    let ((width, height), bytes) = (decoder.dimensions(), decoder.total_bytes());
    let (reader, header) = decoder.into_inner();
    let begin = reader.position() as usize;
    let raster = match header.subtype() {
        // Digits only, up to the next image.
        PnmSubtype::Bitmap(SampleEncoding::Ascii)
        | PnmSubtype::Graymap(SampleEncoding::Ascii)
        | PnmSubtype::Pixmap(SampleEncoding::Ascii) => {
            let raster = content.get(begin..)?;
            return Some(begin + raster.iter().position(|&b| b == b'P').unwrap_or(raster.len()));
        }
        PnmSubtype::Bitmap(SampleEncoding::Binary) => {
            u64::from(width).div_ceil(8) * u64::from(height)
        }
        _ => bytes,
    };
    begin.checked_add(usize::try_from(raster).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_pictures_are_counted() {
        let one: [&[u8]; 5] = [
            b"P5\n2 1\n255\n\x05P",
            b"P6 1 1 65535\n123456",
            b"P4\n9 2\n\x01\x02\x03\x04",
            b"P2\n# P5 in a comment of the header\n2 1\n9\n1 2\n",
            b"P7\nWIDTH 1\nHEIGHT 1\nDEPTH 1\nMAXVAL 255\nTUPLTYPE GRAYSCALE\nENDHDR\n\x07",
        ];
        for picture in one {
            assert!(check_pnm(picture).is_ok(), "{picture:?}");
            assert!(check_pnm(&[picture, b"\nnot a picture"].concat()).is_ok(), "{picture:?}");
            for (gap, other) in [(&b""[..], one[0]), (b"\n", one[3])] {
                let joined = [picture, gap, other, gap, picture].concat();
                let told = check_pnm(&joined).unwrap_err().to_string();
                assert!(told.contains("3 pictures") && told.contains("`convert"), "{told}");
            }
        }
        assert!(check_pnm(b"P5\n4000000000 4000000000\n255\n").is_ok());
    }

    #[test]
    fn animations_are_told_from_pictures() {
        let chunk = |kind: &[u8; 4], data: &[u8]| {
            [&(data.len() as u32).to_be_bytes()[..], kind, data, &[0; 4]].concat()
        };
        let png = |frames: u32| {
            let control = [frames.to_be_bytes(), [0; 4]].concat();
            let parts = [chunk(b"IHDR", &[0; 13]), chunk(b"acTL", &control), chunk(b"IDAT", b"")];
            [&b"\x89PNG\r\n\x1a\n"[..], &parts.concat()].concat()
        };
        assert!(check_png(&png(1)).is_ok() && check_png(b"\x89PNG").is_ok());
        let told = check_png(&png(4)).unwrap_err().to_string();
        assert!(told.contains("animation of 4 pictures") && told.contains("ffmpeg"), "{told}");
        // In a PNG that was joined to another, or in its data, the words mean nothing.
        assert!(check_png(&[png(1), chunk(b"acTL", &[9; 8])].concat()).is_ok());
    }
}
