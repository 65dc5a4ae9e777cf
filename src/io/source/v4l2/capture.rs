//! Streaming of a camera in a format that v4l2src of GStreamer does not know, through buffers that the driver
//! fills (memory-mapped streaming I/O of V4L2).

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, anyhow, ensure};
use bytemuck::Zeroable;
use memmap2::{MmapMut, MmapOptions};

use super::choice::Pick;
use super::device::{BUFFERS_CAPTURE, Device, READ, WRITE, WholeFormat, reason};

/// Number of the driver's buffers: while one is copied, others are filled.
const COUNT: u32 = 4;

const MEMORY_MAPPED: u32 = 1;
const PROGRESSIVE: u32 = 1;
const DAMAGED: u32 = 0x40;
const TIME_IS_MONOTONIC: u32 = 0x2000;

#[repr(C)]
#[derive(Clone, Copy, Zeroable)]
struct StreamParameters {
    kind: u32,
    /// Capability, mode, then the frame period in seconds as a fraction.
    content: [u32; 50],
}

#[repr(C)]
#[derive(Clone, Copy, Zeroable)]
struct BufferRequest {
    count: u32,
    kind: u32,
    memory: u32,
    reserved: [u32; 2],
}

/// `struct v4l2_buffer` with the time of 64-bit systems.
#[repr(C)]
#[derive(Clone, Copy, Zeroable)]
struct Buffer {
    index: u32,
    kind: u32,
    used: u32,
    flags: u32,
    field: u32,
    /// Seconds and microseconds.
    time: [i64; 2],
    timecode: [u32; 4],
    number: u32,
    memory: u32,
    place: usize,
    length: u32,
    reserved: [u32; 2],
}

/// A camera that streams once the first frame is asked for.
pub struct Capture {
    device: Device,
    mappings: Vec<MmapMut>,
    stride: usize,
    is_on: bool,
}

/// A frame in a buffer of the driver.
pub struct Captured<'a> {
    pub bytes: &'a [u8],
    /// Bytes from one row to the next.
    pub stride: usize,
    /// Time of capture by CLOCK_MONOTONIC, if the driver states it by this clock.
    pub time: Option<Duration>,
    /// Number by the driver, which counts lost frames, too.
    pub number: u32,
    pub is_damaged: bool,
}

impl Capture {
    /// Opens the camera `name` and sets its mode; `size` is the driver's.
    pub fn open(name: &str, pick: &Pick, size: (u32, u32)) -> anyhow::Result<Self> {
        let mut device = Device::open(Path::new(name)).map_err(|error| anyhow!(reason(&error)))?;
        device.identity()?;
        ensure!(
            device.buffers == BUFFERS_CAPTURE,
            "its driver delivers {} in planes, which cannot be read",
            pick.format
        );
        let stride = set_mode(&device, pick, size).context("its mode cannot be set")?;
        let mappings = map_buffers(&device).context("its driver lends no buffers")?;
        Ok(Self { device, mappings, stride, is_on: false })
    }

    /// Waits at most `wait` for the next frame and reads it.
    pub fn next<T>(
        &mut self,
        wait: Duration,
        read: impl FnOnce(&Captured) -> T,
    ) -> io::Result<Option<T>> {
        if !std::mem::replace(&mut self.is_on, true) {
            for index in 0..self.mappings.len() as u32 {
                self.device.call(READ | WRITE, 15, &mut buffer(index))?;
            }
            self.device.call(WRITE, 18, &mut BUFFERS_CAPTURE.clone())?;
        }
        if !is_ready(&self.device.file, wait) {
            return Ok(None);
        }
        let mut filled = buffer(0);
        match self.device.call(READ | WRITE, 17, &mut filled) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            result => result?,
        }
        let bytes = self.mappings.get(filled.index as usize).map_or(&[][..], |bytes| &bytes[..]);
        let [seconds, micros] = filled.time.map(|part| u64::try_from(part).unwrap_or(0));
        let time = Duration::from_secs(seconds) + Duration::from_micros(micros);
        let captured = Captured {
            bytes: &bytes[..bytes.len().min(filled.used as usize)],
            stride: self.stride,
            time: (filled.flags & TIME_IS_MONOTONIC != 0).then_some(time),
            number: filled.number,
            is_damaged: filled.flags & DAMAGED != 0,
        };
        let result = read(&captured);
        self.device.call(READ | WRITE, 15, &mut buffer(filled.index))?;
        Ok(Some(result))
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        // VIDIOC_STREAMOFF; fails if the camera is gone.
        let _ = self.device.call(WRITE, 19, &mut BUFFERS_CAPTURE.clone());
    }
}

