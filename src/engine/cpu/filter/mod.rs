//! The filters of [`crate::matching::filter`], vectorised and shared out by rows.
//!
//! Each has memory of its own, made once. Most change the map where it lies; one that cannot has a
//! buffer of its own, into which the stage before it writes.

mod confidence;
mod evidence;
mod fill;
mod median;
mod pass;
mod rays;
mod runs;
mod smoothing;
mod speckle;
mod steady;
pub mod valid_mask;

use std::collections::BTreeMap;

use self::confidence::ConfidenceFilter;
use self::evidence::EvidenceFilter;
use self::fill::FillFilter;
use self::median::MedianFilter;
pub use self::pass::Pass;
use self::smoothing::SmoothingFilter;
use self::speckle::SpeckleFilter;
use self::steady::SteadyFilter;
use super::stage_timer::StageTimer;
use crate::frame::DisparityRange;
use crate::matching::Params;
use crate::matching::filter::Filter;
use crate::matching::history::State;
use crate::memory::Refused;

/// A filter that goes over the finished map.
enum MapFilter {
    Confidence(ConfidenceFilter),
    Median(MedianFilter),
    Speckle(SpeckleFilter),
    Evidence(EvidenceFilter),
    Smoothing(SmoothingFilter),
    Steady(SteadyFilter),
    /// Works on the memory of the confidence.
    ConfidenceOfKnown,
    Fill(FillFilter),
}

impl MapFilter {
    /// Bytes of the filter's memory for maps of this size and so many threads.
    fn bytes_of(filter: Filter, size: (usize, usize), threads: usize) -> u64 {
        match filter {
            // Applied row by row while rows are finished (`valid_mask.rs`).
            Filter::ValidMask => 0,
            Filter::ConfidenceOfKnown => 0,
            Filter::Confidence { .. } => ConfidenceFilter::bytes_of(size, threads),
            Filter::Median(radius) => MedianFilter::bytes_of(radius, size, threads),
            Filter::Speckle(_) => SpeckleFilter::bytes_of(size, threads),
            Filter::Evidence(how) => EvidenceFilter::bytes_of(how, size, threads),
            Filter::Smoothing(_) => SmoothingFilter::bytes_of(size),
            Filter::Steady(_) => SteadyFilter::bytes_of(size, threads),
            Filter::Fill(fill) => FillFilter::bytes_of(fill, size, threads),
        }
    }

    /// The filter with its memory; `None` for one that is applied before the map is whole.
    fn new(
        filter: Filter,
        range: DisparityRange,
        size: (usize, usize),
        threads: usize,
    ) -> Result<Option<Self>, Refused> {
        Ok(match filter {
            Filter::ValidMask => None,
            Filter::Confidence { least, white } => {
                Some(Self::Confidence(ConfidenceFilter::new((least, white), size, threads)?))
            }
            Filter::Median(radius) => Some(Self::Median(MedianFilter::new(radius, size, threads)?)),
            Filter::Speckle(speckle) => {
                Some(Self::Speckle(SpeckleFilter::new(speckle, size, threads)?))
            }
            Filter::Evidence(how) => Some(Self::Evidence(EvidenceFilter::new(how, size, threads)?)),
            Filter::Smoothing(how) => {
                Some(Self::Smoothing(SmoothingFilter::new(how, range, size)?))
            }
            Filter::Steady(how) => {
                Some(Self::Steady(SteadyFilter::new(how, range, size, threads)?))
            }
            Filter::ConfidenceOfKnown => Some(Self::ConfidenceOfKnown),
            Filter::Fill(fill) => Some(Self::Fill(FillFilter::new(fill, size, threads)?)),
        })
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Confidence(confidence) => confidence.bytes(),
            Self::Median(median) => median.bytes(),
            Self::Speckle(speckle) => speckle.bytes(),
            Self::Evidence(evidence) => evidence.bytes(),
            Self::Smoothing(smoothing) => smoothing.bytes(),
            Self::Steady(steady) => steady.bytes(),
            Self::ConfidenceOfKnown => 0,
            Self::Fill(fill) => fill.bytes(),
        }
    }

    /// Where the map has to lie for this filter, if not where it leaves it.
    fn input(&self) -> Option<*mut i16> {
        match self {
            Self::Median(median) => Some(median.input()),
            Self::Confidence(_)
            | Self::Speckle(_)
            | Self::Evidence(_)
            | Self::Smoothing(_)
            | Self::Steady(_)
            | Self::ConfidenceOfKnown
            | Self::Fill(_) => None,
        }
    }

    /// The numbers that it keeps from map to map, where it does, and whether they are of the map before
    /// in the stream.
    fn state(&mut self) -> Option<(&mut [i32], &mut bool)> {
        match self {
            Self::Confidence(_)
            | Self::Median(_)
            | Self::Speckle(_)
            | Self::Evidence(_)
            | Self::ConfidenceOfKnown
            | Self::Fill(_) => None,
            Self::Smoothing(smoothing) => Some(smoothing.state()),
            Self::Steady(steady) => Some(steady.state()),
        }
    }

    /// Filters the map and leaves it in `map`. `sure` is how sure each pixel is, where that is
    /// asked for.
    ///
    /// # Safety
    /// `map` has room for the pass's size, and holds the map unless the filter has an input of its own,
    /// which then does; nobody else touches either; the simd was found on this machine.
    unsafe fn run(&self, pass: &mut Pass<'_>, map: *mut i16, sure: Option<*mut u8>) {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Self::Confidence(confidence) => confidence.run(pass, map),
                Self::Median(median) => median.run(pass, map),
                Self::Speckle(speckle) => speckle.run(pass, map),
                Self::Evidence(evidence) => evidence.run(pass, map, sure),
                Self::Smoothing(smoothing) => smoothing.run(pass, map),
                Self::Steady(steady) => steady.run(pass, map, sure),
                Self::ConfidenceOfKnown => {
                    sure.iter().for_each(|sure| confidence::keep_known(pass, map, *sure));
                }
                Self::Fill(fill) => fill.run(pass, map),
            }
        }
    }
}

