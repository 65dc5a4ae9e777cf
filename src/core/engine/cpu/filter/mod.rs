//! The filters of [`crate::matching::filter`], vectorised and distributed over threads by rows. A filter that
//! cannot change the map in place has an input buffer, into which the previous stage writes.

mod confidence;
mod evidence;
mod fill;
mod median;
mod rays;
mod runs;
mod smoothing;
mod spatial;
mod speckle;
mod steady;
pub mod valid_mask;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use self::confidence::ConfidenceFilter;
use self::evidence::EvidenceFilter;
use self::fill::FillFilter;
use self::median::MedianFilter;
use self::smoothing::SmoothingFilter;
use self::spatial::SpatialFilter;
use self::speckle::SpeckleFilter;
use self::steady::SteadyFilter;
use super::memory::Arena;
use super::simd::Simd;
use super::stage_timer::StageTimer;
use super::team::Team;
use crate::frame::{DisparityMap, Image};
use crate::matching::Params;
use crate::matching::filter::Filter;
use crate::matching::history::State;
use crate::memory::Result;

/// A map during filtering.
pub struct Pass<'a> {
    pub size: (usize, usize),
    pub left: &'a Image,
    /// Noise threshold of the left image if a filter uses it, else 0.
    pub threshold: u32,
    /// Prior map of the pair, if it came with one that may be used.
    pub prior: Option<&'a DisparityMap>,
    pub simd: Simd,
    pub team: &'a mut Team,
}

impl Pass<'_> {
    /// Processes all rows. `task` gets the number of a thread and its rows.
    pub fn rows(&mut self, task: impl Fn(usize, Range<usize>) + Sync) {
        self.team.rows(self.size.1, task);
    }
}

pub trait MapFilter: Send + Sync {
    /// Returns the address for the input map, for a filter that cannot work in place.
    fn input(&self) -> Option<*mut i16> {
        None
    }

    /// Returns the state, if any, and whether it belongs to the previous map of the stream.
    fn state(&mut self) -> Option<(&mut [i32], &mut bool)> {
        None
    }

    /// Filters the map and leaves it in `map`. `sure` is the confidence of each pixel, if requested.
    ///
    /// # Safety
    /// `map` has room for the pass's size, and holds the map unless the filter has its own input, which then
    /// does; no other thread accesses either, nor `sure`; the simd was found on this machine.
    unsafe fn run(&self, pass: &mut Pass<'_>, map: *mut i16, sure: Option<*mut u8>);
}

/// Takes the confidence from pixels without a disparity.
struct ConfidenceOfKnown;

impl MapFilter for ConfidenceOfKnown {
    unsafe fn run(&self, pass: &mut Pass<'_>, map: *mut i16, sure: Option<*mut u8>) {
        // SAFETY: the caller's promise.
        sure.iter().for_each(|sure| unsafe { confidence::keep_known(pass, map, *sure) });
    }
}

impl MapFilter for Arc<ConfidenceFilter> {
    unsafe fn run(&self, pass: &mut Pass<'_>, map: *mut i16, _: Option<*mut u8>) {
        // SAFETY: the caller's promise.
        unsafe { ConfidenceFilter::run(self, pass, map) }
    }
}

/// The filters of an engine that go over the finished map, in order.
#[derive(Default)]
pub struct Filters {
    filters: Vec<(&'static str, Box<dyn MapFilter>)>,
    confidence: Option<Arc<ConfidenceFilter>>,
}

impl Filters {
    pub fn new(
        arena: &Arena,
        params: &Params,
        size: (usize, usize),
        threads: usize,
    ) -> Result<Self> {
        let (range, mut all) = (params.range, Self::default());
        for filter in params.filters() {
            let made: Box<dyn MapFilter> = match filter {
                // Applied to each row as it is finished (`valid_mask.rs`).
                Filter::ValidMask => continue,
                Filter::Confidence { least, white } => {
                    let filter = ConfidenceFilter::new(arena, (least, white), size, threads)?;
                    Box::new(all.confidence.insert(Arc::new(filter)).clone())
                }
                Filter::Median(radius) => {
                    Box::new(MedianFilter::new(arena, radius, size, threads)?)
                }
                Filter::Speckle(speckle) => {
                    Box::new(SpeckleFilter::new(arena, speckle, size, threads)?)
                }
                Filter::Evidence(how) => Box::new(EvidenceFilter::new(arena, how, size, threads)?),
                Filter::Spatial(how) => Box::new(SpatialFilter::new(arena, how, size, threads)?),
                Filter::Smoothing(how) => Box::new(SmoothingFilter::new(arena, how, range, size)?),
                Filter::Steady(how) => {
                    Box::new(SteadyFilter::new(arena, how, range, size, threads)?)
                }
                Filter::ConfidenceOfKnown => Box::new(ConfidenceOfKnown),
                Filter::Fill(fill) => Box::new(FillFilter::new(arena, fill, range, size, threads)?),
            };
            all.filters.push((filter.name(), made));
        }
        Ok(all)
    }

    /// Prepares for the next map; `goes_on` if it continues the stream.
    pub fn begin_map(&mut self, goes_on: bool) {
        self.states().for_each(|(_, _, known)| *known &= goes_on);
    }

    pub fn end_map(&mut self) {
        self.states().for_each(|(_, _, known)| *known = true);
    }

    pub fn take_states(&mut self) -> BTreeMap<&'static str, State> {
        let states = self.states().filter_map(|(name, numbers, known)| {
            std::mem::take(known).then(|| (name, numbers.to_vec()))
        });
        states.collect()
    }

    pub fn resume(&mut self, states: &BTreeMap<&'static str, State>) {
        for (name, numbers, known) in self.states() {
            let state = states.get(name).filter(|state| state.len() == numbers.len());
            *known = state.is_some();
            state.iter().for_each(|state| numbers.copy_from_slice(state));
        }
    }

    fn states(&mut self) -> impl Iterator<Item = (&'static str, &mut [i32], &mut bool)> {
        self.filters.iter_mut().filter_map(|(name, filter)| {
            let (numbers, known) = filter.state()?;
            Some((*name, numbers, known))
        })
    }

    pub fn confidence(&self) -> Option<&ConfidenceFilter> {
        self.confidence.as_deref()
    }

    /// Returns where the map before filter number `next` lies: in the input of the first filter from there on
    /// that has its own, else in `output`.
    pub fn input(&self, next: usize, output: *mut i16) -> *mut i16 {
        self.filters[next..].iter().find_map(|(_, filter)| filter.input()).unwrap_or(output)
    }

    /// Filters the map, which lies in [`Filters::input`] of number 0, and records the time of each filter.
    /// Otherwise as `MapFilter::run`.
    pub unsafe fn run(
        &self,
        pass: &mut Pass<'_>,
        output: *mut i16,
        sure: Option<*mut u8>,
        timer: &mut StageTimer,
    ) {
        for (number, (name, filter)) in self.filters.iter().enumerate() {
            // SAFETY: each filter leaves the map in the input of the next one.
            unsafe { filter.run(pass, self.input(number + 1, output), sure) };
            timer.end(name);
        }
    }
}
