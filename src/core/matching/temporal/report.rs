//! Report of the stage about a pair.

use super::layout::Header;
use super::shifts::{Shift, UNIT};
use crate::frame::TemporalReport;

/// Builds the report for a pair of this size from the state's header.
pub fn report(header: &Header, size: (usize, usize)) -> TemporalReport {
    let variance = (header.variances[0] + header.variances[1]) as f32 / 512.0;
    let spread = header.spread as f32 / 256.0;
    let after = variance * spread / (1.0 + spread);
    let Shift { by, known, .. } = header.frame_shift;
    TemporalReport {
        remembered: header.count as u32,
        shift: known.then(|| by.map(|by| by as f32 / UNIT as f32)),
        noise: (header.spread > 0).then(|| [variance.sqrt(), after.sqrt()]),
        moving: header.moving as f32 / (2 * size.0 * size.1) as f32,
    }
}
