//! Rows of samples become intensity and colour.

use anyhow::Result;

use super::Layout;
use crate::source::gst::Keep;
use stereod_core::chroma::{Chroma, ChromaPlane, ColourCoding, Differences};
use stereod_core::frame::{Image, intensity, intensity_16};
use stereod_core::picture::tone::Tone;
use stereod_core::pool::Pool;

pub(super) struct Rows<'a> {
    pub data: &'a [u8],
    pub step: usize,
    /// First byte of a row that counts, and number of those bytes.
    pub start: usize,
    pub length: usize,
    pub is_wide: bool,
    pub is_big_endian: bool,
    pub layout: Layout,
    pub size: (usize, usize),
}

impl<'a> Rows<'a> {
    #[inline]
    fn row(&self, y: usize) -> &'a [u8] {
        &self.data[y * self.step + self.start..][..self.length]
    }

    #[inline]
    fn at(&self, x: usize, y: usize) -> u16 {
        let row = self.row(y);
        match (self.is_wide, self.is_big_endian) {
            (false, _) => row[x].into(),
            (true, false) => u16::from_le_bytes([row[2 * x], row[2 * x + 1]]),
            (true, true) => u16::from_be_bytes([row[2 * x], row[2 * x + 1]]),
        }
    }

    /// Returns red, green and blue of a pixel of a colour image or a mosaic.
    #[inline]
    fn pixel(&self, x: usize, y: usize) -> [u16; 3] {
        match self.layout {
            Layout::Colour(order, samples) => order.map(|sample| self.at(x * samples + sample, y)),
            Layout::Bayer(red) => demosaic(self, red, x, y),
            Layout::Grey | Layout::Yuv422(_) | Layout::TwoPlanes(..) => [self.at(x, y); 3],
        }
    }

    pub fn image(&self, keep: &Keep, tone: Tone) -> Result<Image> {
        let (width, height) = self.size;
        let mut grey = keep.pixels.try_take(width * height)?;
        if self.is_wide {
            let mut words = keep.samples.try_take(width * height)?;
            self.fill_words(&mut words);
            tone.reduce(&words, width, &mut grey);
        } else {
            self.fill_bytes(&mut grey);
        }
        let image = Image::new(width, height, grey);
        let Some(pool) = &keep.colours else { return Ok(image) };
        Ok(image.with_chroma(self.chroma(pool)?))
    }

    fn fill_words(&self, words: &mut [u16]) {
        for (y, out) in words.chunks_exact_mut(self.size.0).enumerate() {
            for (x, out) in out.iter_mut().enumerate() {
                *out = match self.layout {
                    Layout::Grey => self.at(x, y),
                    _ => {
                        let [r, g, b] = self.pixel(x, y);
                        intensity_16(r, g, b)
                    }
                };
            }
        }
    }

    fn fill_bytes(&self, grey: &mut [u8]) {
        let width = self.size.0;
        for (y, out) in grey.chunks_exact_mut(width).enumerate() {
            let row = self.row(y);
            match self.layout {
                Layout::Grey | Layout::TwoPlanes(..) => out.copy_from_slice(&row[..width]),
                Layout::Colour([r, g, b], samples) => {
                    for (out, p) in out.iter_mut().zip(row.chunks_exact(samples)) {
                        *out = intensity(p[r], p[g], p[b]);
                    }
                }
                Layout::Yuv422([luma, _]) => {
                    for (out, luma) in out.iter_mut().zip(row[luma..].iter().step_by(2)) {
                        *out = *luma;
                    }
                }
                Layout::Bayer(_) => {
                    for (x, out) in out.iter_mut().enumerate() {
                        let [r, g, b] = self.pixel(x, y).map(|sample| sample as u8);
                        *out = intensity(r, g, b);
                    }
                }
            }
        }
    }

    fn chroma(&self, pool: &Pool<Differences>) -> Result<Option<Chroma>> {
        Ok(match self.layout {
            Layout::Grey => None,
            Layout::Yuv422([_, cb]) => {
                let pairs = |y: usize| {
                    self.row(y).chunks_exact(4).map(move |four| [four[cb], four[cb + 2]])
                };
                Some(of_yuv(self.size, [1, 0], pool, pairs)?)
            }
            Layout::TwoPlanes(shift, cb) => {
                let step = pairs_step(self.step, shift);
                let start = self.step * self.size.1 + pairs_step(self.start, shift);
                let pairs = |y: usize| {
                    let row = self.data[start + y * step..].as_chunks::<2>().0;
                    row.iter().map(move |pair| [pair[cb], pair[1 - cb]])
                };
                Some(of_yuv(self.size, shift, pool, pairs)?)
            }
            Layout::Colour(..) | Layout::Bayer(_) => {
                let shift = if self.is_wide { 8 } else { 0 };
                let rgb = |x, y| self.pixel(x, y).map(|sample| (sample >> shift) as u8);
                Some(of_rgb(self.size, pool, rgb)?)
            }
        })
    }
}

