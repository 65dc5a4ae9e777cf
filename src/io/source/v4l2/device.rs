//! An opened video node with the few kernel requests that stereod needs.
//!
//! Written over libc, because the V4L2 crates are either unmaintained or need libclang to build. The
//! structures are the kernel's of `linux/videodev2.h`; GStreamer does the streaming.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use bytemuck::Zeroable;

use super::controls::{ControlRange, Panel};
use super::modes::{Format, Mode, Rate, rates_within, sizes_within};
use crate::camera::{CameraControl, ControlKind};

#[derive(Clone, Debug)]
pub(super) struct Identity {
    /// The driver: "uvcvideo".
    pub(super) driver: String,
    pub(super) card: String,
    pub(super) bus: String,
    /// True if it delivers frames, not metadata.
    pub(super) captures: bool,
}

pub(super) struct Device {
    pub(super) file: File,
    /// Type of its buffers: capture, with one plane or several.
    pub(super) buffers: u32,
}

/// Directions of `_IOC`, the same on all supported architectures.
pub(super) const READ: u32 = 2;
pub(super) const WRITE: u32 = 1;

/// Returns the number of a V4L2 request that passes a `T`.
pub(super) const fn request<T>(direction: u32, number: u32) -> u32 {
    direction << 30 | (size_of::<T>() as u32) << 16 | (b'V' as u32) << 8 | number
}

#[repr(C)]
#[derive(Clone, Copy, Zeroable)]
struct Capability {
    driver: [u8; 16],
    card: [u8; 32],
    bus_info: [u8; 32],
    version: u32,
    capabilities: u32,
    device_caps: u32,
    reserved: [u32; 3],
}

#[repr(C)]
#[derive(Clone, Copy, Zeroable)]
struct FormatDescription {
    index: u32,
    kind: u32,
    flags: u32,
    description: [u8; 32],
    code: [u8; 4],
    mbus_code: u32,
    reserved: [u32; 3],
}

#[repr(C)]
#[derive(Clone, Copy, Zeroable)]
struct FrameSize {
    index: u32,
    code: [u8; 4],
    kind: u32,
    /// Width and height; or least, largest and step of the width, then of the height.
    sides: [u32; 6],
    reserved: [u32; 2],
}

#[repr(C)]
#[derive(Clone, Copy, Zeroable)]
struct FrameInterval {
    index: u32,
    code: [u8; 4],
    width: u32,
    height: u32,
    kind: u32,
    /// A fraction of a second; or the least, the largest and the step.
    fractions: [u32; 6],
    reserved: [u32; 2],
}

/// `struct v4l2_format`; its content is passed back unchanged.
#[repr(C)]
#[derive(Clone, Copy, Zeroable)]
pub(super) struct WholeFormat {
    pub(super) kind: u32,
    /// The union holds pointers, which determine its alignment.
    pub(super) content: [usize; 200 / size_of::<usize>()],
}

#[repr(C)]
#[derive(Clone, Copy, Zeroable)]
struct ControlValue {
    id: u32,
    value: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Zeroable)]
struct ControlQuery {
    id: u32,
    kind: u32,
    name: [u8; 32],
    least: i32,
    largest: i32,
    step: i32,
    default: i32,
    flags: u32,
    reserved: [u32; 2],
}

#[repr(C)]
#[derive(Clone, Copy, Zeroable)]
struct MenuQuery {
    id: u32,
    index: u32,
    /// The name, or the value in the first 8 bytes.
    content: [u8; 32],
    reserved: u32,
}

const CAPTURE: u32 = 0x1;
const CAPTURE_PLANES: u32 = 0x1000;
const HAS_DEVICE_CAPS: u32 = 0x8000_0000;
pub(super) const BUFFERS_CAPTURE: u32 = 1;
const BUFFERS_CAPTURE_PLANES: u32 = 9;
const DISCRETE: u32 = 1;
const CONTROL_DISABLED: u32 = 0x1;
const CONTROL_GRABBED: u32 = 0x2;
const CONTROL_READ_ONLY: u32 = 0x4;
const CONTROL_INACTIVE: u32 = 0x10;
const CONTROL_WRITE_ONLY: u32 = 0x40;
/// Asks for the next control after a number.
const CONTROL_NEXT: u32 = 0x8000_0000;
const CONTROL_INTEGER: u32 = 1;
const CONTROL_BOOLEAN: u32 = 2;
const CONTROL_MENU: u32 = 3;
const CONTROL_INTEGER_MENU: u32 = 9;

/// Largest number of entries of a list; a driver that returns more never ends it.
const LIST_MAX: u32 = 256;

impl Device {
    pub(super) fn open(node: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
        Ok(Self { file: options.open(node)?, buffers: BUFFERS_CAPTURE })
    }

