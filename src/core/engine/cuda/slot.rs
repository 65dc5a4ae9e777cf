//! Frames in flight: each slot has pinned memory for its pictures, its own buffers on the device, and the
//! events that order upload, computation and download on three streams, so that different frames overlap.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::driver::{Context, Event, PinnedMemory, Result, Stream, check};
use super::frames::{Chained, StreamPair, Turn, Work};
use super::launch::{BufferId, Input};
use crate::frame::{DisparityMap, INVALID, Image, StageTime, StereoPair};
use cudarc::driver::sys;

/// Time of busy waiting for a frame before the thread sleeps: waking up takes longer than a small frame.
const SPIN: Duration = Duration::from_micros(1500);

/// One frame in flight.
pub(super) struct Slot {
    work: Work,
    /// Left and right picture, `pitch * height` bytes each.
    input: PinnedMemory,
    /// Device addresses of the pictures, the map, its confidence and the rectified pictures.
    addresses: Addresses,
    upload_begin: Event,
    uploaded: Event,
    download_begin: Event,
    downloaded: Event,
    /// Number of frames it has run.
    turns: u32,
    /// The frame that it computes now.
    pub in_flight: Option<InFlight>,
}

/// Device addresses of a slot's inputs and outputs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addresses {
    /// Uploaded pictures, left and right.
    pub input: [u64; 2],
    /// Rectified pictures, if the device makes them.
    pub rectified: Option<[u64; 2]>,
    /// The map.
    pub disparity: u64,
    /// Confidence of each pixel, if requested.
    pub confidence: Option<u64>,
    /// The left image without its background, if requested.
    pub whitened: Option<u64>,
    /// Report of the spatio-temporal stage, if it runs.
    pub report: Option<u64>,
    /// Address and number of values of the prior map, if pairs may come with one.
    pub prior: Option<(u64, usize)>,
}

/// A frame that was submitted and not yet collected.
pub(super) struct InFlight {
    pub pair: StereoPair,
    pub submitted: Instant,
    pub output: Output,
}

/// Host memory for the outputs of a frame.
pub(super) struct Output {
    pub map: PinnedMemory,
    pub confidence: Option<PinnedMemory>,
    pub rectified: Option<[PinnedMemory; 2]>,
    pub whitened: Option<PinnedMemory>,
    pub report: Option<PinnedMemory>,
}

impl Slot {
    pub fn new(
        context: &Arc<Context>,
        work: Work,
        inputs: [Input; 2],
        addresses: Addresses,
    ) -> Result<Self> {
        let event = || Event::new(context);
        Ok(Self {
            work,
            input: PinnedMemory::zeroed(context, inputs[0].bytes() + inputs[1].bytes())?,
            addresses,
            upload_begin: event()?,
            uploaded: event()?,
            download_begin: event()?,
            downloaded: event()?,
            turns: 0,
            in_flight: None,
        })
    }

    /// Enqueues the upload of the prior map, which belongs to the pair that is uploaded next.
    pub fn upload_prior(&self, prior: Option<&DisparityMap>, stream: &Stream) -> Result<()> {
        let Some((address, count)) = self.addresses.prior else { return Ok(()) };
        let Some(prior) = prior else {
            // SAFETY: the buffer has this many values.
            return check("clearing the prior map", unsafe {
                sys::cuMemsetD16Async(address, INVALID as u16, count, stream.raw())
            });
        };
        // SAFETY: both have this many values; the pair stays until its frame is collected.
        check("uploading the prior map", unsafe {
            let bytes = count * size_of::<i16>();
            sys::cuMemcpyHtoDAsync_v2(address, prior.values().as_ptr().cast(), bytes, stream.raw())
        })
    }

    /// Enqueues the upload of both pictures, from pinned memory or a copy.
    pub fn upload(&mut self, pair: &StereoPair, inputs: [Input; 2], stream: &Stream) -> Result<()> {
        let [left_pitch, right_pitch] = inputs.map(|input| input.pitch);
        if pair.left.is_pinned() && pair.right.is_pinned() {
            self.upload_begin.record(stream)?;
            upload_rows(&pair.left, self.addresses.input[0], left_pitch, stream)?;
            upload_rows(&pair.right, self.addresses.input[1], right_pitch, stream)?;
            return self.uploaded.record(stream);
        }
        // SAFETY: the memory is this slot's, whose last frame was collected, so no device reads it.
        let input = unsafe {
            std::slice::from_raw_parts_mut(self.input.address().as_ptr(), self.input.bytes())
        };
        let (left, right) = input.split_at_mut(inputs[0].bytes());
        copy_rows(&pair.left, left_pitch, left);
        copy_rows(&pair.right, right_pitch, right);
        self.upload_begin.record(stream)?;
        for (address, picture) in self.addresses.input.into_iter().zip([&*left, &*right]) {
            // SAFETY: both ranges have this size and stay until the slot's frame is collected.
            check("uploading the pictures", unsafe {
                sys::cuMemcpyHtoDAsync_v2(
                    address,
                    picture.as_ptr().cast(),
                    picture.len(),
                    stream.raw(),
                )
            })?;
        }
        self.uploaded.record(stream)
    }