/// Waits at most `wait` for the next frame. Returns false if none came.
#[cfg(unix)]
fn is_ready(file: &File, wait: Duration) -> bool {
    let file = std::os::fd::AsRawFd::as_raw_fd(file);
    let mut ready = libc::pollfd { fd: file, events: libc::POLLIN, revents: 0 };
    let wait = i32::try_from(wait.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: one structure, which lives longer than the call.
    unsafe { libc::poll(&raw mut ready, 1, wait) != 0 }
}

#[cfg(not(unix))]
fn is_ready(_: &File, _: Duration) -> bool {
    false
}

fn buffer(index: u32) -> Buffer {
    Buffer { index, kind: BUFFERS_CAPTURE, memory: MEMORY_MAPPED, ..Zeroable::zeroed() }
}

/// Sets format, size and rate (VIDIOC_S_FMT, VIDIOC_S_PARM). Returns the bytes from one row to the next.
fn set_mode(device: &Device, pick: &Pick, (width, height): (u32, u32)) -> anyhow::Result<usize> {
    let mut format = WholeFormat { kind: BUFFERS_CAPTURE, ..Zeroable::zeroed() };
    let code = u32::from_le_bytes(pick.format.code());
    let fields: &mut [u32] = bytemuck::cast_slice_mut(&mut format.content);
    fields[..4].copy_from_slice(&[width, height, code, PROGRESSIVE]);
    device.call(READ | WRITE, 5, &mut format).map_err(|error| anyhow!(reason(&error)))?;
    let fields: &[u32] = bytemuck::cast_slice(&format.content);
    ensure!(
        fields[..3] == [width, height, code],
        "its driver does not set {} {width}x{height}, which it lists; it offers {}x{}",
        pick.format,
        fields[0],
        fields[1]
    );
    let mut rate = StreamParameters { kind: BUFFERS_CAPTURE, ..Zeroable::zeroed() };
    rate.content[2..4].copy_from_slice(&[pick.rate.seconds, pick.rate.frames]);
    // A camera of one rate need not know this request.
    let _ = device.call(READ | WRITE, 22, &mut rate);
    Ok(fields[4] as usize)
}

/// Requests buffers (VIDIOC_REQBUFS) and maps them (VIDIOC_QUERYBUF).
fn map_buffers(device: &Device) -> io::Result<Vec<MmapMut>> {
    let mut request = BufferRequest {
        count: COUNT,
        kind: BUFFERS_CAPTURE,
        memory: MEMORY_MAPPED,
        reserved: [0; 2],
    };
    device.call(READ | WRITE, 8, &mut request)?;
    let map = |index| {
        let mut one = buffer(index);
        device.call(READ | WRITE, 9, &mut one)?;
        let mut place = MmapOptions::new();
        place.offset(one.place as u64).len(one.length as usize);
        // SAFETY: a new mapping, whose place and length the driver stated. The driver writes only into
        // buffers that are queued, and those are not read.
        unsafe { place.map_mut(&device.file) }
    };
    (0..request.count).map(map).collect()
}

#[cfg(test)]
mod tests {
    use super::super::device::request;
    use super::*;

    /// Numbers of the requests as a C compiler gives them from linux/videodev2.h on 64 bits.
    #[test]
    #[cfg(target_pointer_width = "64")]
    fn requests_are_those_of_the_kernel() {
        assert_eq!(request::<BufferRequest>(READ | WRITE, 8), 0xc014_5608);
        assert_eq!(request::<Buffer>(READ | WRITE, 9), 0xc058_5609);
        assert_eq!(request::<Buffer>(READ | WRITE, 15), 0xc058_560f);
        assert_eq!(request::<Buffer>(READ | WRITE, 17), 0xc058_5611);
        assert_eq!(request::<u32>(WRITE, 18), 0x4004_5612);
        assert_eq!(request::<u32>(WRITE, 19), 0x4004_5613);
        assert_eq!(request::<StreamParameters>(READ | WRITE, 22), 0xc0cc_5616);
    }
}
