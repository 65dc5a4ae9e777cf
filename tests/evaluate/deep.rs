//! Pictures of 16 bits a sample whose texture is fainter than a grey level of 8 bits.

use image::{ImageBuffer, Luma};

use super::{Data, SHIFT, texture};

/// Percentage of the pixels seen by both cameras that are unknown or off by more than 4 px, for a
/// wall whose samples are `sample` of its grey levels.
fn bad(sample: fn(u8) -> u16, arguments: &[&str]) -> f64 {
    let data = Data::new();
    data.described("wall");
    for (name, shift) in [("wall/l.png", 0), ("wall/r.png", SHIFT)] {
        let picture = ImageBuffer::from_fn(96, 48, |x, y| {
            Luma([sample(texture(x as usize + shift, y as usize))])
        });
        picture.save(data.file(name)).unwrap();
    }
    let report = data.report(&[&["wall"], arguments].concat());
    report["datasets"][0]["items"][0]["unfilled"]["all"]["bad4.0"].as_f64().unwrap()
}

#[test]
fn faint_texture_is_matched_as_its_8_bit_original() {
    let original = bad(|grey| u16::from(grey) << 8, &[]);
    assert!(original < 1.0, "{original}");
    // A dark wall: its whole texture lies within one code of the upper 8 bits.
    let faint = |grey: u8| 0x1f00 + u16::from(grey) / 2;
    let local = bad(faint, &[]);
    assert!(local < original + 2.0, "{local}, {original} in 8 bits");
    let cut = bad(faint, &["--tone", "upper-bits"]);
    assert!(cut > 90.0, "{cut}");
}

#[test]
fn ten_bits_in_the_low_end_of_a_word_are_matched() {
    let low = |grey: u8| 100 + u16::from(grey) / 4;
    assert!(bad(low, &[]) < 2.0);
    assert!(bad(low, &["--set", "source.tone=upper-bits"]) > 90.0);
}
