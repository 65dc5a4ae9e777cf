//! The system's knowledge of cameras: the USB port under /sys, and the processes under /proc that have one open.

use std::fmt;
use std::path::{Path, PathBuf};

use super::choice::UsbBus;

#[derive(Clone, Debug, PartialEq)]
pub struct UsbDevice {
    /// Bus, with the lower speed of bus and device.
    pub bus: UsbBus,
    /// The kernel's name of the port: "1-2.3" is port 3 of the hub at port 2 of bus 1.
    pub port: String,
    /// Vendor identifier, four hexadecimal digits.
    pub vendor: String,
    pub product: String,
    pub serial: Option<String>,
}

/// Returns the USB device of a video node such as `video0`; `None` if it is not on USB. `sys` is
/// the mount point of sysfs.
pub(super) fn usb_device(sys: &Path, node: &str) -> Option<UsbDevice> {
    let device = class(sys, node).join("device").canonicalize().ok()?;
    // The node belongs to an interface of the device; the device is the first with a bus number.
    let device = device.ancestors().find(|at| at.join("busnum").is_file())?;
    let number = read(device, "busnum")?.parse().ok()?;
    let own = read(device, "speed")?.parse::<f64>().ok()?;
    let root = sys.join(format!("bus/usb/devices/usb{number}"));
    let shared = read(&root, "speed").and_then(|speed| speed.parse().ok()).unwrap_or(own);
    Some(UsbDevice {
        bus: UsbBus { number, megabits: own.min(shared) },
        port: device.file_name()?.to_string_lossy().into_owned(),
        vendor: read(device, "idVendor")?,
        product: read(device, "idProduct")?,
        serial: read(device, "serial").filter(|serial| !serial.is_empty()),
    })
}

/// Returns the names of all video nodes, such as `video0`, by number.
pub(super) fn nodes(sys: &Path) -> Vec<String> {
    let number = |name: &String| name.strip_prefix("video")?.parse::<u32>().ok();
    let entries = std::fs::read_dir(sys.join("class/video4linux")).into_iter().flatten().flatten();
    let mut nodes: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| number(name).is_some())
        .collect();
    nodes.sort_by_key(number);
    nodes
}

pub(super) fn card(sys: &Path, node: &str) -> Option<String> {
    read(&class(sys, node), "name")
}

/// Returns the index of a node within its camera: the first node carries frames, later ones often metadata.
pub(super) fn index(sys: &Path, node: &str) -> u32 {
    read(&class(sys, node), "index").and_then(|index| index.parse().ok()).unwrap_or(0)
}

fn class(sys: &Path, node: &str) -> PathBuf {
    sys.join("class/video4linux").join(node)
}

fn read(folder: &Path, name: &str) -> Option<String> {
    let text = std::fs::read(folder.join(name)).ok()?;
    Some(String::from_utf8_lossy(&text).trim().to_owned())
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub pid: u32,
    pub name: String,
}

/// "ffmpeg (process 4711)".
impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {})", self.name, self.pid)
    }
}

