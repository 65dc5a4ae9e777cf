//! Watches whether the candidate disparities suffice while pairs flow past.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::Sink;
use crate::frame::{DisparityMap, DisparityRange, Image, Matched};
use crate::matching::Params;
use crate::range::{Spare, TooFew, may_be_too_short, too_few};
use crate::thread::locked;

/// So far apart are looks at the maps, and at the pictures, which take some milliseconds each.
const STEP: Duration = Duration::from_secs(2);

/// Matches small pictures.
pub type SmallMatcher = Box<dyn Fn(Image, Image, &Params) -> Result<DisparityMap> + Send>;

/// The last finding, for whoever gives an account of the run.
pub type Shared = Arc<Mutex<Option<TooFew>>>;

/// A copy of a shared finding.
pub fn found(shared: &Shared) -> Option<TooFew> {
    *locked(shared)
}

/// Looks at the first pair and later at pairs whose map is suspicious, and warns once where their
/// disparities lie beyond the candidates; once more where the candidates have changed since.
pub struct RangeSink {
    matcher: SmallMatcher,
    shared: Shared,
    /// When the last map was looked at.
    looked: Option<Instant>,
    /// The candidates that were warned of.
    warned: Option<DisparityRange>,
    /// The candidates that `auto` has chosen, if so.
    chosen: Option<DisparityRange>,
}

impl RangeSink {
    /// A sink that keeps `shared` up to date. `chosen`: the candidates that `auto` has chosen, if so.
    pub fn new(matcher: SmallMatcher, shared: Shared, chosen: Option<DisparityRange>) -> Self {
        Self { matcher, shared, looked: None, warned: None, chosen }
    }
}

impl Sink for RangeSink {
    fn name(&self) -> &str {
        "check of the range"
    }

    fn is_check(&self) -> bool {
        true
    }

    fn consume(&mut self, frame: &Arc<Matched>) -> Result<()> {
        let range = frame.disparity.range();
        let due = self.looked.is_none_or(|then| then.elapsed() >= STEP);
        let first = self.looked.is_none();
        if self.warned == Some(range) || !due {
            return Ok(());
        }
        // Maps as well are looked at only so often: most have nothing to tell.
        self.looked = Some(Instant::now());
        if !first && !may_be_too_short(&frame.disparity, range) {
            return Ok(());
        }
        let pair = [&frame.pair.left, &frame.pair.right];
        let found = match too_few(pair, range, Spare::ForLater, &self.matcher) {
            Ok(found) => found,
            Err(error) => {
                // The pictures are matched all the same.
                tracing::debug!("the range of disparities could not be checked: {error:#}");
                return Ok(());
            }
        };
        let chosen = self.chosen == Some(range);
        let found = found.map(|found| TooFew { chosen, ..found });
        if let Some(too_few) = found {
            self.warned = Some(range);
            tracing::warn!("{too_few}");
        }
        *locked(&self.shared) = found;
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}
