//! A network with the places of its values on the device.

use super::device::Gpu;
use crate::engine::HalvedNetwork;
use crate::engine::interface::Refusal;
use crate::engine::learned::CURE;
use crate::engine::learned::device::Schedule;

/// A network for pairs of one size.
pub(super) struct Planned {
    pub network: HalvedNetwork,
    /// Size of the pairs.
    pub pairs: (usize, usize),
    pub schedule: Schedule,
}

impl Planned {
    /// Fails if a buffer of the device cannot hold the values.
    pub fn new(gpu: &Gpu, network: &HalvedNetwork, pairs: (usize, usize)) -> Result<Self, Refusal> {
        let size = network.image_size(pairs);
        let schedule = Schedule::new(&network.network, size);
        if schedule.bytes as u64 > gpu.buffer_limit() {
            return Err(Refusal::Memory(format!(
                "the network as prior at {}x{} needs a buffer of {} MiB, but those of {} hold {} MiB at most; use \
                 {CURE}, or `engine=cpu`",
                size.0,
                size.1,
                schedule.bytes >> 20,
                gpu.info.name,
                gpu.buffer_limit() >> 20
            )));
        }
        Ok(Self { network: network.clone(), pairs, schedule })
    }

    /// How often the images are halved.
    pub fn halvings(&self) -> usize {
        self.network.halvings as usize
    }
}
