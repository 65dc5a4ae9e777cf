//! Matching with a network as the prior: it says roughly where surfaces are, and matching finds the disparity.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::cpu::{CpuOptions, CpuRectifier};
use super::interface::{Engine, PairSpec, Refusal};
use super::learned::LearnedPrior;
use super::learned::device::HalvedNetwork;
use super::{Choice, Options, PriorFrom, predictor};
use crate::frame::{DisparityMap, DisparityRange, Image, Matched, StereoPair};
use crate::matching::levels::prior_map_size;
use crate::matching::prior::half_range;
use crate::matching::pyramid::half;
use crate::matching::tiles::TileLayout;
use crate::matching::{History, Params};

/// A network that predicts disparities.
pub trait Predictor: Send {
    /// Returns the disparity of the half-size images of a rectified pair, row by row in 1/16 px of that size;
    /// [`INVALID`](crate::frame::INVALID) where it is unknown.
    fn predict(&mut self, pair: &StereoPair) -> anyhow::Result<Vec<i16>>;

    /// Describes the network in a few words.
    fn description(&self) -> String;
}

/// Matches pairs with a network's disparity as their prior map.
pub struct PriorEngine {
    predictor: Box<dyn Predictor>,
    /// Width of the prior map, and candidates of the half-size images.
    width: usize,
    range: DisparityRange,
    rectifier: Option<CpuRectifier>,
    /// Matches rectified pairs with prior maps.
    sgm: Box<dyn Engine>,
    /// For each pair in flight, when it was submitted and how long its network ran.
    ran: VecDeque<(Instant, Duration)>,
}

/// Makes the engine for pairs by `make`. If a network predicts their prior maps, it runs on the CPU before.
pub fn guided(
    params: &Params,
    pairs: &PairSpec,
    options: &Options,
    make: impl FnOnce(&Params, &PairSpec) -> anyhow::Result<Box<dyn Engine>>,
) -> anyhow::Result<Box<dyn Engine>> {
    match options.prior_from {
        PriorFrom::HalfSize => make(params, pairs),
        _ => Ok(Box::new(PriorEngine::new(params, pairs, options, make)?)),
    }
}

/// Returns the parameters for matching with prior maps of a network, and the maps' size for pairs of a size.
pub fn with_network(
    params: &Params,
    pairs: (usize, usize),
) -> Result<(Params, (usize, usize)), Refusal> {
    let params = params.clone().with_prior_map(true);
    match (prior_map_size(&params, pairs), params.prior) {
        (Some(size), _) => Ok((params, size)),
        (None, None) => Err(Refusal::Parameter(
            "a network as prior needs `prior` 1 to 3, which the preset, this cost or `paths` turns off".into(),
        )),
        (None, Some(_)) => Err(Refusal::Size(format!(
            "pictures of {}x{} pixels are too small for a prior; leave the network out",
            pairs.0, pairs.1
        ))),
    }
}

/// Returns the prior map that a network predicts for a rectified pair on the CPU.
pub fn predicted(
    pair: &StereoPair,
    params: &Params,
    options: &Options,
) -> anyhow::Result<DisparityMap> {
    let pairs = (pair.left.width(), pair.left.height());
    let (params, size) = with_network(params, pairs)?;
    let values = predictor(&params, pairs, size, options)?.predict(pair)?;
    Ok(DisparityMap::of_values(size.0, half_range(params.range), values))
}

impl PriorEngine {
    /// Makes the engine. `sgm` makes the one that matches, for these parameters and rectified pairs.
    fn new(
        params: &Params,
        pairs: &PairSpec,
        options: &Options,
        sgm: impl FnOnce(&Params, &PairSpec) -> anyhow::Result<Box<dyn Engine>>,
    ) -> anyhow::Result<Self> {
        let (params, size) = with_network(params, pairs.size)?;
        let rectifier = pairs.rectifier.clone();
        Ok(Self {
            predictor: predictor(&params, pairs.size, size, options)?,
            width: size.0,
            range: half_range(params.range),
            rectifier: rectifier.map(|maps| CpuRectifier::new(maps, options.cpu)).transpose()?,
            sgm: sgm(&params, &PairSpec { rectifier: None, ..pairs.clone() })?,
            ran: VecDeque::new(),
        })
    }
}

/// The network of the program, on the CPU.
pub struct Learned {
    learned: LearnedPrior,
    network: HalvedNetwork,
}

impl Learned {
    /// Prepares the network for pairs and prior maps of these sizes.
    pub fn new(
        network: HalvedNetwork,
        pairs: (usize, usize),
        size: (usize, usize),
        cpu: CpuOptions,
    ) -> anyhow::Result<Self> {
        Ok(Self { learned: LearnedPrior::new(&network, pairs, size, cpu)?, network })
    }
}

impl Predictor for Learned {
    fn predict(&mut self, pair: &StereoPair) -> anyhow::Result<Vec<i16>> {
        let mut halves: Option<[Image; 2]> = None;
        for _ in 0..self.network.halvings {
            let views = halves.as_ref().map_or([&pair.left, &pair.right], |views| views.each_ref());
            halves = Some(views.map(half));
        }
        let [left, right] =
            halves.as_ref().map_or([&pair.left, &pair.right], |views| views.each_ref());
        Ok(self.learned.predict(left, right))
    }

    fn description(&self) -> String {
        self.network.description()
    }
}

