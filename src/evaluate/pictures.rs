//! Images of the errors of a map.

use std::collections::BTreeSet;

use crate::measured::Compared;

/// Colours of errors up to these numbers of pixels.
const RIGHT: [(f64, [u8; 3]); 4] =
    [(0.5, [0, 100, 40]), (1.0, [60, 190, 60]), (2.0, [240, 220, 60]), (4.0, [240, 140, 30])];

/// Colour of larger errors.
const WRONG: [u8; 3] = [220, 30, 30];

/// Colour of pixels without a disparity that filling along the row gets right ...
const FILLED_RIGHT: [u8; 3] = [120, 190, 255];

/// ... within this many pixels, ...
const FILLED_WITHIN: f64 = 1.0;

/// ... and of those that it gets wrong.
const FILLED_WRONG: [u8; 3] = [120, 50, 200];

/// Returns red, green and blue of every pixel of the image of a pair's errors.
pub fn errors(compared: &Compared) -> Vec<u8> {
    let Compared { left, maps: [unfilled, dense], truth, .. } = compared;
    let pixels = left.pixels().iter().enumerate().map(|(pixel, &grey)| {
        let at = |area: &Option<_>| {
            area.as_ref().and_then(|region: &super::truth::Region| region.at(pixel))
        };
        let seen_by_both = at(&truth.non_occluded);
        let Some(truth_here) = seen_by_both.or(at(&truth.all)) else { return [grey / 2; 3] };
        let error = |value: Option<f64>| value.map(|value| (value - truth_here).abs());
        let colour = match (error(unfilled.at(pixel)), error(dense.at(pixel))) {
            (Some(error), _) => {
                RIGHT.iter().find(|(limit, _)| error <= *limit).map_or(WRONG, |(_, colour)| *colour)
            }
            (None, Some(error)) if error <= FILLED_WITHIN => FILLED_RIGHT,
            _ => FILLED_WRONG,
        };
        // Without a mask, all pixels count as visible in both views.
        match seen_by_both.is_some() || truth.non_occluded.is_none() {
            true => colour,
            false => colour.map(|channel| channel / 2),
        }
    });
    pixels.flatten().collect()
}

/// Returns unique file names for these pairs: the data set's and the pair's name.
pub fn names<'a>(pairs: impl IntoIterator<Item = (String, &'a str)>) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let plain = |c: char| if c.is_alphanumeric() || "-._".contains(c) { c } else { '_' };
    let name = |(dataset, pair): (String, &str)| {
        let whole = if dataset == pair { pair.to_owned() } else { format!("{dataset}_{pair}") };
        let stem: String = whole.chars().map(plain).collect();
        let stem = stem.trim_start_matches('.');
        let numbered = (2..).map(|number| format!("{stem}-{number}.png"));
        let mut names = std::iter::once(format!("{stem}.png")).chain(numbered);
        let free = names.find(|name| taken.insert(name.to_lowercase()));
        free.expect("there is always another number")
    };
    pairs.into_iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::super::item::Areas;
    use super::super::scoring::Values;
    use super::super::truth::Region;
    use super::*;
    use stereod_core::frame::{DisparityMap, DisparityRange, INVALID, Image};
    use stereod_core::pool::Pooled;

    #[test]
    fn every_kind_of_pixel_has_its_colour() {
        // The truth is 10 px; errors of 0, 0.5, 1, 1.5, 4, 4.0625, then holes, then
        // pixels that only one camera sees.
        let values = [160, 168, 176, 184, 224, 225, INVALID, INVALID, 176, INVALID];
        let range = DisparityRange { min: 0, count: 64 };
        let map = DisparityMap::new(10, 1, range, Pooled::unpooled(values.to_vec()));
        let unfilled = Values::of(&map);
        let mut truth = [Some(10.0); 10];
        truth[7] = Some(11.5);
        let all = Region::of_values(10, &truth);
        truth[8] = None;
        truth[9] = None;
        let non_occluded = Region::of_values(10, &truth);
        let maps = [unfilled.clone(), unfilled.clone().filled()];
        let left = Image::from_fn(10, 1, |_, _| 77);
        let truth = Areas { non_occluded: Some(non_occluded), all: Some(all), ..Areas::default() };
        let compared = Compared { left, maps, map: unfilled, truth, levels: Vec::new() };
        let half = |colour: [u8; 3]| colour.map(|channel| channel / 2);
        // Holes are filled with the 11 px of the pixel after them, and at the end with those before.
        let expected = [
            RIGHT[0].1,
            RIGHT[0].1,
            RIGHT[1].1,
            RIGHT[2].1,
            RIGHT[3].1,
            WRONG,
            FILLED_RIGHT,
            FILLED_RIGHT,
            half(RIGHT[1].1),
            half(FILLED_RIGHT),
        ];
        assert_eq!(errors(&compared), expected.concat());

        let all = Some(Region::of_values(10, &[None; 10]));
        let none = Areas { all, ..Areas::default() };
        assert_eq!(errors(&Compared { truth: none, ..compared }), [38; 30]);
    }

    #[test]
    fn names_are_plain_and_each_has_its_own() {
        let pairs = [
            ("v2", "teddy"),
            ("teddy", "teddy"),
            ("a", "b/c"),
            ("a/b", "c"),
            ("A", "b c"),
            ("..", "x\n"),
        ];
        let expected =
            ["v2_teddy.png", "teddy.png", "a_b_c.png", "a_b_c-2.png", "A_b_c-3.png", "_x_.png"];
        assert_eq!(names(pairs.map(|(dataset, pair)| (dataset.to_owned(), pair))), expected);
    }
}