/// Returns the other processes that have the device `node` open, by number. Only root sees other users'
/// processes. `proc` is the mount point of procfs.
pub(super) fn users(proc: &Path, node: &Path) -> Vec<User> {
    let has_open = |pid: u32| {
        let files = std::fs::read_dir(proc.join(format!("{pid}/fd"))).into_iter().flatten();
        files.flatten().any(|file| std::fs::read_link(file.path()).is_ok_and(|to| to == node))
    };
    let entries = std::fs::read_dir(proc).into_iter().flatten().flatten();
    let mut users: Vec<User> = entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|&pid| pid != std::process::id() && has_open(pid))
        .map(|pid| {
            let name = std::fs::read_to_string(proc.join(format!("{pid}/comm")));
            User { pid, name: name.map_or_else(|_| "a process".into(), |n| n.trim().to_owned()) }
        })
        .collect();
    users.sort_by_key(|user| user.pid);
    users
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a sysfs with a camera on port 2.3 of USB bus 1, another video device without USB,
    /// and one with nothing behind it.
    fn sysfs() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let usb = "devices/pci0000:00/0000:00:14.0/usb1";
        write(&format!("{usb}/speed"), "480\n");
        write(&format!("{usb}/busnum"), "1\n");
        let camera = format!("{usb}/1-2/1-2.3");
        for (name, text) in [
            ("busnum", "1\n"),
            ("speed", "480\n"),
            ("idVendor", "046d\n"),
            ("idProduct", "0825\n"),
            ("serial", "A1B2\n"),
            ("1-2.3:1.0/bInterfaceClass", "0e\n"),
        ] {
            write(&format!("{camera}/{name}"), text);
        }
        write("devices/platform/vivid.0/uevent", "");
        for (node, name, index) in [
            ("video0", "Webcam C270", "0"),
            ("video1", "Webcam C270", "1"),
            ("video10", "vivid", "0"),
            ("video2", "gone", "0"),
        ] {
            write(&format!("class/video4linux/{node}/name"), &format!("{name}\n"));
            write(&format!("class/video4linux/{node}/index"), &format!("{index}\n"));
        }
        write("class/video4linux/v4l-subdev0/name", "no camera");
        let link = |to: String, at: &str| {
            std::os::unix::fs::symlink(folder.path().join(to), folder.path().join(at)).unwrap();
        };
        for node in ["video0", "video1"] {
            link(format!("{camera}/1-2.3:1.0"), &format!("class/video4linux/{node}/device"));
        }
        link("devices/platform/vivid.0".into(), "class/video4linux/video10/device");
        std::fs::create_dir_all(folder.path().join("bus/usb/devices")).unwrap();
        link(usb.into(), "bus/usb/devices/usb1");
        folder
    }

    #[test]
    fn the_place_on_usb() {
        let sys = sysfs();
        let expected = UsbDevice {
            bus: UsbBus { number: 1, megabits: 480.0 },
            port: "1-2.3".into(),
            vendor: "046d".into(),
            product: "0825".into(),
            serial: Some("A1B2".into()),
        };
        assert_eq!(usb_device(sys.path(), "video0"), Some(expected.clone()));
        assert_eq!(usb_device(sys.path(), "video1"), Some(expected));
        assert_eq!(usb_device(sys.path(), "video10"), None);
        assert_eq!(usb_device(sys.path(), "video2"), None);
    }

    #[test]
    fn a_slow_device_on_a_fast_bus_and_one_without_serial() {
        let sys = sysfs();
        let usb = sys.path().join("devices/pci0000:00/0000:00:14.0/usb1");
        std::fs::write(usb.join("speed"), "10000\n").unwrap();
        std::fs::remove_file(usb.join("1-2/1-2.3/serial")).unwrap();
        let device = usb_device(sys.path(), "video0").unwrap();
        assert_eq!((device.bus.megabits, device.serial), (480.0, None));
        std::fs::write(usb.join("1-2/1-2.3/speed"), "unknown\n").unwrap();
        assert_eq!(usb_device(sys.path(), "video0"), None);
    }

    #[test]
    fn nodes_in_the_order_of_their_numbers() {
        let sys = sysfs();
        assert_eq!(nodes(sys.path()), ["video0", "video1", "video2", "video10"]);
        assert_eq!(card(sys.path(), "video0").as_deref(), Some("Webcam C270"));
        assert_eq!(card(sys.path(), "video7"), None);
        assert_eq!((index(sys.path(), "video1"), index(sys.path(), "video7")), (1, 0));
        assert_eq!(nodes(Path::new("/nowhere")), Vec::<String>::new());
    }

    #[test]
    fn who_has_it_open() {
        let folder = tempfile::tempdir().unwrap();
        for (pid, name, target) in
            [("12", "cheese", "/dev/video0"), ("7", "ffmpeg", "/dev/video0"), ("9", "x", "/tmp/a")]
        {
            let at = folder.path().join(pid);
            std::fs::create_dir_all(at.join("fd")).unwrap();
            std::fs::write(at.join("comm"), format!("{name}\n")).unwrap();
            std::os::unix::fs::symlink(target, at.join("fd/3")).unwrap();
        }
        std::fs::create_dir_all(folder.path().join("self/fd")).unwrap();
        let seen = users(folder.path(), Path::new("/dev/video0"));
        let text: Vec<String> = seen.iter().map(ToString::to_string).collect();
        assert_eq!(text, ["ffmpeg (process 7)", "cheese (process 12)"]);
        assert_eq!(users(folder.path(), Path::new("/dev/video1")), []);
    }
}
