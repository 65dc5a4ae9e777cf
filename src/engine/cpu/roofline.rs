//! The roofline of the machine: how fast its vectors compute and its memory copies, and how much of
//! both following the paths of a pair needs at least. The time that the slower of the two takes is
//! the engine's roofline.

use std::hint::black_box;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::buffers::{Scratch, Shared};
use super::features::Features;
use super::geometry::Geometry;
use super::last_cache;
use super::memory::Arena;
use super::options::CpuOptions;
use super::simd::{Kernel, Simd, Vector};
use super::team::Team;
use crate::matching::Params;
use crate::memory::{Budget, Refused, filled};

/// Operations on a candidate's byte that a path needs, as `path.rs` has them: the smaller
/// neighbour, + P1, the smaller of that and its own, - m, the smaller of that and P2, + C; and the
/// minimum over the candidates that becomes m. The neighbours themselves lie in other vectors
/// (`striping.rs`).
const PATH: u64 = 7;

/// A lane of 16 bits takes the room of this many bytes.
const WIDE: u64 = 2;

/// Operations on 16 bits that adding a path to the sums takes.
const ADD: u64 = 1;

/// Operations on 16 bits by which the winner is found: the least sum, and which candidate has it.
const WINNER: u64 = 2;

/// The same for the winner of the right image: a comparison, and two selections by it (sum and
/// candidate).
const RIGHT_VIEW: u64 = 3;

/// The same for the best rival: which candidates count, and the least of them.
const RIVAL: u64 = 2;

/// Measurements, of which the best counts.
const TURNS: u32 = 7;

/// Chains of operations that do not wait for each other: enough for units that take two clocks, and
/// few enough for 16 registers.
const CHAINS: usize = 8;

/// Operations of a round of a chain, in about the mixture of a path.
const ROUND: u64 = 6;

/// Rounds of a measurement: milliseconds.
const ROUNDS: usize = 1 << 19;

/// Bytes that are copied from, all threads together: twice what the caches hold, within these.
const COPIED: [u64; 2] = [64 << 20, 1 << 30];

/// Speeds that the machine reaches on as many threads as the engine has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Roof {
    /// Number of threads.
    pub threads: usize,
    /// Bytes read and written a second, of what no cache holds.
    pub bytes_per_second: f64,
    /// Operations on bytes a second: minima, saturating sums and differences, a vector's lanes each
    /// counted.
    pub byte_operations_per_second: f64,
}

/// Work that following the paths of a pair, adding them up and picking the winners needs at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Bytes that memory beyond the caches reads and writes.
    pub bytes: u64,
    /// Operations on bytes; one on 16 bits counts twice.
    pub byte_operations: u64,
}

impl Roof {
    /// The least time that the work takes: by its operations, and by its bytes.
    pub fn least_times(&self, work: Work) -> [Duration; 2] {
        [
            Duration::from_secs_f64(work.byte_operations as f64 / self.byte_operations_per_second),
            Duration::from_secs_f64(work.bytes as f64 / self.bytes_per_second),
        ]
    }
}

impl Work {
    /// The work of a pair of this size, without that of coarser levels, of costs and of filters.
    pub fn of(
        params: &Params,
        (width, height): (usize, usize),
        options: CpuOptions,
    ) -> anyhow::Result<Self> {
        let (simd, threads) = options.simd_and_threads()?;
        let lanes = simd.for_candidates(params.range.count).lanes();
        let geometry = Geometry::new(params, (width, height), lanes, options.costs_anew);
        let features = Features::new(params.cost);
        let bytes_of = |threads| {
            let arena = Arena::dry();
            Shared::new(&arena, &geometry, params, &features, threads)?;
            arena.per_thread(threads, || Scratch::new(&arena, &geometry, params, &features))?;
            Ok::<_, Refused>(arena.bytes())
        };
        let shared = bytes_of(0)?;
        let memory = Memory {
            shared,
            of_thread: bytes_of(1)? - shared,
            threads: threads as u64,
            bands: geometry.bands as u64,
            cache: last_cache::bytes(options.cores),
        };
        let pixels = (width * height) as u64;
        Ok(Self {
            bytes: memory.moved() + 3 * pixels,
            byte_operations: pixels * params.range.count as u64 * operations(params),
        })
    }
}

/// Operations on bytes that a candidate of a pixel needs. Each path counts once, however often it
/// is followed.
fn operations(params: &Params) -> u64 {
    let paths = params.paths.count() as u64;
    let right_view = if params.left_right.is_some() { RIGHT_VIEW } else { 0 };
    let rivals = params.uniqueness > 0 || params.confidence.is_some();
    let rival = if rivals { RIVAL } else { 0 };
    paths * (PATH + WIDE * ADD) + WIDE * (WINNER + right_view + rival)
}