impl Engine for PriorEngine {
    fn description(&self) -> String {
        format!("{}, prior of {}", self.sgm.description(), self.predictor.description())
    }

    fn depth(&self) -> usize {
        self.sgm.depth()
    }

    fn submit(&mut self, pair: StereoPair) -> anyhow::Result<()> {
        let submitted = Instant::now();
        let mut pair = match &mut self.rectifier {
            Some(rectifier) => rectifier.rectify(pair)?,
            None => pair,
        };
        let begun = Instant::now();
        let values = self.predictor.predict(&pair)?;
        let took = begun.elapsed();
        pair.prior = Some(Box::new(DisparityMap::of_values(self.width, self.range, values)));
        self.sgm.submit(pair)?;
        self.ran.push_back((submitted, took));
        Ok(())
    }

    fn collect(&mut self) -> anyhow::Result<Option<Matched>> {
        let Some(mut matched) = self.sgm.collect()? else { return Ok(None) };
        if let Some((submitted, took)) = self.ran.pop_front() {
            matched.submitted = submitted;
            matched.stages.insert(0, ("network", took));
        }
        Ok(Some(matched))
    }

    fn set_profiling(&mut self, on: bool) {
        self.sgm.set_profiling(on);
    }

    fn take_history(&mut self) -> anyhow::Result<History> {
        self.sgm.take_history()
    }

    fn resume(&mut self, history: History) -> anyhow::Result<()> {
        self.sgm.resume(history)
    }

    fn choice(&self) -> Choice {
        self.sgm.choice()
    }

    fn layout(&self) -> Option<&TileLayout> {
        self.sgm.layout()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::create;
    use crate::frame::{INVALID, Image};
    use crate::matching::learned::{Cells, Network, prior_map};
    use crate::matching::{Fill, FillRule, match_next};

    /// A textured plane with a bare patch, and steps in its disparity.
    fn pair() -> StereoPair {
        let grey = |x: usize, y: usize| {
            let blot = (x / 3).wrapping_mul(0x9e37_79b9) ^ (y / 3).wrapping_mul(0x85eb_ca6b);
            60 + ((blot.wrapping_mul(0xc2b2_ae35) >> 13) % 120) as u8
        };
        let view = |eye: usize| {
            Image::from_fn(200, 120, |x, y| match (40..160).contains(&x) && (30..90).contains(&y) {
                true => 100,
                false => grey(x + eye * (6 + y / 40 * 4), y),
            })
        };
        StereoPair::of_stills(view(0), view(1))
    }

    #[test]
    fn the_network_of_the_program_guides_the_matching() {
        // The network sees the images, or their halves if the range is wider than its own.
        for (count, halvings) in [(48, 0), (192, 0), (195, 1)] {
            let params = Params::default().with_disparities(count);
            let options =
                Options { prior_from: PriorFrom::Learned(Cells::Auto), ..Options::default() };
            let pairs = PairSpec::rectified(200, 120);
            let mut engine = create(&Choice::Cpu, &params, &pairs, &options).unwrap();
            assert!(engine.description().contains("prior of the network"));
            engine.submit(pair()).unwrap();
            let matched = engine.collect().unwrap().unwrap();
            assert!(matched.stages.iter().any(|(name, _)| *name == "network"));

            let StereoPair { left, right, .. } = pair();
            let [left, right] =
                if halvings == 0 { [left, right] } else { [&left, &right].map(half) };
            let own = Network::own(Cells::Fine, (left.width(), left.height()));
            let mut predicted = own.run(&left, &right);
            predicted.step <<= halvings;
            let expected = prior_map(&predicted, (100, 60));
            assert!(expected.iter().filter(|&&value| value != INVALID).count() > 100);
            let prior = matched.pair.prior.as_ref().unwrap();
            assert!(prior.values() == expected, "{count} candidates");
            let params = params.with_prior_map(true);
            let map = match_next(&matched.pair, &params, &mut History::default()).map;
            assert!(map.values() == matched.disparity.values(), "{count} candidates");
        }
    }

    #[test]
    fn a_hole_filled_by_the_network_has_no_confidence() {
        let network = Options { prior_from: PriorFrom::Learned(Cells::Auto), ..Options::default() };
        let matched = |rule: Option<FillRule>, options: &Options| {
            let fill = rule.map(|rule| Fill { rule, reach: 3 });
            let params = Params { fill, confidence: Some(200), ..Params::default() };
            let pairs = PairSpec::rectified(200, 120);
            let mut engine = create(&Choice::Cpu, &params, &pairs, options)?;
            engine.submit(pair())?;
            let matched = engine.collect()?.unwrap();
            let confidence = matched.confidence.unwrap().pixels().to_vec();
            anyhow::Ok((matched.disparity.values().to_vec(), confidence))
        };
        let (before, sure) = matched(None, &network).unwrap();
        for rule in [FillRule::Network, FillRule::NetworkOrRays] {
            let (after, confidence) = matched(Some(rule), &network).unwrap();
            let filled = before.iter().zip(&after).filter(|(before, after)| before != after);
            assert!(filled.clone().count() > 100);
            assert!(filled.into_iter().all(|(&before, _)| before == INVALID));
            assert_eq!(confidence, sure);

            let error = matched(Some(rule), &Options::default()).unwrap_err().to_string();
            assert!(error.contains("set `prior` to `network`"), "{error}");
        }
    }
}
