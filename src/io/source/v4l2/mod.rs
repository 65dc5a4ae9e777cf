//! Cameras of the kernel's video interface (V4L2): their modes and controls. The frames come
//! through GStreamer, except for those of interleaved views, which it does not know.

mod adjust;
mod capture;
mod choice;
mod controls;
mod device;
mod interleaved;
mod modes;
mod system;

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};

pub use self::adjust::{Adjuster, Following};
pub use self::capture::{Capture, Captured};
pub use self::choice::{CameraRequest, Offer, Pick, UsbBus, choose};
pub use self::controls::{Controls, KNOBS, PowerLine, Setting};
pub use self::device::reason;
pub use self::interleaved::separate;
pub use self::modes::{Format, Mode, Rate, code_text};
pub use self::system::{UsbDevice, User};

use self::device::Device;
use crate::camera::CameraControl;

const SYS: &str = "/sys";
const PROC: &str = "/proc";

/// A camera, or a node that may be one but cannot be opened for lack of permission.
#[derive(Clone, Debug, Default)]
pub struct Camera {
    /// Its node: /dev/video0. The number can change from start to start.
    pub node: PathBuf,
    /// Its name by the port that it is plugged into, under /dev/v4l/by-path.
    pub by_path: Option<PathBuf>,
    /// Its name by make, model and serial number, under /dev/v4l/by-id.
    pub by_id: Option<PathBuf>,
    pub card: String,
    pub driver: String,
    pub bus: String,
    pub usb: Option<UsbDevice>,
    pub modes: Vec<Mode>,
    pub controls: Vec<CameraControl>,
    pub busy: bool,
    /// Processes that have it open, as far as may be seen.
    pub users: Vec<User>,
    /// Reason why it cannot be opened, with the fix.
    pub unusable: Option<String>,
}

impl Camera {
    /// Returns the name to use in a configuration: by path, which stays with the port.
    pub fn stable_name(&self) -> &Path {
        self.by_path.as_deref().unwrap_or(&self.node)
    }

    /// Reports whether only the port distinguishes another camera from this one.
    pub fn looks_like(&self, other: &Camera) -> bool {
        let make = |camera: &Camera| {
            let usb = camera.usb.as_ref();
            usb.map(|usb| (usb.vendor.clone(), usb.product.clone(), usb.serial.clone()))
        };
        self.node != other.node
            && self.card == other.card
            && self.usb.is_some()
            && make(self) == make(other)
    }
}

/// Returns all cameras by number, without nodes for metadata or video output.
pub fn list() -> Vec<Camera> {
    system::nodes(Path::new(SYS)).iter().filter_map(|name| look_at(name)).collect()
}

/// Returns the camera behind a node such as `video0`, if it is one.
fn look_at(name: &str) -> Option<Camera> {
    let sys = Path::new(SYS);
    let node = Path::new("/dev").join(name);
    let mut camera = Camera {
        by_path: link_to(&node, "/dev/v4l/by-path"),
        by_id: link_to(&node, "/dev/v4l/by-id"),
        card: system::card(sys, name).unwrap_or_default(),
        usb: system::usb_device(sys, name),
        node,
        ..Camera::default()
    };
    let seen = Device::open(&camera.node).and_then(|mut device| Ok((device.identity()?, device)));
    match seen {
        Ok((identity, device)) => {
            camera.modes = if identity.captures { device.modes() } else { Vec::new() };
            if camera.modes.is_empty() {
                return None;
            }
            camera.controls = device.controls();
            camera.busy = device.is_busy();
            (camera.card, camera.driver, camera.bus) =
                (identity.card, identity.driver, identity.bus);
        }
        // Gone since it was listed.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        // Of the nodes of a camera that may not be opened only the first is likely to have frames.
        Err(_) if system::index(sys, name) > 0 => return None,
        Err(error) => {
            camera.busy = error.raw_os_error() == Some(libc::EBUSY);
            camera.unusable = Some(reason(&error));
        }
    }
    camera.users = system::users(Path::new(PROC), &camera.node);
    Some(camera)
}

fn link_to(node: &Path, folder: &str) -> Option<PathBuf> {
    let links = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut links: Vec<PathBuf> = links
        .map(|entry| entry.path())
        .filter(|link| link.canonicalize().is_ok_and(|to| to == node))
        .collect();
    // Newer systems name a port twice, once with the version of its USB.
    links.sort_by_key(|link| (link.to_string_lossy().contains("-usbv"), link.clone()));
    links.into_iter().next()
}

/// Returns the name of `node` by its camera's port, if it has one.
pub fn by_path(node: &Path) -> Option<PathBuf> {
    link_to(node, "/dev/v4l/by-path")
}

/// Reports whether a path names a camera: a device, or a name that only cameras have.
pub fn is_camera(path: &Path) -> bool {
    let name = path.as_os_str().as_encoded_bytes();
    let named = name.starts_with(b"/dev/video") || name.starts_with(b"/dev/v4l/");
    #[cfg(unix)]
    let is_device = |about: std::fs::Metadata| {
        std::os::unix::fs::FileTypeExt::is_char_device(&about.file_type())
    };
    #[cfg(not(unix))]
    let is_device = |_| false;
    let device = || std::fs::metadata(path).is_ok_and(is_device);
    // A pipeline may begin with a name.
    (named && !name.contains(&b'!')) || device()
}