    pub(super) fn call<T: Zeroable>(
        &self,
        direction: u32,
        number: u32,
        value: &mut T,
    ) -> io::Result<()> {
        loop {
            let request = request::<T>(direction, number);
            // SAFETY: the request's number carries the size of `T`, which is the kernel's structure
            // for it, and the kernel keeps no pointer to it.
            #[cfg(unix)]
            let result = unsafe {
                use std::os::fd::AsRawFd;
                libc::ioctl(self.file.as_raw_fd(), request as _, std::ptr::from_mut(value))
            };
            // No other system has such cameras.
            #[cfg(not(unix))]
            let (result, _) = (-1, (request, &*value));
            if result == 0 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }

    /// Returns the identity (VIDIOC_QUERYCAP).
    pub(super) fn identity(&mut self) -> io::Result<Identity> {
        let mut seen: Capability = Zeroable::zeroed();
        self.call(READ, 0, &mut seen)?;
        // Capabilities of this node if the driver states them, else of the whole device.
        let has_own = seen.capabilities & HAS_DEVICE_CAPS != 0;
        let abilities = if has_own { seen.device_caps } else { seen.capabilities };
        if abilities & CAPTURE == 0 && abilities & CAPTURE_PLANES != 0 {
            self.buffers = BUFFERS_CAPTURE_PLANES;
        }
        Ok(Identity {
            driver: text(&seen.driver),
            card: text(&seen.card),
            bus: text(&seen.bus_info),
            captures: abilities & (CAPTURE | CAPTURE_PLANES) != 0,
        })
    }

    /// Returns every format in every size, with its rates (VIDIOC_ENUM_FMT and related requests).
    pub(super) fn modes(&self) -> Vec<Mode> {
        let mut modes = Vec::new();
        for index in 0..LIST_MAX {
            let mut format = FormatDescription { index, kind: self.buffers, ..Zeroable::zeroed() };
            if self.call(READ | WRITE, 2, &mut format).is_err() {
                break;
            }
            for (width, height) in self.sizes(format.code) {
                let rates = self.rates(format.code, width, height);
                // Interleaved views are brought side by side.
                let views = Format::of_code(format.code).map_or(1, Format::views);
                modes.push(Mode { code: format.code, width: views * width, height, rates });
            }
        }
        modes
    }

    fn sizes(&self, code: [u8; 4]) -> Vec<(u32, u32)> {
        let mut sizes = Vec::new();
        for index in 0..LIST_MAX {
            let mut size = FrameSize { index, code, ..Zeroable::zeroed() };
            if self.call(READ | WRITE, 74, &mut size).is_err() {
                break;
            }
            let [a, b, c, d, e, f] = size.sides;
            if size.kind != DISCRETE {
                sizes.extend(sizes_within((a, b, c), (d, e, f)));
                break;
            }
            sizes.push((a, b));
        }
        sizes
    }

    fn rates(&self, code: [u8; 4], width: u32, height: u32) -> Vec<Rate> {
        let mut rates = Vec::new();
        for index in 0..LIST_MAX {
            let mut interval = FrameInterval { index, code, width, height, ..Zeroable::zeroed() };
            if self.call(READ | WRITE, 75, &mut interval).is_err() {
                break;
            }
            let [seconds, frames, longest_seconds, longest_frames, ..] = interval.fractions;
            if seconds == 0 || frames == 0 {
                continue;
            }
            if interval.kind != DISCRETE {
                let least = f64::from(longest_frames) / f64::from(longest_seconds.max(1));
                rates.extend(rates_within(least, f64::from(frames) / f64::from(seconds)));
                break;
            }
            rates.push(Rate { frames, seconds });
        }
        rates.sort_by(|a: &Rate, b| b.value().total_cmp(&a.value()));
        rates.dedup();
        rates
    }

    /// Reports whether another process streams from it: then the format cannot be set
    /// (VIDIOC_S_FMT), not even to the present one.
    pub(super) fn is_busy(&self) -> bool {
        let mut format = WholeFormat { kind: self.buffers, ..Zeroable::zeroed() };
        self.call(READ | WRITE, 4, &mut format).is_ok()
            && self
                .call(READ | WRITE, 5, &mut format)
                .is_err_and(|error| error.raw_os_error() == Some(libc::EBUSY))
    }

    /// Returns the controls that hold a number, a switch or a choice, in the driver's order.
    pub(super) fn controls(&self) -> Vec<CameraControl> {
        let mut controls = Vec::new();
        let mut query: ControlQuery = Zeroable::zeroed();
        for _ in 0..LIST_MAX {
            query = ControlQuery { id: query.id | CONTROL_NEXT, ..Zeroable::zeroed() };
            if self.call(READ | WRITE, 36, &mut query).is_err() {
                break;
            }
            if query.flags & (CONTROL_DISABLED | CONTROL_WRITE_ONLY) != 0 {
                continue;
            }
            let kind = match query.kind {
                CONTROL_INTEGER => ControlKind::Number,
                CONTROL_BOOLEAN => ControlKind::Switch,
                CONTROL_MENU | CONTROL_INTEGER_MENU => ControlKind::Menu(self.menu(&query)),
                _ => continue,
            };
            let Some(value) = self.get(query.id) else { continue };
            controls.push(CameraControl {
                id: query.id,
                name: text(&query.name),
                kind,
                least: query.least,
                largest: query.largest.max(query.least),
                step: query.step.max(1),
                default: query.default,
                value,
                is_read_only: query.flags & (CONTROL_READ_ONLY | CONTROL_GRABBED) != 0,
                is_inactive: query.flags & CONTROL_INACTIVE != 0,
            });
        }
        controls
    }

    /// Returns the entries of a menu (VIDIOC_QUERYMENU), except the ones that the driver omits.
    fn menu(&self, control: &ControlQuery) -> Vec<(i32, String)> {
        let entries = (control.least.max(0)..=control.largest).take(LIST_MAX as usize);
        let entry = |index: i32| {
            let mut query = MenuQuery { id: control.id, index: index as u32, ..Zeroable::zeroed() };
            self.call(READ | WRITE, 37, &mut query).ok()?;
            let name = match query.content.first_chunk() {
                Some(&value) if control.kind == CONTROL_INTEGER_MENU => {
                    i64::from_ne_bytes(value).to_string()
                }
                _ => text(&query.content),
            };
            Some((index, name))
        };
        entries.filter_map(entry).collect()
    }
}

impl Panel for Device {
    /// VIDIOC_QUERYCTRL.
    fn range(&self, id: u32) -> Option<ControlRange> {
        let mut query = ControlQuery { id, ..Zeroable::zeroed() };
        self.call(READ | WRITE, 36, &mut query).ok()?;
        let ControlQuery { least, largest, step, flags, .. } = query;
        (flags & CONTROL_DISABLED == 0).then_some(ControlRange { least, largest, step })
    }