/// The filters of an engine that go over the finished map, in order.
pub struct Filters(Vec<(&'static str, MapFilter)>);

impl Filters {
    /// No filters.
    pub fn none() -> Self {
        Self(Vec::new())
    }

    /// The filters that the parameters ask for, for maps of this size and so many threads.
    pub fn new(params: &Params, size: (usize, usize), threads: usize) -> Result<Self, Refused> {
        let made = params.filters().filter_map(|filter| {
            let made = MapFilter::new(filter, params.range, size, threads).transpose()?;
            Some(made.map(|made| (filter.name(), made)))
        });
        Ok(Self(made.collect::<Result<_, _>>()?))
    }

    /// [`Filters::bytes`] before there are any.
    pub fn bytes_of(params: &Params, size: (usize, usize), threads: usize) -> u64 {
        let bytes = params.filters().map(|filter| MapFilter::bytes_of(filter, size, threads));
        bytes.fold(0, u64::saturating_add)
    }

    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        self.0.iter().map(|(_, filter)| filter.bytes()).sum()
    }

    /// Prepares for the next map, of a stream that goes on or begins.
    pub fn begin_map(&mut self, goes_on: bool) {
        self.states().for_each(|(_, _, known)| *known &= goes_on);
    }

    /// Takes note that a map has gone through.
    pub fn end_map(&mut self) {
        self.states().for_each(|(_, _, known)| *known = true);
    }

    /// What the filters remember, by their names; they begin anew.
    pub fn take_states(&mut self) -> BTreeMap<&'static str, State> {
        let states = self.states().filter_map(|(name, numbers, known)| {
            std::mem::take(known).then(|| (name, numbers.to_vec()))
        });
        states.collect()
    }

    /// Takes over what filters of these names remember of the stream.
    pub fn resume(&mut self, states: &BTreeMap<&'static str, State>) {
        for (name, numbers, known) in self.states() {
            let state = states.get(name).filter(|state| state.len() == numbers.len());
            *known = state.is_some();
            state.iter().for_each(|state| numbers.copy_from_slice(state));
        }
    }

    fn states(&mut self) -> impl Iterator<Item = (&'static str, &mut [i32], &mut bool)> {
        self.0.iter_mut().filter_map(|(name, filter)| {
            let (numbers, known) = filter.state()?;
            Some((*name, numbers, known))
        })
    }

    /// The filter that says how sure each pixel is, where it is asked for.
    pub fn confidence(&self) -> Option<&ConfidenceFilter> {
        self.0.iter().find_map(|(_, filter)| match filter {
            MapFilter::Confidence(filter) => Some(filter),
            _ => None,
        })
    }

    /// Where the map has to lie before filter number `next`, which the later ones leave in `output`.
    pub fn input(&self, next: usize, output: *mut i16) -> *mut i16 {
        self.0[next..].iter().find_map(|(_, filter)| filter.input()).unwrap_or(output)
    }

    /// Filters the map, and takes the time of each filter. `sure`: how sure each pixel of the map is, where that is asked for.
    ///
    /// # Safety
    /// The map lies in [`Filters::input`] of number 0, and `sure` has room for it; as `MapFilter::run` else.
    pub unsafe fn run(
        &self,
        pass: &mut Pass<'_>,
        output: *mut i16,
        sure: Option<*mut u8>,
        timer: &mut StageTimer,
    ) {
        for (number, (name, filter)) in self.0.iter().enumerate() {
            // SAFETY: each filter leaves the map where the next one expects it.
            unsafe { filter.run(pass, self.input(number + 1, output), sure) };
            timer.end(name);
        }
    }
}
