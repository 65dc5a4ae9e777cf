//! The compiled kernels of an engine, loaded into its context.

use std::sync::Arc;

use anyhow::Context as _;

use super::driver::{Context, Function, Module, c_name};
use super::launch::{Kernel, Occupancy, Plan, Step, Unit};

/// Largest dynamic shared memory of a block without an explicit request.
const SHARED_UNASKED: u32 = 48 << 10;

#[derive(Debug)]
pub(super) struct Loaded(Vec<(Unit, Module)>);

impl Loaded {
    pub fn new(context: &Arc<Context>, units: Vec<Unit>, code: &[Vec<u8>]) -> anyhow::Result<Self> {
        let load = |(unit, code): (Unit, &Vec<u8>)| Ok((unit, Module::load(context, code)?));
        Ok(Self(units.into_iter().zip(code).map(load).collect::<anyhow::Result<_>>()?))
    }

    /// Returns the kernel, allowed to use this much dynamic shared memory.
    fn function(&self, kernel: &Kernel, shared_bytes: u32) -> anyhow::Result<Function> {
        let described = || format!("kernel `{}` of `{}`", kernel.symbol, kernel.unit);
        let (_, module) = self
            .0
            .iter()
            .find(|(unit, _)| unit.name == kernel.unit)
            .with_context(|| format!("{}: there is no such unit", described()))?;
        let function = module.function(&c_name(kernel.symbol)).with_context(described)?;
        function.prefer_shared().with_context(described)?;
        if shared_bytes > SHARED_UNASKED {
            function.allow_shared(shared_bytes).with_context(described)?;
        }
        Ok(function)
    }

    /// Returns the kernels of a plan, each allowed to use the shared memory of its largest launch.
    pub fn functions(&self, plan: &Plan) -> anyhow::Result<Vec<Function>> {
        let launches = |number: usize| {
            plan.steps.iter().filter_map(move |step| match step {
                Step::Launch(launch) if launch.kernel.0 == number => Some(launch.shared_bytes),
                _ => None,
            })
        };
        let kernels = plan.kernels.iter().enumerate();
        kernels
            .map(|(number, kernel)| self.function(kernel, launches(number).max().unwrap_or(0)))
            .collect()
    }
}

impl Occupancy for Loaded {
    fn resident_blocks(
        &self,
        kernel: &Kernel,
        threads: u32,
        shared_bytes: u32,
    ) -> anyhow::Result<u32> {
        let function = self.function(kernel, shared_bytes)?;
        Ok(function.resident_blocks(threads, shared_bytes)?)
    }
}
