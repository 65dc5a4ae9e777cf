//! Memory estimates of an engine, before any allocation.

use super::launch::{Buffer, Plan, Scope};
use crate::memory::{Estimate, Size};

/// Device memory that stays free for the driver and other programs: this much, or ...
const RESERVE: usize = 128 << 20;

/// ... this part of the free memory, if that is less.
const RESERVE_PART: usize = 8;

/// Part of the device's memory for the volumes of all frames in flight together, so that a device that shares
/// 8 GiB with the processor leaves most of them to others.
const VOLUMES_PART: usize = 8;

/// Granularity of the driver's device memory.
const PIECE: usize = 512;

/// Sizes of an engine's allocations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Memory of the device in bytes.
    pub device: usize,
    /// Pinned host memory in bytes, without the maps held by outputs.
    pub pinned: usize,
    /// Largest buffers of the device, largest first: name and bytes of all slots together.
    pub largest: Vec<(&'static str, usize)>,
    /// Frames in flight.
    pub slots: usize,
}

/// Number of concurrently computed frames out of `slots` in flight: limited by the volumes' part of `total`
/// bytes, and by the `allowed` bytes minus all other memory.
pub fn concurrent_frames(plan: &Plan, slots: usize, total: usize, allowed: usize) -> usize {
    let volumes =
        plan.buffers.iter().filter(|buffer| buffer.scope == Scope::Concurrent).map(pieces);
    let volumes = volumes.fold(0, usize::saturating_add).max(1);
    let others =
        Budget::of(plan, slots).device.saturating_sub(plan.concurrent.saturating_mul(volumes));
    let room = (total / VOLUMES_PART).min(allowed.saturating_sub(others));
    (room / volumes).clamp(1, slots.max(1))
}

/// Device memory of a buffer in bytes.
fn pieces(buffer: &Buffer) -> usize {
    buffer.bytes.max(1).next_multiple_of(PIECE)
}

/// Bytes of device memory the engine may take, given the free bytes and the user's limit.
pub fn allowed(free: usize, given: Option<u64>) -> usize {
    let left = free - RESERVE.min(free / RESERVE_PART);
    given.map_or(left, |given| given.min(left as u64) as usize)
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the GPU has too little free memory: {} are needed ({largest}), {} of {} are {}; fewer \
     disparities, a smaller picture, fewer frames in flight (`in_flight=1`) or \
     `engine=cpu` need less",
    Size(*.needed as u64), Size(*.free as u64), Size(*.total as u64),
    if *.limited { "allowed (`memory`)" } else { "free" }
)]
pub struct TooLarge {
    pub needed: usize,
    /// Usable bytes, at most the free ones.
    pub free: usize,
    /// Set if the user's limit is below the free memory.
    pub limited: bool,
    pub total: usize,
    /// Names and sizes of the largest buffers.
    pub largest: String,
}

impl Budget {
    pub fn of(plan: &Plan, slots: usize) -> Self {
        let count = |scope| match scope {
            Scope::Slot => slots,
            Scope::Concurrent => plan.concurrent,
            Scope::Engine | Scope::Sequence => 1,
        };
        let sizes = plan.buffers.iter().map(|b| (b.name, pieces(b).saturating_mul(count(b.scope))));
        let mut largest: Vec<_> = sizes.collect();
        let device = largest.iter().fold(0usize, |sum, (_, bytes)| sum.saturating_add(*bytes));
        largest.sort_by_key(|&(_, bytes)| std::cmp::Reverse(bytes));
        largest.truncate(3);
        let host = [plan.left, plan.right, plan.disparity].into_iter();
        let host = host.chain(plan.rectified.into_iter().flatten()).chain(plan.confidence);
        let passed = plan.passed.iter().flat_map(|passed| passed.whitened);
        let host = host.chain(passed);
        let pinned = host.map(|id| plan.buffers[id.0].bytes).fold(0, usize::saturating_add);
        let pinned = pinned.saturating_mul(slots);
        Budget { device, pinned, largest, slots }
    }

