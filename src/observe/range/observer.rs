//! Observer of the disparity range: warns if the candidates do not suffice for the scene.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::observe::Observer;
use crate::observe::range::{Spare, TooFew, may_be_too_short, too_few};
use crate::observe::told::{Check, Warnings};
use stereod_core::frame::{DisparityMap, DisparityRange, Image, Matched};
use stereod_core::matching::Params;
use stereod_core::thread::locked;

/// Time between two looks at a map or its pair; matching the pair takes some milliseconds.
const STEP: Duration = Duration::from_secs(2);

pub type SmallMatcher = Box<dyn Fn(Image, Image, &Params) -> Result<DisparityMap> + Send>;

pub type Shared = Arc<Mutex<Option<TooFew>>>;

/// Matches the first pair, and later each pair with a suspicious map, at a small size. It warns once if
/// disparities lie beyond the candidates, and again if the candidates have changed since.
pub struct RangeObserver {
    matcher: SmallMatcher,
    shared: Shared,
    warnings: Warnings,
    last_look: Option<Instant>,
    warned: Option<DisparityRange>,
    chosen: Option<DisparityRange>,
}

impl RangeObserver {
    /// Creates an observer that updates `shared`. `chosen`: the disparity range that `auto`
    /// chose, if any.
    pub fn new(
        matcher: SmallMatcher,
        shared: Shared,
        chosen: Option<DisparityRange>,
        warnings: Warnings,
    ) -> Self {
        Self { matcher, shared, warnings, last_look: None, warned: None, chosen }
    }
}

impl Observer for RangeObserver {
    fn observe(&mut self, frame: &Matched) {
        let range = frame.disparity.range();
        let is_first = self.last_look.is_none();
        let is_due = self.last_look.is_none_or(|then| then.elapsed() >= STEP);
        if self.warned == Some(range) || !is_due {
            return;
        }
        // Maps are looked at only so often, too: most of them show nothing.
        self.last_look = Some(Instant::now());
        let pair = [&frame.pair.left, &frame.pair.right];
        let is_suspicious = is_first || may_be_too_short(&frame.disparity, range);
        let found = match is_suspicious
            .then(|| too_few(pair, range, Spare::ForLater, &self.matcher))
            .transpose()
        {
            Ok(found) => found.flatten(),
            Err(error) => {
                // The run does not depend on it.
                tracing::debug!("the range of disparities could not be checked: {error:#}");
                return;
            }
        };
        let chosen = self.chosen == Some(range);
        let found = found.map(|found| TooFew { chosen, ..found });
        match found {
            Some(too_few) => {
                self.warned = Some(range);
                self.warnings.warn(Check::Range, too_few.to_string());
            }
            None => self.warnings.renew(Check::Range, None),
        }
        *locked(&self.shared) = found;
    }
}
