use image::codecs::jpeg::JpegEncoder;
use image::{DynamicImage, ImageBuffer, Luma, Rgb};
use proptest::prelude::*;

use super::*;

/// An image with content, coded; in colour with three components.
fn coded(width: u32, height: u32, colour: bool) -> Vec<u8> {
    let level = |x: u32, y: u32, n: u32| ((x * 7 + n) ^ (y * 13) ^ (x * y / 5)) as u8;
    let picture: DynamicImage = if colour {
        let pixel = |x, y| Rgb([0, 50, 90].map(|n| level(x, y, n)));
        ImageBuffer::from_fn(width, height, pixel).into()
    } else {
        ImageBuffer::from_fn(width, height, |x, y| Luma([level(x, y, 0)])).into()
    };
    let mut bytes = Vec::new();
    JpegEncoder::new_with_quality(&mut bytes, 80).encode_image(&picture).unwrap();
    bytes
}

#[test]
fn whole_pictures_pass_and_cut_ones_do_not_wherever_they_are_cut() {
    for (width, height, colour) in [(64, 48, false), (61, 35, true), (3, 2, false), (8, 8, true)] {
        let bytes = coded(width, height, colour);
        assert_eq!(check(&bytes), Ok(()), "{width}x{height}");
        for length in 0..bytes.len() {
            let cut = &bytes[..length];
            assert!(check(cut).is_err(), "{width}x{height}: {length} of {}", bytes.len());
            // Appending an end marker does not repair the image.
            let ended = [cut, &[0xff, 0xd9]].concat();
            let lost = bytes.len() - 2 - length.min(bytes.len() - 2);
            if lost > 1 {
                assert!(check(&ended).is_err(), "{width}x{height}: {length} and an end");
            }
        }
        let padded = [&bytes[..], &[0; 300]].concat();
        assert_eq!(check(&padded), Ok(()));
    }
    assert_eq!(check(b""), Err(Flaw::NoData));
    assert_eq!(check(&[0xff, 0xd8, 0xff, 0xd9]), Err(Flaw::NoData));
}

#[test]
fn the_end_alone_may_be_missing() {
    let bytes = coded(64, 48, true);
    assert_eq!(check(&bytes[..bytes.len() - 2]), Err(Flaw::NoEnd));
}

#[test]
fn altered_codes_are_noticed() {
    let bytes = coded(160, 120, true);
    let data = bytes.windows(2).position(|two| two == [0xff, 0xda]).unwrap() + 20;
    let noticed = (data..bytes.len() - 2)
        .filter(|&at| {
            let mut altered = bytes.clone();
            altered[at] ^= 0x10;
            check(&altered).is_err()
        })
        .count();
    // An altered bit of a value leaves all codes intact.
    let all = bytes.len() - 2 - data;
    assert!(noticed * 5 > all, "{noticed} of {all}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn nothing_makes_it_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20)) {
        let mut bytes = coded(24, 16, true);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let _ = check(&bytes);
    }
}