    pub fn estimate(&self) -> Estimate {
        Estimate { host: self.pinned as u64, device: self.device as u64 }
    }

    /// Checks that it fits the device and the user's limit in bytes.
    pub fn check(&self, free: usize, total: usize, allowed: Option<u64>) -> Result<(), TooLarge> {
        let (left, allowed) = (self::allowed(free, None), self::allowed(free, allowed));
        if self.device <= allowed {
            return Ok(());
        }
        let limited = allowed < left;
        let free = if limited { allowed } else { free };
        let largest: Vec<String> = self
            .largest
            .iter()
            .map(|(name, bytes)| format!("{name} {}", Size(*bytes as u64)))
            .collect();
        Err(TooLarge { needed: self.device, free, limited, total, largest: largest.join(", ") })
    }
}

#[cfg(test)]
mod tests {
    use super::super::launch::Input;
    use super::*;

    fn plan() -> Plan {
        let mut plan = Plan::new(1000, 512, [Input { width: 1000, height: 512, pitch: 1024 }; 2]);
        plan.buffer("paths", 100 << 20, Scope::Slot);
        plan.buffer("shared", 10 << 20, Scope::Engine);
        plan.buffer("volume", 1 << 20, Scope::Concurrent);
        plan.concurrent = 2;
        plan.table("table", vec![0; 256]);
        plan
    }

    #[test]
    fn slots_are_counted_where_they_have_their_own() {
        let budget = Budget::of(&plan(), 3);
        let (picture, map) = (1024 * 512, 2 * 1000 * 512);
        assert_eq!(
            budget.device,
            3 * (2 * picture + map + (100 << 20)) + (2 << 20) + (10 << 20) + 512
        );
        assert_eq!(budget.pinned, 3 * (2 * picture + map));
        let estimate = budget.estimate();
        assert_eq!((estimate.host, estimate.device), (budget.pinned as u64, budget.device as u64));
        assert_eq!(budget.largest[0], ("paths", 300 << 20));
        assert_eq!(budget.largest[1], ("shared", 10 << 20));
    }

    #[test]
    fn as_many_frames_are_computed_as_there_are_volumes_for() {
        let plan = plan();
        let device = Budget::of(&plan, 3).device;
        let volume = 1 << 20;
        let frames = |total, allowed| concurrent_frames(&plan, 3, total, allowed);
        assert_eq!(frames(8 << 30, 8 << 30), 3);
        // The budget includes two of them.
        assert_eq!(
            [device + volume, device, device - volume, 0].map(|n| frames(8 << 30, n)),
            [3, 2, 1, 1]
        );
        assert_eq!(
            [24 * volume, 16 * volume, volume].map(|total| frames(total, 8 << 30)),
            [3, 2, 1]
        );
        assert_eq!((allowed(8 << 30, Some(1 << 20)), allowed(800, None)), (1 << 20, 700));
    }

    #[test]
    fn what_does_not_fit_is_told_with_the_cure() {
        let budget = Budget::of(&plan(), 3);
        assert_eq!(budget.check(1 << 30, 8 << 30, None), Ok(()));
        assert_eq!(budget.check(1 << 30, 8 << 30, Some(318 << 20)), Ok(()));
        let error = budget.check(1 << 30, 8 << 30, Some(100 << 20)).unwrap_err().to_string();
        assert!(error.contains("100 MiB of 8.0 GiB are allowed (`memory`)"), "{error}");
        let error = budget.check(330 << 20, 8 << 30, Some(1 << 40)).unwrap_err().to_string();
        for part in ["318 MiB are needed", "paths 300 MiB", "330 MiB of 8.0 GiB", "`engine=cpu`"] {
            assert!(error.contains(part), "{part}: {error}");
        }
        assert!(budget.check(0, 8 << 30, None).is_err());
    }
}