#[derive(Clone, Debug)]
pub struct Opened {
    pub node: PathBuf,
    pub bus: Option<UsbBus>,
    pub modes: Vec<Mode>,
}

/// Looks at the camera that `name` stands for (a node or a link to one) and makes sure that it can be used.
pub fn open(name: &str) -> anyhow::Result<Opened> {
    let (node, device, card) = connect(name)?;
    let modes = device.modes();
    if modes.is_empty() {
        bail!(no_pictures(&card));
    }
    let bus = node
        .file_name()
        .and_then(|name| system::usb_device(Path::new(SYS), &name.to_string_lossy()))
        .map(|usb| usb.bus);
    Ok(Opened { node, bus, modes })
}

/// Makes sure that the camera `name` can be used now, and sets its controls. Returns the complaints
/// about unsupported settings, for the log.
pub fn prepare(name: &str, controls: &Controls) -> anyhow::Result<Vec<String>> {
    let (_, mut device, _) = connect(name)?;
    Ok(controls.apply(&mut device))
}

/// Opens the node of `name` and checks that it is free.
fn connect(name: &str) -> anyhow::Result<(PathBuf, Device, String)> {
    if !cfg!(target_os = "linux") {
        bail!(
            "only Linux has cameras of this name; name GStreamer's source, such as 'mfvideosrc device-index=0' \
             on Windows and 'avfvideosrc device-index=0' on macOS"
        );
    }
    let node = match Path::new(name).canonicalize() {
        Ok(node) => node,
        Err(_) => bail!("no camera there; is it plugged in? `stereod devices` lists the cameras"),
    };
    let mut device = Device::open(&node).map_err(|error| anyhow!(with_users(&error, &node)))?;
    let identity = device.identity().map_err(|error| anyhow!(reason(&error)))?;
    if !identity.captures {
        bail!(no_pictures(&identity.card));
    }
    if device.is_busy() {
        bail!(with_users(&io::Error::from_raw_os_error(libc::EBUSY), &node));
    }
    Ok((node, device, identity.card))
}

fn no_pictures(card: &str) -> String {
    format!("this node of {card} carries no pictures; `stereod devices` lists those that do")
}

/// Returns the reason why a node cannot be opened and, if it is in use, its users.
fn with_users(error: &io::Error, node: &Path) -> String {
    let users = system::users(Path::new(PROC), node);
    if error.raw_os_error() != Some(libc::EBUSY) || users.is_empty() {
        return reason(error);
    }
    let users: Vec<String> = users.iter().map(ToString::to_string).collect();
    format!("it is in use by {}; end that program", users.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cameras_are_told_from_other_streams() {
        for camera in ["/dev/video0", "/dev/video77", "/dev/v4l/by-path/x", "/dev/null"] {
            assert!(is_camera(Path::new(camera)), "{camera}");
        }
        for other in ["left.mp4", "v4l2src device=/dev/video0 ! jpegdec", "/dev", "rtsp://a/video0"]
        {
            assert!(!is_camera(Path::new(other)), "{other}");
        }
    }

    #[test]
    fn what_is_no_camera_is_refused_with_the_cure() {
        let message = open("/dev/v4l/by-path/nowhere").unwrap_err().to_string();
        assert!(message.contains("no camera there") && message.contains("stereod devices"));
        let message = open("/dev/null").unwrap_err().to_string();
        assert!(message.contains("no camera; `stereod devices`"), "{message}");
        let denied = reason(&io::Error::from_raw_os_error(libc::EACCES));
        assert!(denied.contains("group video"), "{denied}");
        let busy = io::Error::from_raw_os_error(libc::EBUSY);
        assert!(with_users(&busy, Path::new("/nowhere")).contains("end the other program"));
    }

    fn camera(node: &str, serial: Option<&str>) -> Camera {
        Camera {
            node: node.into(),
            card: "Cam".into(),
            driver: "uvcvideo".into(),
            usb: Some(UsbDevice {
                bus: UsbBus { number: 1, megabits: 480.0 },
                port: node.into(),
                vendor: "1d6b".into(),
                product: "0102".into(),
                serial: serial.map(str::to_owned),
            }),
            ..Camera::default()
        }
    }

    #[test]
    fn equal_serials_look_alike() {
        let one = camera("/dev/video0", Some("1"));
        assert!(one.looks_like(&camera("/dev/video2", Some("1"))));
        assert!(!one.looks_like(&camera("/dev/video2", Some("2"))));
        assert!(!one.looks_like(&one));
        assert!(camera("a", None).looks_like(&camera("b", None)));
        let other = Camera { usb: None, ..camera("c", None) };
        assert!(!other.looks_like(&Camera { usb: None, ..camera("d", None) }));
    }
}
