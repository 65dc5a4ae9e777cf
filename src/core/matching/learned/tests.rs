//! Tests of the definition.

#[path = "../../tests/common/networks.rs"]
pub(crate) mod networks;

use proptest::prelude::*;

use self::networks::{Dice, Shape, file, random_parts, shapes};
use super::*;
use crate::frame::INVALID;

impl Dice {
    pub(crate) fn image(&mut self, (width, height): (usize, usize)) -> Image {
        let pixels = (0..width * height).map(|_| self.below(256) as u8).collect();
        Image::from_vec(width, height, pixels)
    }
}

/// FNV-1a (64 bits) of all disparities, then all confidences, each two bytes, little endian.
fn checksum(prediction: &Prediction) -> u64 {
    let disparities = prediction.disparity.iter().flat_map(|value| value.to_le_bytes());
    let bytes =
        disparities.chain(prediction.confidence.iter().flat_map(|value| value.to_le_bytes()));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Two pairs for which `IntegerNetwork.run` of scripts/learned_prior/integer.py gave the numbers below, with
/// both files and numpy 2: (y, x = numpy.mgrid[:h, :w]), left f(x, y), right f(x + d, y).
pub(crate) fn golden_pairs() -> [[Image; 2]; 2] {
    let smooth = |x: usize, y: usize| ((x * x / 7 + y * y / 5 + 3 * x * y / 11) % 256) as u8;
    let rough = |x: usize, y: usize| ((x * 73 + y * 151 + x * y * 31) % 251) as u8;
    [
        [0, 20].map(|d| Image::from_fn(64, 48, |x, y| smooth(x + d, y))),
        [0, 1].map(|far| Image::from_fn(131, 75, |x, y| rough(x + far * (8 + y / 8), y))),
    ]
}

#[test]
fn the_own_networks_give_the_numbers_of_the_reference() {
    let fine = Network::own(Cells::Auto, (1242, 375));
    assert_eq!((fine.step, fine.candidates, fine.threshold), (4, 48, 0));
    let [first, second] = golden_pairs().map(|[left, right]| fine.run(&left, &right));
    assert_eq!(first.disparity[16..24], [78, 78, 78, 77, 76, 77, 79, 80]);
    assert_eq!(second.confidence[16..24], [19, 19, 22, 20, 19, 17, 16, 14]);
    assert_eq!([&first, &second].map(checksum), [0xdd5d_19c9_0b99_4a0b, 0x1dba_8539_373e_3a91]);

    let network = Network::own(Cells::Auto, (1280, 720));
    assert_eq!((network.step, network.candidates, network.threshold), (8, 24, 0));
    let [first, second] = golden_pairs().map(|[left, right]| network.run(&left, &right));
    assert_eq!((first.width, first.height), (8, 8));
    assert_eq!(first.disparity[16..24], [31, 32, 33, 38, 38, 40, 41, 41]);
    assert_eq!(first.confidence[16..24], [-11, -16, -16, -15, -17, -21, -27, -23]);
    assert_eq!(checksum(&first), 0x3fcc_e5f1_18d0_0ddf);
    assert_eq!((second.width, second.height), (20, 12));
    assert_eq!(second.disparity[40..48], [21, 21, 21, 21, 21, 21, 20, 20]);
    assert_eq!(second.confidence[40..48], [24, 29, 29, 33, 43, 43, 39, 40]);
    assert_eq!(checksum(&second), 0x5daa_8ad9_8377_c3a2);
}

#[test]
fn pixels_between_confident_cells_are_interpolated() {
    let prediction = |confidence: [i16; 4]| Prediction {
        width: 2,
        height: 2,
        step: 8,
        threshold: 5,
        disparity: vec![16, 32, 64, 96],
        confidence: confidence.to_vec(),
    };
    // A candidate is 4 px of this size: 16/16 candidates are 64/16 px. The centres of the cells are at 2 and 6.
    let map = prior_map(&prediction([5; 4]), (8, 7));
    assert_eq!(map[..8], [64, 64, 72, 88, 104, 120, 128, 128]);
    // Row 2 has an eighth of the lower cells: 64 + (256 - 64) / 8, 128 + (384 - 128) / 8.
    assert_eq!((map[2 * 8], map[2 * 8 + 7]), (88, 160));
    // Pixel 2 has an eighth of the cells on the right, too: (72 * 7 + (256 * 7 + 384) / 8) / 8.
    assert_eq!(map[2 * 8 + 2], 97);
    let map = prior_map(&prediction([5, 5, 4, 5]), (8, 7));
    assert_eq!(map[..8], [64, 64, 72, 88, 104, 120, 128, 128]);
    assert_eq!(map[3 * 8..4 * 8], [64, 64, 64, 64, 128, 128, 224, 224]);
    let unknown = INVALID;
    assert_eq!(map[4 * 8..5 * 8], [unknown, unknown, unknown, unknown, 384, 384, 288, 288]);
}

#[test]
fn what_is_wrong_with_a_file_is_named() {
    let shape =
        Shape { channels: [3, 5, 2, 7, 6], candidates: 6, groups: 2, kernel: 3, dilations: [1, 2] };
    let (description, parameters) = random_parts(&shape, &mut Dice(1));
    let of = |from: &str, to: &str| {
        assert!(description.contains(from), "{from}");
        Network::read(&file(&description.replacen(from, to, 1), &parameters)).unwrap_err()
    };
    assert!(Network::read(&file(&description, &parameters)).is_ok());
    assert!(of("prior 1", "prior 2").contains("format \"stereo prior 2\""));
    assert!(of("\"reach\":2", "\"reach\":-2").starts_with("description: "));
    let found = of("\"channels_in\":3,", "\"channels_in\":4,");
    assert_eq!(found, "stem_1: 4 channels, inputs have 3");
    assert!(
        of("\"channels_out\":3,", "\"channels_out\":4000000000,")
            .starts_with("stem_0: 4000000000 channels")
    );
    assert!(of("\"output\":\"inner\"", "\"output\":\"stem_1\"").contains("stem_1: "));
    assert!(of("[\"costs\",\"trunk\"]", "[\"features\",\"trunk\"]").starts_with("merge: "));
    assert!(of("\"step\":4", "\"step\":8").starts_with("head: "));
    let all = file(&description, &parameters);
    assert_eq!(
        Network::read(&file(&description, &parameters[..parameters.len() - 1])).unwrap_err(),
        "head: the file ends 1 bytes early"
    );
    let longer = [&parameters[..], &[0]].concat();
    assert_eq!(Network::read(&file(&description, &longer)).unwrap_err(), "1 bytes too many");
    for end in [0, 1, description.len(), description.len() + 3, all.len() - 1] {
        assert!(Network::read(&all[..end]).is_err(), "{end} bytes");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn flipped_bits_are_noticed(shape in shapes(), seed: u64, place: prop::sample::Index, bit in 0..8u8) {
        let (description, parameters) = random_parts(&shape, &mut Dice(seed));
        let mut bytes = file(&description, &parameters);
        let place = place.index(bytes.len());
        bytes[place] ^= 1 << bit;
        prop_assert!(Network::read(&bytes).is_err());
    }

    /// A description with another number or name, and a checksum that fits, is refused or can be run.
    #[test]
    fn no_description_makes_it_panic(
        shape in shapes(),
        seed: u64,
        place: prop::sample::Index,
        other in prop::sample::select(vec![
            "0", "1", "2", "3", "7", "16", "127", "255", "-1", "-128", "4096", "65536", "4294967297",
            "18446744073709551615", "1e300", "null", "[]", "\"trunk\"", "\"features\"", "\"head\"", "\"double\"",
        ]),
    ) {
        let (description, parameters) = random_parts(&shape, &mut Dice(seed));
        let is_end = |byte: u8| b",:[]{}".contains(&byte);
        let ends: Vec<usize> =
            (0..description.len()).filter(|&i| is_end(description.as_bytes()[i])).collect();
        let at = place.index(ends.len() - 1);
        let changed = [&description[..=ends[at]], other, &description[ends[at + 1]..]].concat();
        if let Ok(network) = Network::read(&file(&changed, &parameters)) {
            let dice = &mut Dice(seed);
            let (left, right) = (dice.image((9, 7)), dice.image((9, 7)));
            prior_map(&network.run(&left, &right), (5, 4));
        }
    }
}
