//! Measures the turn of a right camera that was bumped, while its run goes on.

use std::mem;

use super::Verdict;
use super::model::Sight;
use super::rotation::{Turn, fit_turn, sights_of};
use stereod_core::frame::{StereoGeometry, StereoPair};

/// Pairs of a measurement: three seconds of them.
const PAIRS: usize = 12;

/// Share of the row differences that may be left by a turn that explains them.
const UNEXPLAINED: f64 = 0.5;

/// Collects points while the rows disagree, and hands out the turn that explains them.
pub struct Refiner {
    /// The cameras of the rectified images.
    geometry: StereoGeometry,
    by_pair: Vec<Vec<Sight>>,
    /// Set after a measurement until the rows agree again: pairs of the former calibration are still on their
    /// way.
    is_done: bool,
    found: Box<dyn Fn(Turn) + Send>,
}

impl Refiner {
    pub fn new(geometry: StereoGeometry, found: impl Fn(Turn) + Send + 'static) -> Self {
        Self { geometry, by_pair: Vec::new(), is_done: false, found: Box::new(found) }
    }

    /// Adds a rectified pair that was measured with this result.
    pub(super) fn take(&mut self, verdict: Verdict, pair: &StereoPair) {
        if !matches!(verdict, Verdict::RowsOff | Verdict::NotRectified) {
            self.by_pair.clear();
            self.is_done &= verdict != Verdict::Good;
            return;
        }
        if self.is_done {
            return;
        }
        self.by_pair.push(sights_of(&pair.left, &pair.right));
        if self.by_pair.len() < PAIRS {
            return;
        }
        self.is_done = true;
        let by_pair = mem::take(&mut self.by_pair);
        let size = (pair.right.width(), pair.right.height());
        match fit_turn(&by_pair, size, &self.geometry) {
            Some(turn) if turn.left_px <= UNEXPLAINED * turn.rows_px => (self.found)(turn),
            _ => tracing::warn!(
                "the calibration is not refined: no turn of the right camera explains how the rows differ"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use stereod_core::frame::Image;

    const GEOMETRY: StereoGeometry = StereoGeometry {
        focal_px: 300.0,
        baseline_m: 0.1,
        centre_x_px: 159.5,
        centre_y_px: 119.5,
        right_centre_x_px: 159.5,
    };

    /// A pair whose right view is this many rows lower.
    fn pair(lower: usize) -> StereoPair {
        let eye = |down: usize| {
            Image::from_fn(320, 240, |x, y| {
                let (column, row) = (x / 3, (y + 240 - down) / 3);
                let noise = column.wrapping_mul(0x9e37_79b9) ^ row.wrapping_mul(0x85eb_ca6b);
                (noise.wrapping_mul(0xc2b2_ae35) >> 11) as u8
            })
        };
        StereoPair::of_stills(eye(0), eye(lower))
    }

    #[test]
    fn a_turn_is_handed_out_once_until_the_rows_agree_again() {
        let (sender, turns) = mpsc::channel();
        let mut refiner = Refiner::new(GEOMETRY, move |turn| sender.send(turn).unwrap());
        let off = pair(3);
        let mut take = |verdict, times| {
            (0..times).for_each(|_| refiner.take(verdict, &off));
            turns.try_iter().collect::<Vec<_>>()
        };
        assert_eq!(take(Verdict::Good, PAIRS), []);
        assert_eq!(take(Verdict::RowsOff, PAIRS - 1), []);
        // Another verdict between them makes the points void.
        assert_eq!(take(Verdict::Wandering, 1), []);
        assert_eq!(take(Verdict::RowsOff, PAIRS - 1), []);
        let [turn] = &take(Verdict::RowsOff, 1)[..] else { panic!("one turn") };
        // Three rows at a focal length of 300 pixels, in the middle of the image.
        let pitch = turn.degrees().x.to_radians() * 300.0;
        assert!((pitch + 3.0).abs() < 0.2 && turn.pairs == PAIRS, "{turn} {pitch}");
        assert_eq!(take(Verdict::RowsOff, 3 * PAIRS), []);
        assert_eq!(take(Verdict::Unsure, 1), []);
        assert_eq!(take(Verdict::RowsOff, PAIRS), []);
        assert_eq!(take(Verdict::Good, 1), []);
        assert_eq!(take(Verdict::RowsOff, PAIRS).len(), 1);
    }

    #[test]
    fn rows_that_no_turn_explains_refine_nothing() {
        let found = |_| panic!("no turn");
        let mut refiner = Refiner::new(GEOMETRY, found);
        let right = Image::from_fn(320, 240, |x, y| (x ^ y) as u8);
        let unlike = StereoPair::of_stills(pair(0).left, right);
        (0..PAIRS).for_each(|_| refiner.take(Verdict::RowsOff, &unlike));
    }
}
