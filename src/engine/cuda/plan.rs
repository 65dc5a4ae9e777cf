//! Which kernels, buffers and launches match pairs of a size with a set of parameters on a device.

use super::device::Properties;
use super::launch::{Arg, Lane, Launch, Occupancy, Plan, Scope, Step, Unit};
use crate::matching::Params;

/// The translation units for these parameters; needs no GPU.
pub fn specialisations(
    params: &Params,
    _size: (usize, usize),
    _properties: &Properties,
) -> Vec<Unit> {
    let unit = Unit::new("local.cu")
        .define("DISPARITIES", params.range.count)
        .define("MIN_DISPARITY", format!("({})", params.range.min))
        .define("TRUNCATION", params.cost.max());
    vec![unit]
}

/// Buffers and launches. `occupancy` knows the compiled units.
///
/// # Errors
/// Where the kernels do not fit the device.
pub fn plan(
    _params: &Params,
    (width, height): (usize, usize),
    _properties: &Properties,
    occupancy: &dyn Occupancy,
) -> anyhow::Result<Plan> {
    let pitch = width.next_multiple_of(16);
    let mut plan = Plan::new(width, height, pitch);
    let marks = plan.buffer("marks", 4 * 32, Scope::Slot);
    let stamp = plan.kernel("local", "stamp");
    let winner = plan.kernel("local", "winner");
    let threads = 128;
    anyhow::ensure!(occupancy.resident_blocks(&plan.kernels[winner.0], threads, 0)? > 0);
    plan.steps = vec![
        Step::Memset { stage: "clear", buffer: marks, value: 0xff, lane: Lane::Main },
        Step::Fork,
        Step::Launch(Launch {
            stage: "stamp",
            kernel: stamp,
            grid: [1, 1, 1],
            block: [32, 1, 1],
            shared_bytes: 0,
            cooperative: true,
            lane: Lane::Side,
            args: vec![Arg::Buffer(marks), Arg::Turn],
        }),
        Step::Join,
        Step::Launch(Launch {
            stage: "winner",
            kernel: winner,
            grid: [(width as u32).div_ceil(threads), height as u32, 1],
            block: [threads, 1, 1],
            shared_bytes: 0,
            cooperative: false,
            lane: Lane::Main,
            args: vec![
                Arg::Buffer(plan.left),
                Arg::Buffer(plan.right),
                Arg::Buffer(marks),
                Arg::Buffer(plan.disparity),
                Arg::U32(pitch as u32),
                Arg::I32(width as i32),
                Arg::I32(height as i32),
                Arg::Turn,
            ],
        }),
    ];
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::super::launch::Kernel;
    use super::*;

    struct Fits(u32);

    impl Occupancy for Fits {
        fn resident_blocks(&self, _: &Kernel, _: u32, _: u32) -> anyhow::Result<u32> {
            Ok(self.0)
        }
    }

    #[test]
    fn every_plan_is_sound() {
        let params = crate::settings::Matching::default().params().unwrap();
        for size in [(1, 1), (640, 480), (8192, 4096)] {
            for sm in [75, 90] {
                let properties = Properties::typical(sm);
                let plan = plan(&params, size, &properties, &Fits(2)).unwrap();
                plan.check().unwrap();
                let units = specialisations(&params, size, &properties);
                for kernel in &plan.kernels {
                    assert!(units.iter().any(|unit| unit.name == kernel.unit), "{kernel:?}");
                }
            }
        }
    }
}
