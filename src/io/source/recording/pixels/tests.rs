//! Formats of pixels, mosaics and damaged images.

use proptest::prelude::*;

use super::FORMATS;
use super::*;
use stereod_core::chroma::ColourCoding;
use stereod_core::frame::intensity;
use stereod_core::pool::Pool;

fn frame(picture: &Picture<'_>, keep: &Keep, tone: Tone) -> Result<Image> {
    match views(picture, ViewLayout::Whole, keep, tone)? {
        Views::One(image) => Ok(image),
        Views::Both(..) => panic!("two views of one"),
    }
}

fn keep() -> Keep {
    Keep { colours: Some(Pool::new()), ..Keep::default() }
}

fn made(encoding: &str, (width, height): (usize, usize), data: &[u8]) -> Image {
    let step = data.len() / height;
    let raw = Raw { width, height, encoding, is_big_endian: false, step, data };
    frame(&Picture::Raw(raw), &keep(), Tone::UpperBits).unwrap()
}

#[test]
fn samples_stand_where_their_names_say() {
    let rgb = [10, 200, 30];
    let grey = intensity(10, 200, 30);
    let [r, g, b] = rgb;
    for (encoding, pixel) in [
        ("rgb8", vec![r, g, b]),
        ("bgr8", vec![b, g, r]),
        ("rgba8", vec![r, g, b, 9]),
        ("bgra8", vec![b, g, r, 9]),
        ("rgb16", vec![0, r, 0, g, 0, b]),
        ("bgr16", vec![0, b, 0, g, 0, r]),
    ] {
        let image = made(encoding, (2, 2), &pixel.repeat(4));
        assert_eq!(image.pixels(), [grey; 4], "{encoding}");
        // The differences are rounded.
        let seen = image.rgb_at(1, 1);
        assert!(seen.iter().zip(rgb).all(|(a, b)| a.abs_diff(b) <= 2), "{encoding}: {seen:?}");
    }
    let image = made("yuv422", (2, 1), &[128, 50, 128, 60]);
    assert_eq!((image.pixels(), image.chroma().is_some()), (&[50, 60][..], true));
    assert_eq!(made("yuv422_yuy2", (2, 1), &[50, 128, 60, 128]).pixels(), [50, 60]);
    assert_eq!(made("mono16", (2, 1), &[1, 50, 255, 60]).pixels(), [50, 60]);
    assert!(made("mono8", (2, 1), &[1, 2]).chroma().is_none());
}

#[test]
fn an_even_colour_of_a_mosaic_is_even() {
    let (width, height) = (6, 4);
    for (order, red) in [("rggb", [0, 0]), ("bggr", [1, 1]), ("gbrg", [0, 1]), ("grbg", [1, 0])] {
        let sample = |i: usize| {
            let (x, y) = (i % width, i / width);
            match (x % 2 == red[0], y % 2 == red[1]) {
                (true, true) => 200,
                (false, false) => 20,
                _ => 90,
            }
        };
        let data: Vec<u8> = (0..width * height).map(sample).collect();
        let image = made(&format!("bayer_{order}8"), (width, height), &data);
        assert_eq!(image.pixels(), vec![intensity(200, 90, 20); width * height], "{order}");
        let wide: Vec<u8> = data.iter().flat_map(|&sample| [0, sample]).collect();
        let deep = made(&format!("bayer_{order}16"), (width, height), &wide);
        assert!(deep.pixels().iter().zip(image.pixels()).all(|(a, b)| a.abs_diff(*b) <= 1));
    }
}

#[test]
fn colour_differences_in_a_plane_of_their_own() {
    // Four pixels share a pair, and each has its own.
    let luma = [50, 60, 70, 80, 90, 100, 110, 120];
    let quarter = [&luma[..], &[90, 160, 128, 128]].concat();
    let whole = [&luma[..], &[90, 160].repeat(2), &[128; 12]].concat();
    let read = |encoding: &str, data: &[u8]| {
        let raw = Raw { width: 4, height: 2, encoding, is_big_endian: false, step: 4, data };
        frame(&Picture::Raw(raw), &keep(), Tone::Local)
    };
    let coloured = |encoding: &str, data: &[u8]| {
        let image = read(encoding, data).unwrap();
        assert_eq!(image.pixels(), luma, "{encoding}");
        (image.rgb_at(1, 0), image.rgb_at(3, 1))
    };
    let coding = ColourCoding::new(0.299, 0.114, false);
    let due = (coding.rgb(60, [90, 160]), coding.rgb(120, [128, 128]));
    assert_eq!(coloured("nv12", &quarter), due);
    assert_eq!(coloured("nv24", &whole), due);
    let swapped = [&luma[..], &[160, 90, 128, 128]].concat();
    assert_eq!(coloured("nv21", &swapped), due);
    let cut = read("nv12", &quarter[..11]).unwrap_err();
    assert!(cut.to_string().contains("need more than the 11 bytes"), "{cut}");
}

/// A file that holds these samples.
fn png(image: impl Into<DynamicImage>) -> Vec<u8> {
    let mut file = std::io::Cursor::new(Vec::new());
    image.into().write_to(&mut file, image::ImageFormat::Png).unwrap();
    file.into_inner()
}