    /// The events that the next frame's launches wait for.
    pub fn chained(&self) -> Chained {
        self.work.chained().clone()
    }

    pub fn compute(
        &mut self,
        streams: &StreamPair,
        known: &[BufferId],
        thresholds: &[u32],
        before: Option<Chained>,
        profile: bool,
    ) -> Result<()> {
        streams.main.wait_for(&self.uploaded)?;
        let turn = Turn { number: self.turns, known, thresholds, before, profile };
        self.work.enqueue(streams, &turn)?;
        self.turns = self.turns.wrapping_add(1);
        Ok(())
    }

    pub fn download(&mut self, output: &Output, stream: &Stream) -> Result<()> {
        stream.wait_for(self.work.end())?;
        self.download_begin.record(stream)?;
        download("downloading the disparity", self.addresses.disparity, &output.map, stream)?;
        let Addresses { confidence, whitened, report, .. } = self.addresses;
        for (what, from, to) in [
            ("downloading the confidence", confidence, &output.confidence),
            ("downloading the whitened picture", whitened, &output.whitened),
            ("downloading the report in time", report, &output.report),
        ] {
            if let (Some(from), Some(to)) = (from, to) {
                download(what, from, to, stream)?;
            }
        }
        if let (Some(from), Some(to)) = (self.addresses.rectified, &output.rectified) {
            for (from, to) in from.into_iter().zip(to) {
                download("downloading the rectified pictures", from, to, stream)?;
            }
        }
        self.downloaded.record(stream)
    }

    pub fn wait(&self) -> Result<()> {
        let begin = Instant::now();
        while begin.elapsed() < SPIN {
            if self.downloaded.is_passed()? {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        self.downloaded.wait()
    }

    /// Times of the frame of [`Slot::wait`]: upload, stages, download; and first kernel to last.
    pub fn times(&self) -> Result<(Vec<StageTime>, Duration)> {
        let mut times = vec![("upload", self.uploaded.since(&self.upload_begin)?)];
        self.work.add_times(&mut times)?;
        times.push(("download", self.downloaded.since(&self.download_begin)?));
        Ok((times, self.work.time()?))
    }
}

/// Enqueues the upload of a pinned picture to rows that are `pitch` bytes apart.
fn upload_rows(image: &Image, to: u64, pitch: usize, stream: &Stream) -> Result<()> {
    let copy = sys::CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_HOST,
        srcHost: image.pixels().as_ptr().cast(),
        srcDevice: 0,
        srcArray: std::ptr::null_mut(),
        srcPitch: image.width(),
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstHost: std::ptr::null_mut(),
        dstDevice: to,
        dstArray: std::ptr::null_mut(),
        dstPitch: pitch,
        WidthInBytes: image.width(),
        Height: image.height(),
    };
    // SAFETY: the picture stays until its frame is collected; the buffer has `pitch` bytes a row.
    check("uploading the pictures", unsafe { sys::cuMemcpy2DAsync_v2(&copy, stream.raw()) })
}

fn download(what: &'static str, from: u64, to: &PinnedMemory, stream: &Stream) -> Result<()> {
    // SAFETY: the device's buffer is at least as large, and both stay until the frame is collected.
    check(what, unsafe {
        sys::cuMemcpyDtoHAsync_v2(to.address().as_ptr().cast(), from, to.bytes(), stream.raw())
    })
}

fn copy_rows(image: &Image, pitch: usize, to: &mut [u8]) {
    if pitch == image.width() {
        to.copy_from_slice(image.pixels());
        return;
    }
    for (y, row) in to.chunks_exact_mut(pitch).enumerate() {
        row[..image.width()].copy_from_slice(image.row(y));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_laid_out_with_the_pitch() {
        let image = Image::from_fn(3, 2, |x, y| (10 * y + x) as u8);
        let mut to = [9; 8];
        copy_rows(&image, 4, &mut to);
        assert_eq!(to, [0, 1, 2, 9, 10, 11, 12, 9]);
        let mut to = [9; 6];
        copy_rows(&image, 3, &mut to);
        assert_eq!(to, [0, 1, 2, 10, 11, 12]);
    }
}
