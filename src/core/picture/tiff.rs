//! TIFF files: their pages, and floating-point samples that the decoder of images leaves out (grey ones, and all
//! but 32 bits).

use std::collections::BTreeSet;
use std::io::Cursor;

use anyhow::{Context, Result};
use image::metadata::Orientation;
use image::{DynamicImage, ImageBuffer};
use tiff::decoder::{Decoder, DecodingResult, Limits};
use tiff::tags::{SampleFormat, Tag};
use tiff::{ColorType, Directory, TiffError};

use super::header;
use super::unread::{DEVELOP, RAW, Unread};
use crate::memory::Budget;

type Content<'a> = Decoder<Cursor<&'a [u8]>>;

/// Bits of NewSubfileType: a preview, a mask.
const NO_PAGE: u32 = 0b101;
const DNG_VERSION: Tag = Tag::Unknown(50706);

/// Fails if the file holds several images or begins with a preview. Content that cannot be opened passes, because
/// the decoder reports it.
pub(super) fn check(content: &[u8]) -> Result<()> {
    let Ok(mut decoder) = Decoder::new(Cursor::new(content)) else { return Ok(()) };
    let (mut pages, mut directories) = (0, BTreeSet::new());
    let mut next = decoder.ifd_pointer();
    while let Some(at) = next.filter(|at| directories.insert(at.0)) {
        let directory = decoder.read_directory(at).context("its pages cannot all be read")?;
        let is_page = is_page(&mut decoder, &directory);
        if directories.len() == 1 && (!is_page || directory.contains(DNG_VERSION)) {
            return Err(match directory.contains(Tag::SubIfd) || directory.contains(DNG_VERSION) {
                true => Unread::kind(RAW, DEVELOP),
                false => Unread::several(
                    "a preview before the picture itself",
                    "convert 'IN.tif[1]' OUT.png",
                ),
            }
            .into());
        }
        pages += usize::from(is_page);
        next = directory.next();
    }
    if let Some(command) = planes(&mut decoder) {
        return Err(Unread::several("a stack of 4 pictures as planes of one", command).into());
    }
    match pages.max(stated_pages(&mut decoder)) {
        0 | 1 => Ok(()),
        pages => {
            let content = format!("{pages} pictures");
            Err(Unread::several(&content, "convert IN.tif OUT-%03d.png").into())
        }
    }
}

fn is_page(decoder: &mut Content<'_>, directory: &Directory) -> bool {
    let mut tags = decoder.read_directory_tags(directory);
    let mut number = |tag| tags.find_tag_unsigned::<u32>(tag).ok().flatten().unwrap_or(0);
    // The older tag counts: 2 is a preview.
    number(Tag::NewSubfileType) & NO_PAGE == 0 && number(Tag::SubfileType) != 2
}

/// Returns the shape of the data that tifffile states in the first page, the last dimension last.
fn stated_shape(description: &str) -> Option<Vec<usize>> {
    let (shape, _) = description.strip_prefix("{\"shape\": [")?.split_once(']')?;
    shape.split(',').map(|length| length.trim().parse().ok()).collect()
}

fn description(decoder: &mut Content<'_>) -> String {
    decoder.get_tag_ascii_string(Tag::ImageDescription).unwrap_or_default()
}