    /// VIDIOC_G_CTRL.
    fn get(&self, id: u32) -> Option<i32> {
        let mut control = ControlValue { id, value: 0 };
        self.call(READ | WRITE, 27, &mut control).ok()?;
        Some(control.value)
    }

    /// VIDIOC_S_CTRL.
    fn set(&mut self, id: u32, value: i32) -> io::Result<()> {
        self.call(READ | WRITE, 28, &mut ControlValue { id, value })
    }
}

/// Returns the reason why a node cannot be opened, with the fix.
pub fn reason(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => "it may not be opened: add the user to the group \
             video (sudo usermod -aG video \"$USER\") and log in again"
            .into(),
        Some(libc::EBUSY) => "it is in use; end the other program".into(),
        Some(libc::ENOTTY | libc::EINVAL) => "it is a device, but no camera; `stereod devices` \
             lists the cameras"
            .into(),
        Some(libc::ENODEV | libc::ENXIO | libc::EIO) => {
            format!("the camera does not answer ({error}); plug it in again")
        }
        _ => error.to_string(),
    }
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of the requests as a C compiler gives them from linux/videodev2.h on 64 bits.
    #[test]
    #[cfg(target_pointer_width = "64")]
    fn requests_are_those_of_the_kernel() {
        assert_eq!(request::<Capability>(READ, 0), 0x8068_5600);
        assert_eq!(request::<FormatDescription>(READ | WRITE, 2), 0xc040_5602);
        assert_eq!(request::<WholeFormat>(READ | WRITE, 4), 0xc0d0_5604);
        assert_eq!(request::<WholeFormat>(READ | WRITE, 5), 0xc0d0_5605);
        assert_eq!(request::<ControlValue>(READ | WRITE, 27), 0xc008_561b);
        assert_eq!(request::<ControlQuery>(READ | WRITE, 36), 0xc044_5624);
        assert_eq!(request::<MenuQuery>(READ | WRITE, 37), 0xc02c_5625);
        assert_eq!(request::<FrameSize>(READ | WRITE, 74), 0xc02c_564a);
        assert_eq!(request::<FrameInterval>(READ | WRITE, 75), 0xc034_564b);
    }

    #[test]
    fn a_device_that_is_no_camera_says_so() {
        let mut device = Device::open(Path::new("/dev/null")).unwrap();
        assert!(device.identity().is_err());
        assert!(device.modes().is_empty() && !device.is_busy());
        assert!(device.controls().is_empty());
        assert_eq!(text(b"UVC Cam\0junk"), "UVC Cam");
    }
}
