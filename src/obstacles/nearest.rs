//! The nearest of many rays that agree.

use stereod_core::obstacles::Nearest;

/// Cells a pixel of disparity, as finely as disparities are stored.
pub const PER_PX: usize = stereod_core::frame::SUBPIXEL as usize;

/// Blocked rays by the inverse of their horizontal distance, in units of disparity: the disparity that the point would have
/// straight ahead. Its noise is nearly the same at all distances, which is why rays agree within a window of these.
#[derive(Clone, Debug, Default)]
pub struct Cells {
    counts: Vec<u32>,
    /// Sum of what the rays rise by metre of horizontal distance, by whole pixels of disparity.
    rises: Vec<f32>,
}

/// How rays become a [`Nearest`].
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Focal length times baseline, in pixels times metres.
    pub scale: f64,
    /// Number of rays that must agree.
    pub pixels: u32,
    /// Whether further rays belong to it as long as they follow each other without a gap: a thing, not a part of one.
    pub grows: bool,
}

impl Cells {
    pub fn clear(&mut self, cells: usize) {
        self.counts.clear();
        self.counts.resize(cells, 0);
        self.rises.clear();
        self.rises.resize(cells / PER_PX + 1, 0.0);
    }

    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Adds a ray that stands for `weight` rays and rises so much by metre of horizontal distance.
    #[inline]
    pub fn add(&mut self, cell: usize, weight: u32, rise: f32) {
        self.counts[cell] += weight;
        self.rises[cell / PER_PX] += weight as f32 * rise;
    }

    /// Returns the nearest group of rays that agree within 1 px; `place` gives the position at a horizontal distance and
    /// what the rays rise by metre of it.
    pub fn nearest(&self, of: &Extent, place: impl Fn(f64, f64) -> [f64; 3]) -> Option<Nearest> {
        let (first, last) = self.group(of)?;
        let group = &self.counts[last..=first];
        let pixels: u32 = group.iter().sum();
        let distance = |share: f64| of.scale * PER_PX as f64 / self.quantile((first, last), share);
        let (distance_m, nearest_m) = (distance(0.5), distance(0.05));
        // The middle half of the rays, as a normal distribution has it.
        let sigma_m = (distance(0.75) - distance(0.25)) / 1.349;
        let (begin, end) = (last / PER_PX, first / PER_PX + 1);
        let rise: f32 = self.rises[begin..end].iter().sum();
        let all = &self.counts[begin * PER_PX..(end * PER_PX).min(self.counts.len())];
        let rise = f64::from(rise) / f64::from(all.iter().sum::<u32>().max(1));
        let position_m = place(distance_m, rise);
        Some(Nearest { distance_m, nearest_m, sigma_m, position_m, pixels })
    }

    /// Returns the nearest and the farthest cell of the group.
    pub fn group(&self, of: &Extent) -> Option<(usize, usize)> {
        let mut sum = 0;
        let mut first = None;
        for cell in (0..self.counts.len()).rev() {
            sum += self.counts[cell];
            if let Some(&left) = self.counts.get(cell + PER_PX) {
                sum -= left;
            }
            if sum >= of.pixels {
                first = Some(cell);
                break;
            }
        }
        let reached = first?;
        // The window ends where the count was reached; it begins with its first ray, and reaches 1 px from there.
        let begin = (reached..(reached + PER_PX).min(self.counts.len()))
            .rev()
            .find(|&cell| self.counts[cell] > 0)?;
        let mut end = (begin + 1).saturating_sub(PER_PX);
        while of.grows && end > 0 {
            let next = end.saturating_sub(PER_PX);
            let more: u32 = self.counts[next..end].iter().sum();
            if more < of.pixels.div_ceil(4) {
                break;
            }
            end = next;
        }
        Some((begin, end))
    }

    /// Returns the place in cells that this share of a group's rays is nearer than.
    fn quantile(&self, (first, last): (usize, usize), share: f64) -> f64 {
        let group = || (last..=first).rev().map(|cell| (cell, f64::from(self.counts[cell])));
        let wanted = share * group().map(|(_, count)| count).sum::<f64>();
        let mut before = 0.0;
        for (cell, count) in group() {
            if before + count >= wanted && count > 0.0 {
                // Rays lie evenly within their cell, whose disparity is in the middle.
                return (cell as f64 + 0.5 - (wanted - before) / count).max(0.5);
            }
            before += count;
        }
        last.max(1) as f64
    }
}
