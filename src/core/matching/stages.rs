//! Matching cut short after each of its stages, to find the first one that an engine gets wrong.

use crate::matching::block::BlockWindow;
use crate::matching::params::{Median, P2Mode, Params};
use crate::matching::subpixel::Subpixel;

/// Adds a stage to parameters that have those before it.
type Add = fn(&mut Params, &Params);

/// The stages in order; interpolation comes early, because it also shows small differences of sums.
const STAGES: [(&str, Add); 16] = [
    ("cost volume", |_, _| ()),
    ("sub-pixel", |params, of| params.subpixel = of.subpixel),
    ("window sums", |params, of| params.sum_window = of.sum_window),
    ("aggregation", |params, of| {
        (params.p1, params.p2, params.p2_mode) = (of.p1, of.p2, of.p2_mode);
    }),
    ("texture", |params, of| params.window = of.window),
    (PRIOR, |params, of| params.prior = of.prior),
    ("surface", |params, of| params.surface = of.surface),
    ("windows", |params, of| params.windows = of.windows),
    ("uniqueness", |params, of| params.uniqueness = of.uniqueness),
    ("left-right", |params, of| params.left_right = of.left_right),
    ("confidence", |params, of| params.confidence = of.confidence),
    ("median", |params, of| params.median = of.median),
    ("speckle", |params, of| params.speckle = of.speckle),
    ("evidence", |params, of| params.evidence = of.evidence),
    ("spatial", |params, of| params.spatial = of.spatial),
    ("fill", |params, of| params.fill = of.fill),
];

/// The stage that matches a coarser level.
pub(crate) const PRIOR: &str = "prior";

impl Params {
    /// Returns the stages of matching one pair with these parameters, in order, each with parameters that end with it.
    /// Left out: what keeps state from pair to pair, and combinations that [`Params::check`] refuses.
    pub(crate) fn up_to_each_stage(&self) -> Vec<(&'static str, Params)> {
        let whole = self.of_still();
        let mut params = Params {
            // Without penalties each path's sum is the cost itself.
            p1: 0,
            p2: 0,
            p2_mode: P2Mode::Fixed,
            sum_window: if self.is_local() { BlockWindow::PIXEL } else { self.sum_window },
            window: None,
            prior: None,
            surface: false,
            windows: false,
            uniqueness: 0,
            left_right: None,
            subpixel: Subpixel::Off,
            confidence: None,
            median: Median::Off,
            speckle: None,
            evidence: None,
            spatial: None,
            fill: None,
            ..whole.clone()
        };
        let mut stages = Vec::new();
        for (name, add) in STAGES {
            let before = params.clone();
            add(&mut params, &whole);
            if (stages.is_empty() || params != before) && params.check().is_ok() {
                stages.push((name, params.clone()));
            }
        }
        stages
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::{Cost, Fill, FillRule, Paths, Prior, Steady};

    #[test]
    fn stages_are_added_one_by_one_up_to_the_whole() {
        let names = |params: &Params| -> Vec<_> {
            params.up_to_each_stage().into_iter().map(|(name, _)| name).collect()
        };
        let fill = Some(Fill { rule: FillRule::Rays, reach: 9 });
        let params = Params {
            fill,
            windows: true,
            confidence: Some(3),
            steady: Some(Steady { strength: 9 }),
            ..Params::default()
        };
        let all = STAGES.map(|(name, _)| name);
        let without_window_sums = all.iter().copied().filter(|name| *name != "window sums");
        assert_eq!(names(&params), without_window_sums.collect::<Vec<_>>());
        assert_eq!(params.up_to_each_stage().pop().unwrap().1, params.of_still());

        let local = Params { window: None, prior: None, paths: Paths::None, ..params };
        assert_eq!(names(&local)[..3], ["cost volume", "sub-pixel", "window sums"]);
        let whole = Params { fill: None, ..local };
        assert_eq!(whole.up_to_each_stage().pop().unwrap().1, whole.of_still());

        // A window of absolute differences belongs to the cost.
        let cost = Cost::Ad { truncation: 20, window: 5 };
        let prior = Some(Prior { levels: 1, strength: 3 });
        let windowed = Params { prior, ..Params::bare(whole.range, cost, (7, 86)) };
        assert_eq!(names(&windowed), ["cost volume", "aggregation", "prior"]);
    }
}