#[test]
fn a_mosaic_in_a_file_is_interpolated_as_in_a_message() {
    let sample = |x: u32, y: u32| [200, 90, 20][(x % 2 + y % 2) as usize];
    let mosaic = image::GrayImage::from_fn(6, 4, |x, y| image::Luma([sample(x, y)]));
    let due = made("bayer_rggb8", (6, 4), mosaic.as_raw());
    let file = png(mosaic.clone());
    let read = |format, content: &[u8]| {
        frame(&Picture::File { content, format }, &keep(), Tone::UpperBits).unwrap()
    };
    for format in ["bayer_rggb8; png compressed ", "bayer_rggb8; jpeg compressed bayer_rggb8"] {
        let image = read(format, &file);
        assert_eq!(image.pixels(), due.pixels(), "{format}");
        assert!(image.chroma().is_some());
    }
    let wide =
        image::ImageBuffer::from_fn(6, 4, |x, y| image::Luma([u16::from(sample(x, y)) << 8]));
    assert_eq!(read("bayer_rggb16; png compressed ", &png(wide)).pixels(), due.pixels());
    // Converted before, or no mosaic.
    for format in ["bayer_rggb8; png compressed mono8", "mono8; png compressed ", "png", ""] {
        assert_eq!(read(format, &file).pixels(), mosaic.as_raw(), "{format}");
    }
    let colour = png(image::RgbImage::from_pixel(6, 4, image::Rgb([9, 9, 9])));
    assert_eq!(read("bayer_rggb8; png compressed bgr8", &colour).pixels(), [9; 24]);
    assert_eq!(read("bayer_rggb8; png compressed ", &colour).pixels(), [9; 24]);
}

#[test]
fn the_halves_of_an_image_are_the_views() {
    let (width, height) = (8, 4);
    for (encoding, layout, is_wide) in FORMATS {
        let bytes = match layout {
            Layout::Colour(_, samples) => samples,
            Layout::Yuv422(_) => 2,
            _ => 1,
        } * (1 + usize::from(is_wide));
        let planes = match layout {
            Layout::TwoPlanes([0, 0], _) => 2 * width * height,
            Layout::TwoPlanes(..) => width * height / 2,
            _ => 0,
        };
        // Both halves alike.
        let half: Vec<u8> = (0..bytes * width / 2).map(|i| (17 * i) as u8).collect();
        let data = [half.repeat(2 * height), vec![128; planes]].concat();
        let step = bytes * width;
        let raw = Raw { width, height, encoding, is_big_endian: false, step, data: &data };
        let both = views(&Picture::Raw(raw), ViewLayout::SideBySide, &keep(), Tone::UpperBits);
        let Views::Both(left, right) = both.unwrap() else { panic!("{encoding}") };
        assert_eq!((left.width(), left.height()), (width / 2, height));
        assert_eq!(left.pixels(), right.pixels(), "{encoding}");
        let whole = frame(&Picture::Raw(raw), &keep(), Tone::UpperBits).unwrap();
        assert_eq!(left.row(1)[..3], whole.row(1)[..3], "{encoding}");
    }
    let file = png(image::GrayImage::from_fn(8, 1, |x, _| image::Luma([x as u8])));
    let picture = Picture::File { content: &file, format: "" };
    let Views::Both(left, right) =
        views(&picture, ViewLayout::SideBySide, &keep(), Tone::Local).unwrap()
    else {
        panic!()
    };
    assert_eq!((left.pixels(), right.pixels()), (&[0, 1, 2, 3][..], &[4, 5, 6, 7][..]));
    let odd = png(image::GrayImage::new(6, 1));
    let picture = Picture::File { content: &odd, format: "" };
    let error = views(&picture, ViewLayout::SideBySide, &keep(), Tone::Local).unwrap_err();
    assert!(error.to_string().contains("a multiple of 4, not 6"), "{error}");
}

#[test]
fn rows_may_be_padded() {
    assert_eq!(made("mono8", (2, 2), &[1, 2, 0, 3, 4, 0]).pixels(), [1, 2, 3, 4]);
    let raw = |step, data| Raw {
        width: 2,
        height: 2,
        encoding: "mono8",
        is_big_endian: false,
        step,
        data,
    };
    // The last row need not be padded.
    let image = frame(&Picture::Raw(raw(3, &[1, 2, 0, 3, 4])), &keep(), Tone::Local).unwrap();
    assert_eq!(image.pixels(), [1, 2, 3, 4]);
    for (step, data, what) in [
        (3, &[1, 2, 0, 3][..], "need more than the 4 bytes"),
        (usize::MAX, &[1, 2, 3, 4], "need more than the 4 bytes"),
        (1, &[1, 2, 3, 4], "the step of 1 bytes is smaller than a row of 2 pixels"),
        (0, &[1, 2, 3, 4], "the step of 0 bytes is smaller than a row of 2 pixels"),
    ] {
        let error = frame(&Picture::Raw(raw(step, data)), &keep(), Tone::Local).unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
    }
}

#[test]
fn the_refusal_of_a_format_names_those_that_are_read() {
    let raw = |encoding| Raw {
        width: 1,
        height: 1,
        encoding,
        is_big_endian: false,
        step: 8,
        data: &[0; 8],
    };
    let tried = |encoding| frame(&Picture::Raw(raw(encoding)), &keep(), Tone::Local);
    let error = tried("32FC1").unwrap_err().to_string();
    for (known, ..) in FORMATS {
        let named = if known.starts_with("bayer_") { "bayer_*" } else { known };
        assert!(error.contains(named), "{named}: {error}");
    }
}

proptest! {
    #[test]
    fn any_header_is_read_or_refused(
        width in 0_usize..40,
        height in 0_usize..40,
        step in 0_usize..200,
        known in 0..FORMATS.len(),
        is_big_endian: bool,
        data in prop::collection::vec(any::<u8>(), 0..4000),
    ) {
        let raw = Raw { width, height, encoding: FORMATS[known].0, is_big_endian, step, data: &data };
        if let Ok(image) = frame(&Picture::Raw(raw), &keep(), Tone::Local) {
            prop_assert_eq!((image.width(), image.height()), (width, height));
        }
        let _ = views(&Picture::Raw(raw), ViewLayout::SideBySide, &keep(), Tone::Local);
    }
}