/// The engine's memory beside the machine's caches.
struct Memory {
    /// Bytes that all threads share: prepared images, and the vectors where bands meet.
    shared: u64,
    /// Bytes that each thread has for the band that it is at.
    of_thread: u64,
    threads: u64,
    bands: u64,
    /// Bytes that the last caches hold; `None`: nobody knows.
    cache: Option<u64>,
}

impl Memory {
    /// Bytes that do not stay in the caches, and are written once and read once: what all share
    /// once a pair, what a thread has once a band. Caches of which nobody knows hold everything: it
    /// is the least that is told.
    fn moved(&self) -> u64 {
        let Some(cache) = self.cache else { return 0 };
        let shared = self.shared.saturating_sub(cache);
        let scratch = self.of_thread.saturating_mul(self.threads).saturating_sub(cache);
        let of_band = scratch / self.threads.max(1);
        shared.saturating_mul(2).saturating_add(of_band.saturating_mul(2 * self.bands))
    }
}

/// Measures what the machine reaches with the engine's vectors on its threads. Takes about a tenth
/// of a second, and four times the memory of the last caches (128 MiB to 2 GiB) meanwhile.
pub fn roof(options: CpuOptions) -> anyhow::Result<Roof> {
    let (simd, mut team, mut host) = options.start_team()?;
    let cache = last_cache::bytes(options.cores);
    host.run(|| {
        Ok(Roof {
            threads: team.len(),
            bytes_per_second: bandwidth(simd, &mut team, cache)?,
            byte_operations_per_second: byte_operations(simd, &mut team),
        })
    })
}

/// Bytes read and written a second by all threads together.
fn bandwidth(simd: Simd, team: &mut Team, cache: Option<u64>) -> anyhow::Result<f64> {
    let threads = team.len();
    let all = cache.map_or(COPIED[0], |cache| (2 * cache).clamp(COPIED[0], COPIED[1]));
    let len = (all as usize / threads).next_multiple_of(simd.lanes());
    let bytes = 2 * (len * threads) as u64;
    let what = "measuring the memory".to_owned();
    let _held = Budget::of_process().reserve(what, bytes, "a larger --memory")?;
    let buffers: Vec<_> = (0..threads).map(|_| Mutex::new(Ok([Vec::new(), Vec::new()]))).collect();
    let buffer = |thread: usize| buffers[thread].lock().unwrap_or_else(PoisonError::into_inner);
    // Written by the thread that will read it, so that it lies in the memory next to it.
    team.run(&|thread| {
        *buffer(thread) = filled(len, 1).and_then(|from| Ok([from, filled(len, 0)?]));
    });
    for thread in 0..threads {
        if let Err(refused) = &*buffer(thread) {
            return Err((*refused).into());
        }
    }
    let least = best(|| {
        team.run(&|thread| {
            if let Ok([from, to]) = &mut *buffer(thread) {
                // SAFETY: the simd was found on this machine, and both have as many whole vectors.
                unsafe { simd.vectorize(Copying { from, to }) };
            }
        });
    });
    Ok(bytes as f64 / least.as_secs_f64().max(1e-9))
}

/// Operations on bytes a second by all threads together.
fn byte_operations(simd: Simd, team: &mut Team) -> f64 {
    let vectors = ROUNDS as u64 * CHAINS as u64 * ROUND * team.len() as u64;
    let least = best(|| {
        team.run(&|_| {
            // SAFETY: the simd was found on this machine.
            unsafe { simd.vectorize(Chains) };
        });
    });
    (vectors * simd.lanes() as u64) as f64 / least.as_secs_f64().max(1e-9)
}

/// The shortest time of several.
fn best(mut work: impl FnMut()) -> Duration {
    let times = (0..TURNS).map(|_| {
        let began = Instant::now();
        work();
        began.elapsed()
    });
    times.min().unwrap_or_default()
}

/// Copies whole vectors as the engine stores them: through the caches.
struct Copying<'a> {
    from: &'a [u8],
    to: &'a mut [u8],
}

impl Kernel for Copying<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        for (from, to) in self.from.chunks_exact(V::N).zip(self.to.chunks_exact_mut(V::N)) {
            // SAFETY: both have N bytes; the caller vouches for the instructions.
            unsafe { V::load(from.as_ptr()).store(to.as_mut_ptr()) };
        }
        black_box(self.to);
    }
}