/// Returns the bytes from one row of pairs of colour differences to the next.
pub(super) fn pairs_step(step: usize, shift: [u32; 2]) -> usize {
    step.saturating_mul(2) >> shift[0]
}

/// Returns the colour of a pixel of a Bayer mosaic: bilinear, mirrored at the borders.
#[inline]
fn demosaic(rows: &Rows<'_>, [red_x, red_y]: [usize; 2], x: usize, y: usize) -> [u16; 3] {
    let (width, height) = rows.size;
    let mirror = |at: usize, by: isize, length: usize| match at.checked_add_signed(by) {
        Some(there) if there < length => there,
        // A mosaic of one row or column has no other neighbour.
        _ => at.checked_add_signed(-by).filter(|&there| there < length).unwrap_or(at),
    };
    let mean = |offsets: &[(isize, isize)]| {
        let at = |&(dx, dy): &(isize, isize)| {
            u32::from(rows.at(mirror(x, dx, width), mirror(y, dy, height)))
        };
        let count = offsets.len() as u32;
        ((offsets.iter().map(at).sum::<u32>() + count / 2) / count) as u16
    };
    const BESIDE: [(isize, isize); 2] = [(-1, 0), (1, 0)];
    const ABOVE: [(isize, isize); 2] = [(0, -1), (0, 1)];
    const AROUND: [(isize, isize); 4] = [(-1, 0), (1, 0), (0, -1), (0, 1)];
    const DIAGONAL: [(isize, isize); 4] = [(-1, -1), (1, -1), (-1, 1), (1, 1)];
    let own = rows.at(x, y);
    match (x % 2 == red_x, y % 2 == red_y) {
        (true, true) => [own, mean(&AROUND), mean(&DIAGONAL)],
        (false, false) => [mean(&DIAGONAL), mean(&AROUND), own],
        (false, true) => [mean(&BESIDE), own, mean(&ABOVE)],
        (true, false) => [mean(&ABOVE), own, mean(&BESIDE)],
    }
}

/// Returns the colour of pixels of red, green and blue.
pub(super) fn of_rgb(
    size: (usize, usize),
    pool: &Pool<Differences>,
    pixel: impl Fn(usize, usize) -> [u8; 3],
) -> Result<Chroma> {
    let mut samples = pool.try_take(size.0 * size.1)?;
    for (y, out) in samples.chunks_exact_mut(size.0).enumerate() {
        for (x, out) in out.iter_mut().enumerate() {
            let [r, g, b] = pixel(x, y);
            *out = ColourCoding::differences(intensity(r, g, b), r, b);
        }
    }
    let plane = ChromaPlane::new(size, [0, 0], samples);
    Ok(Chroma::new(ColourCoding::of_rgb(), plane, pool.clone()))
}

/// Returns the colour from rows of colour differences; each pair belongs to 2^`shift` pixels.
fn of_yuv<Pairs: Iterator<Item = Differences>>(
    size: (usize, usize),
    shift: [u32; 2],
    pool: &Pool<Differences>,
    pairs: impl Fn(usize) -> Pairs,
) -> Result<Chroma> {
    let (width, height) = ChromaPlane::size_for(size, shift);
    let mut samples = pool.try_take(width * height)?;
    for (y, out) in samples.chunks_exact_mut(width).enumerate() {
        for (out, pair) in out.iter_mut().zip(pairs(y)) {
            *out = pair;
        }
    }
    // Rec. 601 in limited range, as cameras deliver it.
    let coding = ColourCoding::new(0.299, 0.114, false);
    Ok(Chroma::new(coding, ChromaPlane::new(size, shift, samples), pool.clone()))
}
