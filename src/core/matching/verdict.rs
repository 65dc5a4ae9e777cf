//! A network checked by Semi-Global Matching: where both say the same, and where they contradict each other.

use crate::chroma::{Chroma, ChromaPlane, ColourCoding};
use crate::frame::{INVALID, Image, SUBPIXEL, intensity};
use crate::pool::{Pool, Pooled};

/// Comparison of a pixel's two disparities, as a value in an image of verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Verdict {
    /// Neither knows it.
    Unknown = 0,
    /// Both say the same.
    Agree = 1,
    /// Matching knows nothing, or is not sure.
    OnlyNetwork = 2,
    /// The network knows nothing.
    OnlySgm = 3,
    /// Matching is sure of another disparity.
    Contradict = 4,
}

impl Verdict {
    /// Their names, in the order of their values.
    pub const NAMES: [&'static str; 5] =
        ["unknown", "agree", "only network", "only SGM", "contradict"];

    /// Their colours, from which people with any colour vision tell them apart (Okabe and Ito, "Color universal
    /// design", 2008).
    pub const COLOURS: [[u8; 3]; 5] =
        [[0, 0, 0], [0, 158, 115], [240, 228, 66], [86, 180, 233], [213, 94, 0]];

    /// Compares two disparities in 1/16 px. `confidence` is that of matching.
    pub fn of(network: i16, matched: i16, confidence: u8) -> Self {
        match (network == INVALID, matched == INVALID) {
            (true, true) => Self::Unknown,
            (true, false) => Self::OnlySgm,
            (false, true) => Self::OnlyNetwork,
            (false, false) => {
                let [network, matched] = [network, matched].map(i32::from);
                let error = (network - matched).abs();
                if error <= SUBPIXEL || 100 * error <= 3 * matched.abs() {
                    Self::Agree
                } else if confidence >= SURE {
                    Self::Contradict
                } else {
                    Self::OnlyNetwork
                }
            }
        }
    }
}

/// Confidence of matching that is right within 1 px with a probability of 80 %.
const SURE: u8 = 204;

/// Counts the verdicts of an image.
pub fn counts(verdicts: &[u8]) -> [u64; 5] {
    let mut counts = [0; 5];
    verdicts.iter().for_each(|&verdict| counts[usize::from(verdict.min(4))] += 1);
    counts
}

/// Returns red, green and blue of all pixels.
pub fn colours(verdicts: &[u8]) -> Vec<u8> {
    let colour = |&verdict: &u8| Verdict::COLOURS[usize::from(verdict.min(4))];
    verdicts.iter().flat_map(colour).collect()
}

/// Returns the verdicts as a picture in their colours.
pub fn picture(verdicts: &Image) -> Image {
    let size = (verdicts.width(), verdicts.height());
    let of = Verdict::COLOURS.map(|[red, green, blue]| {
        let luma = intensity(red, green, blue);
        (luma, ColourCoding::differences(luma, red, blue))
    });
    let of_pixel = |&verdict: &u8| of[usize::from(verdict.min(4))];
    let (luma, samples) = verdicts.pixels().iter().map(of_pixel).unzip();
    let plane = ChromaPlane::new(size, [0, 0], Pooled::unpooled(samples));
    let chroma = Chroma::new(ColourCoding::of_rgb(), plane, Pool::new());
    Image::from_vec(size.0, size.1, luma).with_chroma(Some(chroma))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_follow_both_limits_and_the_confidence() {
        let of = |network, matched, confidence| Verdict::of(network, matched, confidence);
        assert_eq!(of(INVALID, INVALID, 0), Verdict::Unknown);
        assert_eq!(of(160, INVALID, 0), Verdict::OnlyNetwork);
        assert_eq!(of(INVALID, 160, 255), Verdict::OnlySgm);
        assert_eq!(of(160, 176, 255), Verdict::Agree);
        assert_eq!(of(160, 177, 204), Verdict::Contradict);
        assert_eq!(of(160, 177, 203), Verdict::OnlyNetwork);
        // 3 % of 100 px.
        assert_eq!(of(1648, 1600, 255), Verdict::Agree);
        assert_eq!(of(1649, 1600, 255), Verdict::Contradict);
        assert_eq!(of(-32, -64, 255), Verdict::Contradict);
        assert_eq!(counts(&[1, 1, 4, 0]), [1, 2, 0, 0, 1]);
    }
}
