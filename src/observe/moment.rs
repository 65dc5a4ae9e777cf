//! Watches whether the two views of a pair show the same moment, as `--offset auto` does for files.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::Observer;
use super::told::{Check, Warnings};
use stereod_core::frame::Matched;
use stereod_core::thread::locked;
use stereod_io::source::pairing::synchronisation::offset::{Rows, find};
use stereod_io::text::rounded;

/// Times after the first pair at which the moments are compared.
const DUE: [Duration; 3] =
    [Duration::from_secs(4), Duration::from_secs(8), Duration::from_secs(16)];

/// Largest number of pairs that are compared.
const MOST: usize = 1000;

/// Smallest number of pairs that are compared at the end of a short recording.
const FEWEST: usize = 24;

/// Smallest shift in pairs that is told: free-running cameras are up to half a frame apart.
const SHIFTED: u64 = 2;

/// Milliseconds by which the right view is too early; `None` while both seem to show one moment.
pub type Shared = Arc<Mutex<Option<f64>>>;

/// Keeps the mean grey levels of the rows of the first pairs, and warns once if those of the right view fit
/// at another time.
pub struct MomentObserver {
    shared: Shared,
    warnings: Warnings,
    /// Offset of the right view's times so far in milliseconds, if known.
    offset_ms: Option<f64>,
    rows: [Vec<Rows>; 2],
    times: Vec<Duration>,
    compared: usize,
    done: bool,
}

impl MomentObserver {
    /// Creates an observer that sets `shared`.
    pub fn new(shared: Shared, offset_ms: Option<f64>, warnings: Warnings) -> Self {
        let (rows, times) = Default::default();
        Self { shared, warnings, offset_ms, rows, times, compared: 0, done: false }
    }

    fn compare(&mut self) {
        let (Some(first), Some(last)) = (self.times.first(), self.times.last()) else { return };
        let period =
            last.saturating_sub(*first).as_secs_f64() / (self.times.len() - 1).max(1) as f64;
        let [left, right] = &self.rows;
        let Ok(shift) = find(left, right, self.times.len() / 2) else { return };
        tracing::debug!("moments of the views: {shift:?}");
        if shift.pictures.unsigned_abs() < SHIFTED {
            return;
        }
        self.done = true;
        let late_ms = shift.pictures as f64 * period * 1e3;
        *locked(&self.shared) = Some(late_ms);
        let cure = match self.offset_ms {
            Some(offset) => format!("give `--offset {}`", rounded(offset - late_ms, 0)),
            None => "give `--offset MS`".to_owned(),
        };
        let text = format!(
            "the two views of a pair show different moments: the right view is {} pairs ({:.0} ms) {} the \
             left one; {cure}, or, for two recordings, `--offset auto`",
            shift.pictures.unsigned_abs(),
            late_ms.abs(),
            if late_ms > 0.0 { "behind" } else { "ahead of" },
        );
        self.warnings.warn(Check::Moment, text);
    }
}

impl Observer for MomentObserver {
    fn observe(&mut self, frame: &Matched) {
        if self.done {
            return;
        }
        let pair = &frame.pair;
        for (rows, image) in self.rows.iter_mut().zip([&pair.left, &pair.right]) {
            rows.push(Rows::of(image));
        }
        self.times.push(pair.timestamp);
        let passed = pair.timestamp.saturating_sub(self.times[0]);
        if self.times.len() >= MOST || DUE.get(self.compared).is_some_and(|&due| passed >= due) {
            self.compared += 1;
            self.compare();
            self.done |= self.compared == DUE.len() || self.times.len() >= MOST;
        }
        if self.done {
            self.rows = Default::default();
        }
    }

    fn finish(&mut self) {
        if !self.done && self.times.len() >= FEWEST {
            self.compare();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stereod_core::frame::{DisparityMap, DisparityRange, Image, StereoPair};
    use stereod_core::pool::Pooled;

    /// Frame `number` of a scene that moves up and down unevenly.
    fn view(number: i64) -> Image {
        let t = number as f64 / 7.0;
        let rows = 7.0 * t.sin() + 5.0 * (1.7 * t + 0.4).sin() + 4.0 * (0.03 * t * t).cos();
        Image::from_fn(32, 96, move |_, y| {
            let y = y as f64 + rows;
            (128.0 + 50.0 * (y / 5.0).sin() + 40.0 * (y / 13.0 + 1.0).sin()) as u8
        })
    }

    fn told(shift: i64, pairs: i64) -> Option<f64> {
        let shared = Shared::default();
        let mut observer = MomentObserver::new(shared.clone(), Some(0.0), Warnings::default());
        for number in 0..pairs {
            let pair = StereoPair::of_stills(view(number), view(number - shift));
            let timestamp = Duration::from_millis(50 * number as u64);
            let range = DisparityRange { min: 0, count: 64 };
            let map = DisparityMap::new(32, 96, range, Pooled::unpooled(vec![0; 32 * 96]));
            observer.observe(&Matched::new(StereoPair { timestamp, ..pair }, map));
        }
        observer.finish();
        *shared.lock().unwrap()
    }

    #[test]
    fn another_moment_is_found_and_the_same_is_not() {
        assert_eq!([told(0, 100), told(1, 100), told(0, 400)], [None; 3]);
        for (shift, pairs) in [(10, 95), (-20, 95), (7, 400)] {
            let late_ms = told(shift, pairs).unwrap_or_else(|| panic!("{shift} in {pairs}"));
            assert!((late_ms - 50.0 * shift as f64).abs() < 1.0, "{late_ms} for {shift}");
        }
        // Too short to tell.
        assert_eq!(told(3, 10), None);
    }
}
