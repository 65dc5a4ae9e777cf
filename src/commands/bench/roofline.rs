//! How near the engine comes to what the machine allows.

use std::time::Duration;

use serde_json::{Value, json};

use crate::commands::prepare::timing::ms;
use crate::engine::cpu::{CpuEngine, CpuOptions, Roof, Work, roof};
use crate::matching::Params;

/// Bounds of the time in which paths can be followed on this machine, beside the time that it took.
pub struct Roofline {
    pub roof: Roof,
    pub work: Work,
    /// Time that the stages took for which the bounds are.
    pub aggregation: Duration,
}

impl Roofline {
    /// Measures the machine. `aggregation`: the time of the stages that follow paths, for pairs of this size.
    pub fn measure(
        params: &Params,
        size: (usize, usize),
        options: CpuOptions,
        aggregation: Duration,
    ) -> anyhow::Result<Self> {
        // As the engine was made, but for what the memory of the process refused it.
        let options = CpuEngine::options_within(u64::MAX, params, size, options)?;
        let work = Work::of(params, size, options)?;
        Ok(Self { roof: roof(options)?, work, aggregation })
    }

    /// The bounds by arithmetic and by memory with their names, the one that binds first.
    fn bounds(&self) -> [(&'static str, Duration); 2] {
        let [arithmetic, memory] = self.roof.least_times(self.work);
        let mut bounds = [("arithmetic", arithmetic), ("memory", memory)];
        bounds.sort_by_key(|(_, least)| std::cmp::Reverse(*least));
        bounds
    }

    /// How much of the bound that binds was reached, in percent.
    fn reached(&self) -> f64 {
        let [(_, least), _] = self.bounds();
        100.0 * least.as_secs_f64() / self.aggregation.as_secs_f64().max(1e-9)
    }

    /// The bounds in a line.
    pub fn text(&self) -> String {
        let [(first, least), (second, other)] = self.bounds();
        format!(
            "{:9.3} ms by {first} ({:.0} % of it reached), {:.3} ms by {second}",
            ms(least),
            self.reached(),
            ms(other)
        )
    }

    /// The bounds and what they were worked out from, as an object.
    pub fn json(&self) -> Value {
        let [arithmetic, memory] = self.roof.least_times(self.work);
        let [(limit, _), _] = self.bounds();
        json!({
            "threads": self.roof.threads,
            "bytes_per_second": self.roof.bytes_per_second,
            "byte_operations_per_second": self.roof.byte_operations_per_second,
            "bytes": self.work.bytes,
            "byte_operations": self.work.byte_operations,
            "arithmetic_ms": ms(arithmetic),
            "memory_ms": ms(memory),
            "limited_by": limit,
            "reached_percent": (10.0 * self.reached()).round() / 10.0,
        })
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// 10 ms by arithmetic, 3 ms by memory, and 16 ms that it took.
    pub fn roofline() -> Roofline {
        Roofline {
            roof: Roof { threads: 2, bytes_per_second: 2e9, byte_operations_per_second: 100e9 },
            work: Work { bytes: 6_000_000, byte_operations: 1_000_000_000 },
            aggregation: Duration::from_millis(16),
        }
    }

    #[test]
    fn the_bound_that_binds_comes_first() {
        let mut roofline = roofline();
        assert_eq!(
            roofline.text(),
            "   10.000 ms by arithmetic (62 % of it reached), 3.000 ms by memory"
        );
        let json = roofline.json();
        assert_eq!(
            (json["arithmetic_ms"].as_f64(), json["memory_ms"].as_f64()),
            (Some(10.0), Some(3.0))
        );
        assert_eq!(
            (json["limited_by"].as_str(), json["reached_percent"].as_f64()),
            (Some("arithmetic"), Some(62.5))
        );
        roofline.work.bytes *= 5;
        assert_eq!(
            roofline.text(),
            "   15.000 ms by memory (94 % of it reached), 10.000 ms by arithmetic"
        );
        assert_eq!(roofline.json()["limited_by"], "memory");
    }
}