/// Operations that wait for nothing but those of their own chain.
struct Chains;

impl Kernel for Chains {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        // SAFETY: the caller vouches for the instructions; `end` has room for a vector.
        unsafe {
            // Nothing that the compiler could work out beforehand.
            let [a, b, c, d, e, f] = [200, 3, 180, 5, 150, 7].map(|n| V::splat(black_box(n)));
            let mut chains = [a; CHAINS];
            for (start, chain) in chains.iter_mut().enumerate() {
                *chain = V::splat(black_box(start as u8));
            }
            for _ in 0..ROUNDS {
                for chain in &mut chains {
                    *chain = chain.min(a).adds(b).min(c).subs(d).min(e).adds(f);
                }
            }
            let all = chains.into_iter().fold(a, |all, chain| all.xor(chain));
            let mut end = [0; 64];
            all.store(end.as_mut_ptr());
            black_box(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cpu::SimdChoice;
    use crate::frame::DisparityRange;
    use crate::matching::{Cost, Paths};

    fn params(paths: Paths) -> Params {
        let cost = Cost::Ad { truncation: 20, window: 1 };
        let range = DisparityRange { min: 0, count: 64 };
        Params { paths, uniqueness: 0, left_right: None, ..Params::bare(range, cost, (5, 50)) }
    }

    #[test]
    fn operations_are_counted_by_what_is_on() {
        let bare = params(Paths::Four);
        // Four paths of 7 and an addition of 16 bits, then minimum and comparison of 16 bits.
        assert_eq!(operations(&bare), 4 * 9 + 4);
        assert_eq!(operations(&params(Paths::Eight)), 8 * 9 + 4);
        assert_eq!(operations(&Params { left_right: Some(1), ..bare.clone() }), 36 + 4 + 6);
        assert_eq!(operations(&Params { uniqueness: 8, ..bare.clone() }), 36 + 4 + 4);
        let both = Params { uniqueness: 8, confidence: Some(1), ..bare };
        assert_eq!(operations(&both), 36 + 4 + 4, "one search for both");
    }

    #[test]
    fn what_the_caches_hold_does_not_move() {
        let memory = |cache| Memory { shared: 100, of_thread: 30, threads: 4, bands: 5, cache };
        assert_eq!(memory(None).moved(), 0);
        assert_eq!(memory(Some(120)).moved(), 0);
        // Of the threads' 120, 20 do not fit: 5 a thread, written and read in each of 5 bands.
        assert_eq!(memory(Some(100)).moved(), 2 * 5 * 5);
        assert_eq!(memory(Some(80)).moved(), 2 * 20 + 2 * 5 * 10);
    }

    #[test]
    fn the_work_grows_with_the_pair() {
        let options = CpuOptions { threads: Some(1), ..CpuOptions::default() };
        let of = |size| Work::of(&params(Paths::Eight), size, options).unwrap();
        assert_eq!(of((40, 30)).byte_operations, 40 * 30 * 64 * 76);
        // The left image, and a map of 16 bits; all else fits any cache.
        assert_eq!(of((40, 30)).bytes, 40 * 30 * 3);
    }

    #[test]
    fn the_least_times_are_work_by_speed() {
        let roof = Roof { threads: 1, bytes_per_second: 2e9, byte_operations_per_second: 100e9 };
        let work = Work { bytes: 6_000_000, byte_operations: 1_000_000_000 };
        assert_eq!(roof.least_times(work), [10, 3].map(Duration::from_millis));
    }

    #[test]
    fn every_kind_of_vectors_has_a_roof() {
        for simd in SimdChoice::available() {
            let roof =
                roof(CpuOptions { threads: Some(2), simd, ..CpuOptions::default() }).unwrap();
            assert_eq!(roof.threads, 2);
            // Slower than any machine, and faster than all there are, even without optimisation.
            assert!((1e8..1e13).contains(&roof.bytes_per_second), "{roof:?}");
            assert!((1e8..1e15).contains(&roof.byte_operations_per_second), "{roof:?}");
        }
    }

    #[test]
    fn copies_are_whole() {
        for simd in SimdChoice::available().into_iter().filter_map(SimdChoice::resolve) {
            let from: Vec<u8> = (0..=255).collect();
            let mut to = vec![0; 256];
            // SAFETY: the simd was found on this machine.
            unsafe { simd.vectorize(Copying { from: &from, to: &mut to }) };
            assert_eq!(from, to);
        }
    }
}