/// Returns the command that separates a stack of four grey images, which tifffile takes for the planes of a colour
/// image with transparency.
fn planes(decoder: &mut Content<'_>) -> Option<&'static str> {
    let shape = stated_shape(&description(decoder))?;
    let (width, height) = decoder.dimensions().ok()?;
    let planar = decoder.find_tag_unsigned::<u16>(Tag::PlanarConfiguration).ok().flatten();
    let is_stack = planar == Some(2) && shape == [4, height as usize, width as usize];
    is_stack.then_some("convert IN.tif -channel RGBA -separate OUT-%03d.png")
}

/// Returns the number of images that the first page states: ImageJ and tifffile write long stacks as one page.
fn stated_pages(decoder: &mut Content<'_>) -> usize {
    let description = description(decoder);
    if description.starts_with("ImageJ=") {
        let count = description.lines().find_map(|line| line.strip_prefix("images="));
        return count.and_then(|count| count.trim().parse().ok()).unwrap_or(0);
    }
    let (Some(shape), Ok((width, height))) = (stated_shape(&description), decoder.dimensions())
    else {
        return 0;
    };
    let page = [height as usize, width as usize];
    // Pages of several samples have them as a last dimension.
    let before = shape.strip_suffix(&page).or_else(|| {
        let (_samples, rest) = shape.split_last()?;
        rest.strip_suffix(&page)
    });
    let is_planar = decoder.find_tag_unsigned::<u16>(Tag::PlanarConfiguration).ok().flatten();
    match before {
        Some(before) if is_planar != Some(2) => {
            before.iter().fold(1, |product: usize, &length| product.saturating_mul(length))
        }
        _ => 0,
    }
}

/// Decodes floating-point samples that the decoder of images does not read; `None` if it does, or if the samples are
/// others. Grey becomes three equal channels.
pub(super) fn floats(content: &[u8]) -> Result<Option<(DynamicImage, Orientation)>> {
    let Ok(mut decoder) = Decoder::new(Cursor::new(content)) else { return Ok(None) };
    let format = decoder.find_tag_unsigned_vec::<u16>(Tag::SampleFormat).ok().flatten();
    let is_float =
        format.is_some_and(|all| all.iter().all(|&format| format == SampleFormat::IEEEFP.to_u16()));
    let planar = decoder.find_tag_unsigned::<u16>(Tag::PlanarConfiguration).ok().flatten();
    let (channels, bits) = match decoder.colortype() {
        Ok(ColorType::Gray(bits)) => (1, bits),
        Ok(ColorType::RGB(bits @ (16 | 64))) if planar != Some(2) => (3, bits),
        _ => return Ok(None),
    };
    if !is_float {
        return Ok(None);
    }
    let (width, height) = decoder.dimensions().map_err(error)?;
    // Samples as they are, as 32 bits, as three channels and as 16 bits.
    let a_pixel = channels * (u64::from(bits) / 8 + 4) + 12 + 6;
    let pixels = u64::from(width) * u64::from(height);
    header::check_decoded((width, height), pixels.saturating_mul(a_pixel))?;
    let mut limits = Limits::default();
    limits.decoding_buffer_size =
        usize::try_from(Budget::of_process().left()).unwrap_or(usize::MAX);
    limits.intermediate_buffer_size = limits.decoding_buffer_size;
    let orientation = decoder.find_tag_unsigned::<u8>(Tag::Orientation).ok().flatten();
    let mut decoder = decoder.with_limits(limits);
    let samples: Vec<f32> = match decoder.read_image().map_err(error)? {
        DecodingResult::F16(samples) => samples.into_iter().map(|sample| sample.to_f32()).collect(),
        DecodingResult::F32(samples) => samples,
        DecodingResult::F64(samples) => samples.into_iter().map(|sample| sample as f32).collect(),
        _ => return Ok(None),
    };
    let samples = match channels {
        1 => samples.into_iter().flat_map(|sample| [sample; 3]).collect(),
        _ => samples,
    };
    let picture = ImageBuffer::from_raw(width, height, samples).context("samples are missing")?;
    let orientation = orientation.and_then(Orientation::from_exif);
    Ok(Some((DynamicImage::ImageRgb32F(picture), orientation.unwrap_or(Orientation::NoTransforms))))
}

fn error(error: TiffError) -> anyhow::Error {
    match error {
        TiffError::UnsupportedError(why) => {
            let kind = format!("TIFF of this kind ({why})");
            Unread::kind(&kind, "convert IN.tif -depth 16 OUT.png").into()
        }
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tiff::encoder::colortype::{
        ColorType, Gray8, Gray16, Gray32Float, Gray64Float, RGB64Float,
    };
    use tiff::encoder::{TiffEncoder, TiffValue};

    use super::*;

    type Tags<'a> = &'a [(Tag, u32)];

    /// Returns a TIFF of pages of 3x2 samples with these tags.
    fn written<T: ColorType>(pages: &[Tags<'_>], samples: &[T::Inner], about: &str) -> Vec<u8>
    where
        [T::Inner]: TiffValue,
    {
        let mut file = Cursor::new(Vec::new());
        let mut encoder = TiffEncoder::new(&mut file).unwrap();
        for tags in pages {
            let mut page = encoder.new_image::<T>(3, 2).unwrap();
            for &(tag, value) in *tags {
                page.encoder().write_tag(tag, value).unwrap();
            }
            page.encoder().write_tag(Tag::ImageDescription, about).unwrap();
            page.write_data(samples).unwrap();
        }
        file.into_inner()
    }

    fn grey(pages: &[Tags<'_>], about: &str) -> Vec<u8> {
        written::<Gray8>(pages, &[1, 2, 3, 4, 5, 6], about)
    }

    fn refusal(content: &[u8]) -> String {
        check(content).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn pages_are_counted_without_previews_and_masks() {
        let preview = [(Tag::NewSubfileType, 1)];
        let mask = [(Tag::NewSubfileType, 4)];
        let page = [(Tag::NewSubfileType, 2)];
        for pages in
            [&[&[][..]][..], &[&[], &preview, &mask], &[&page], &[&[], &[(Tag::SubfileType, 2)]]]
        {
            assert_eq!(refusal(&grey(pages, "none")), "");
        }
        let told = refusal(&grey(&[&page, &page, &preview, &[]], "none"));
        assert!(told.contains("3 pictures") && told.contains("`convert IN.tif OUT"), "{told}");
        let told = refusal(&grey(&[&preview, &[]], "none"));
        assert!(told.contains("a preview before") && told.contains("'IN.tif[1]'"), "{told}");
        let raw = [(Tag::NewSubfileType, 1), (Tag::SubIfd, 8)];
        let told = refusal(&grey(&[&raw], "none"));
        assert!(told.contains("raw picture") && told.contains("dcraw"), "{told}");
        let told = refusal(&grey(&[&[(DNG_VERSION, 0x104)]], "none"));
        assert!(told.contains("raw picture"), "{told}");
        let mut cut = grey(&[&[], &[]], "none");
        cut.truncate(cut.len() - 9);
        assert!(refusal(&cut).contains("pages cannot all be read"));
    }

    #[test]
    fn stacks_of_one_page_are_told() {
        for (about, count) in [
            ("ImageJ=1.53\nimages=5\nslices=5\n", "5 pictures"),
            ("{\"shape\": [4, 2, 3], \"truncated\": true}", "4 pictures"),
            ("{\"shape\": [2, 3, 2, 3, 1]}", "6 pictures"),
        ] {
            assert!(refusal(&grey(&[&[]], about)).contains(count), "{about}");
        }
        for about in
            ["ImageJ=1.53\n", "{\"shape\": [2, 3]}", "{\"shape\": [2, 3, 1]}", "{\"shape\": ["]
        {
            assert_eq!(refusal(&grey(&[&[]], about)), "", "{about}");
        }
        let planar = grey(&[&[(Tag::PlanarConfiguration, 2)]], "{\"shape\": [4, 2, 3]}");
        let told = refusal(&planar);
        assert!(told.contains("stack of 4 pictures") && told.contains("-separate"), "{told}");
    }

    #[test]
    fn floats_of_every_kind_are_read() {
        let light = [0.0, 0.25, 1.0, 2.0, -1.0, 0.5];
        let of = |content: &[u8]| match floats(content).unwrap() {
            Some((DynamicImage::ImageRgb32F(picture), _)) => picture.into_raw(),
            other => panic!("{other:?}"),
        };
        let expected: Vec<f32> = light.iter().flat_map(|&sample| [sample; 3]).collect();
        assert_eq!(of(&written::<Gray32Float>(&[&[]], &light, "")), expected);
        let double = light.map(f64::from);
        assert_eq!(of(&written::<Gray64Float>(&[&[]], &double, "")), expected);
        let colour: Vec<f64> = expected.iter().copied().map(f64::from).collect();
        assert_eq!(of(&written::<RGB64Float>(&[&[]], &colour, "")), expected);
        assert!(floats(&grey(&[&[]], "")).unwrap().is_none());
        // The encoder writes no such samples, but whole numbers with the same bits.
        let mut half = written::<Gray16>(&[&[]], &[0, 0x3400, 0x3c00, 0x4000, 0xbc00, 0x3800], "");
        let format = [0x53, 1, 3, 0, 1, 0, 0, 0, 1];
        let at = half.windows(9).position(|entry| entry == format).unwrap() + 8;
        half[at] = 3;
        assert_eq!(of(&half), expected);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn nothing_makes_it_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..9)) {
            let pages = written::<Gray32Float>(&[&[], &[(Tag::NewSubfileType, 1)], &[]], &[0.5; 6], "{\"shape\": [2, 3]}");
            let mut bytes = pages;
            for (at, value) in changes {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            let _ = (check(&bytes), floats(&bytes));
        }
    }
}
