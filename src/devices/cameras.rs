//! The cameras in the output of `stereod devices`.

use std::fmt::Write;

use serde_json::{Value, json};

use stereod_io::camera::{CameraControl, ControlKind};
use stereod_io::source::gst::FoundCamera;
use stereod_io::source::v4l2::{Camera, Mode, code_text};

const NONE: &str = if cfg!(windows) {
    "No cameras. GStreamer's source may open one that is not listed: --left 'mfvideosrc device-index=0'"
} else {
    "No cameras. Plug one in (lsusb shows what the system sees); in a container, hand it through (--device \
     /dev/video0, and /dev/v4l, /run/udev for its stable name)"
};

/// Formats them for people: those of V4L2, and others.
pub fn as_text(cameras: &[Camera], others: &[FoundCamera], with_controls: bool) -> String {
    let mut text = match (cameras, others) {
        ([], []) => format!("{NONE}\n"),
        ([], _) => String::new(),
        _ => String::from("Cameras, by the name that --left, --right and --side-by-side take\n"),
    };
    for camera in cameras {
        let _ = writeln!(text, "  {}", camera.stable_name().display());
        let mut lines = vec![about(camera)];
        if let Some(by_id) = &camera.by_id {
            lines.push(format!("by id: {}", by_id.display()));
        }
        lines.extend(camera.unusable.clone());
        if camera.busy || !camera.users.is_empty() {
            lines.push(used(camera));
        }
        let alike = alike(camera, cameras);
        if !alike.is_empty() {
            lines.push(format!(
                "looks like {} (same make, model and serial number): tell them apart by the port, \
                 with the name above",
                alike.join(", ")
            ));
        }
        lines.extend(modes(&camera.modes));
        if with_controls {
            lines.extend(camera.controls.iter().map(described));
        }
        for line in lines {
            let _ = writeln!(text, "      {line}");
        }
    }
    if !others.is_empty() {
        text += "Cameras that are read through an element of GStreamer\n";
    }
    for FoundCamera { name, element } in others {
        let quoted = element.replace('\'', "'\\''");
        let _ = writeln!(text, "  {name}\n      --left '{quoted}'");
    }
    text
}

/// The texts for `--left` and `--right`, one a line.
pub fn sources(cameras: &[Camera], others: &[FoundCamera]) -> String {
    let usable = cameras.iter().filter(|camera| camera.unusable.is_none());
    let names = usable.map(|camera| camera.stable_name().display().to_string());
    let elements = others.iter().map(|other| other.element.clone());
    names.chain(elements).map(|source| source + "\n").collect()
}

/// Formats others than those of V4L2 for programs.
pub fn elements_as_json(others: &[FoundCamera]) -> Value {
    let element = |other: &FoundCamera| json!({ "name": other.name, "element": other.element });
    others.iter().map(element).collect()
}

/// Formats them for programs.
pub fn as_json(cameras: &[Camera]) -> Value {
    let mode = |mode: &Mode| {
        json!({
            "format": code_text(mode.code),
            "readable": mode.format().is_some(),
            "width": mode.width,
            "height": mode.height,
            "rates": mode.rates.iter().map(|rate| rate.value()).collect::<Vec<_>>(),
        })
    };
    let camera = |camera: &Camera| {
        let usb = camera.usb.as_ref();
        let users = camera.users.iter().map(|user| json!({ "pid": user.pid, "name": user.name }));
        json!({
            "node": camera.node,
            "by_path": camera.by_path,
            "by_id": camera.by_id,
            "name": camera.card,
            "driver": camera.driver,
            "bus": camera.bus,
            "usb": usb.map(|usb| json!({
                "bus": usb.bus.number,
                "megabits": usb.bus.megabits,
                "port": usb.port,
                "vendor": usb.vendor,
                "product": usb.product,
                "serial": usb.serial,
            })),
            "modes": camera.modes.iter().map(mode).collect::<Vec<_>>(),
            "controls": camera.controls.iter().map(control_as_json).collect::<Vec<_>>(),
            "busy": camera.busy,
            "users": users.collect::<Vec<_>>(),
            "alike": alike(camera, cameras),
            "unusable": camera.unusable,
        })
    };
    cameras.iter().map(camera).collect()
}

fn control_as_json(control: &CameraControl) -> Value {
    let CameraControl { id, name, least, largest, step, default, value, .. } = control;
    let (kind, menu) = match &control.kind {
        ControlKind::Number => ("number", None),
        ControlKind::Switch => ("switch", None),
        ControlKind::Menu(names) => ("menu", Some(names)),
    };
    json!({
        "id": id,
        "name": name,
        "kind": kind,
        "menu": menu.map(|names| {
            let entry = |(value, name): &(i32, String)| json!({ "value": value, "name": name });
            names.iter().map(entry).collect::<Vec<_>>()
        }),
        "min": least,
        "max": largest,
        "step": step,
        "default": default,
        "value": value,
        "read_only": control.is_read_only,
        "inactive": control.is_inactive,
    })
}

/// Describes a camera: "CamLeft, /dev/video0, USB bus 3 (480 Mbit/s), serial number L001".
fn about(camera: &Camera) -> String {
    let mut text = format!("{}, {}", camera.card, camera.node.display());
    match &camera.usb {
        Some(usb) => {
            let _ = write!(
                text,
                ", port {} of USB bus {} ({} Mbit/s)",
                usb.port, usb.bus.number, usb.bus.megabits
            );
            if let Some(serial) = &usb.serial {
                let _ = write!(text, ", serial number {serial}");
            }
        }
        None if !camera.bus.is_empty() => {
            let _ = write!(text, ", {}", camera.bus);
        }
        None => {}
    }
    text
}

/// Describes a control: "Gain: 30 (0 to 100, default 0)", "Auto Exposure: Manual Mode (of Manual Mode, ...)".
fn described(control: &CameraControl) -> String {
    let CameraControl { name, least, largest, step, default, value, .. } = control;
    let values = match &control.kind {
        ControlKind::Number if *step == 1 => format!("{least} to {largest}"),
        ControlKind::Number => format!("{least} to {largest} in steps of {step}"),
        ControlKind::Switch => "on, off".into(),
        ControlKind::Menu(names) => {
            let names: Vec<&str> = names.iter().map(|(_, name)| name.as_str()).collect();
            names.join(", ")
        }
    };
    let state = match (control.is_read_only, control.is_inactive) {
        (true, _) => ", read-only",
        (false, true) => ", inactive while automatic",
        (false, false) => "",
    };
    let (value, default) = (control.text_of(*value), control.text_of(*default));
    format!("{name}: {value} ({values}; default {default}{state})")
}

fn used(camera: &Camera) -> String {
    let users: Vec<String> = camera.users.iter().map(ToString::to_string).collect();
    match (camera.busy, users.is_empty()) {
        (true, true) => "busy: another program takes pictures from it (root sees which)".into(),
        (true, false) => format!("busy: in use by {}", users.join(", ")),
        (false, _) => format!("free, though {} has it open", users.join(", ")),
    }
}

/// Returns the nodes of cameras that differ from this one by their ports only.
fn alike(camera: &Camera, all: &[Camera]) -> Vec<String> {
    let others = all.iter().filter(|other| camera.looks_like(other));
    others.map(|other| other.node.display().to_string()).collect()
}

/// Lists the formats, one per line: "MJPG  640x480 at 30, 15; 320x240 at 30, 15". Unreadable
/// formats, of which cameras may have dozens, share one line.
fn modes(modes: &[Mode]) -> Vec<String> {
    let mut lines: Vec<([u8; 4], String)> = Vec::new();
    let mut others: Vec<String> = Vec::new();
    for mode in modes {
        if mode.format().is_none() {
            others.push(code_text(mode.code));
            continue;
        }
        let rates: Vec<String> = mode.rates.iter().map(ToString::to_string).collect();
        let mut text = format!("{}x{}", mode.width, mode.height);
        if !rates.is_empty() {
            let _ = write!(text, " at {}", rates.join(", "));
        }
        match lines.iter_mut().find(|(code, _)| *code == mode.code) {
            Some((_, line)) => *line += &format!("; {text}"),
            None => {
                let is_both = mode.format().is_some_and(|format| format.views() == 2);
                let both = if is_both { "both views, for --side-by-side: " } else { "" };
                lines.push((mode.code, format!("{:<4}  {both}{text}", code_text(mode.code))));
            }
        }
    }
    others.dedup();
    let others =
        (!others.is_empty()).then(|| format!("formats that cannot be read: {}", others.join(", ")));
    lines.into_iter().map(|(_, line)| line).chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stereod_io::source::v4l2::{Rate, UsbBus, UsbDevice, User};

    fn cameras() -> Vec<Camera> {
        let mode = |code: &[u8; 4], width, rates: &[u32]| Mode {
            code: *code,
            width,
            height: 480,
            rates: rates.iter().map(|&rate| Rate::whole(rate)).collect(),
        };
        let exposure = CameraControl {
            id: 0x009a_0902,
            name: "Exposure Time, Absolute".into(),
            kind: ControlKind::Number,
            least: 1,
            largest: 10000,
            step: 1,
            default: 300,
            value: 157,
            is_read_only: false,
            is_inactive: true,
        };
        let modes_of_exposure =
            vec![(1, "Manual Mode".into()), (3, "Aperture Priority Mode".into())];
        let mode_of_exposure = CameraControl {
            id: 0x009a_0901,
            name: "Auto Exposure".into(),
            kind: ControlKind::Menu(modes_of_exposure),
            least: 0,
            largest: 3,
            default: 3,
            value: 1,
            is_inactive: false,
            ..exposure.clone()
        };
        let camera = |number: u32| Camera {
            node: format!("/dev/video{number}").into(),
            by_path: Some(format!("/dev/v4l/by-path/pci-usb-0:{number}").into()),
            by_id: None,
            card: "Cam".into(),
            driver: "uvcvideo".into(),
            bus: "usb-0000:00:14.0-1".into(),
            usb: Some(UsbDevice {
                bus: UsbBus { number: 1, megabits: 480.0 },
                port: format!("1-{number}"),
                vendor: "046d".into(),
                product: "0825".into(),
                serial: Some("7".into()),
            }),
            modes: vec![
                mode(b"YUYV", 640, &[30, 15]),
                mode(b"YUYV", 800, &[5]),
                mode(b"RGB3", 640, &[]),
            ],
            controls: vec![exposure.clone(), mode_of_exposure.clone()],
            busy: false,
            users: Vec::new(),
            unusable: None,
        };
        let user = User { pid: 12, name: "cheese".into() };
        vec![camera(0), Camera { busy: true, users: vec![user], ..camera(2) }]
    }

    #[test]
    fn cameras_are_listed_with_what_tells_them_apart() {
        let text = as_text(&cameras(), &[], false);
        assert_eq!(
            text,
            "Cameras, by the name that --left, --right and --side-by-side take
  /dev/v4l/by-path/pci-usb-0:0
      Cam, /dev/video0, port 1-0 of USB bus 1 (480 Mbit/s), serial number 7
      looks like /dev/video2 (same make, model and serial number): tell them apart by the port, \
             with the name above
      YUYV  640x480 at 30, 15; 800x480 at 5
      formats that cannot be read: RGB3
  /dev/v4l/by-path/pci-usb-0:2
      Cam, /dev/video2, port 1-2 of USB bus 1 (480 Mbit/s), serial number 7
      busy: in use by cheese (process 12)
      looks like /dev/video0 (same make, model and serial number): tell them apart by the port, \
             with the name above
      YUYV  640x480 at 30, 15; 800x480 at 5
      formats that cannot be read: RGB3
"
        );
        let value = as_json(&cameras());
        assert_eq!(value[1]["users"], json!([{ "pid": 12, "name": "cheese" }]));
        assert_eq!(value[0]["alike"], json!(["/dev/video2"]));
        assert_eq!(value[0]["modes"][0]["rates"], json!([30.0, 15.0]));
        assert_eq!(value[0]["modes"][2]["readable"], false);
        assert_eq!(value[0]["usb"]["serial"], "7");
    }

    #[test]
    fn controls_are_listed_on_request_and_in_json() {
        let text = as_text(&cameras(), &[], true);
        assert!(
            text.contains(
                "      Exposure Time, Absolute: 157 (1 to 10000; default 300, inactive while automatic)\n      \
                 Auto Exposure: Manual Mode (Manual Mode, Aperture Priority Mode; default Aperture \
                 Priority Mode)\n"
            ),
            "{text}"
        );
        let value = as_json(&cameras());
        let controls = &value[0]["controls"];
        assert_eq!(controls[0]["id"], 0x009a_0902);
        assert_eq!((&controls[0]["max"], &controls[0]["inactive"]), (&json!(10000), &json!(true)));
        assert_eq!(controls[0]["menu"], Value::Null);
        assert_eq!(controls[1]["menu"][1], json!({ "value": 3, "name": "Aperture Priority Mode" }));
    }

    #[test]
    fn others_come_with_the_line_to_copy() {
        let other =
            |name: &str, element: &str| FoundCamera { name: name.into(), element: element.into() };
        let others = [
            other("Basler acA", "aravissrc camera-name=Basler-acA-1"),
            other("Bob's", "ndisrc ndi-name=\"Bob's\""),
        ];
        let text = as_text(&[], &others, false);
        assert_eq!(
            text,
            "Cameras that are read through an element of GStreamer
  Basler acA
      --left 'aravissrc camera-name=Basler-acA-1'
  Bob's
      --left 'ndisrc ndi-name=\"Bob'\\''s\"'
"
        );
        assert_eq!(elements_as_json(&others)[0]["element"], "aravissrc camera-name=Basler-acA-1");
        let [first, second] = cameras().try_into().unwrap();
        let unusable = Camera { unusable: Some("no format".into()), ..second };
        assert_eq!(
            sources(&[first, unusable], &others),
            "/dev/v4l/by-path/pci-usb-0:0\naravissrc camera-name=Basler-acA-1\nndisrc ndi-name=\"Bob's\"\n"
        );
    }

    #[test]
    fn no_camera_comes_with_the_cure() {
        assert!(as_text(&[], &[], false).contains("No cameras. Plug one in"));
        assert_eq!(as_json(&[]), json!([]));
    }

    #[test]
    fn one_that_may_not_be_opened_or_is_merely_open() {
        let [first, _] = cameras().try_into().unwrap();
        let user = User { pid: 3, name: "wireplumber".into() };
        let open = Camera { users: vec![user], ..first.clone() };
        assert!(
            as_text(&[open], &[], false)
                .contains("free, though wireplumber (process 3) has it open")
        );
        let denied = Camera { unusable: Some("it may not".into()), modes: vec![], ..first };
        assert!(as_text(&[denied], &[], false).contains("\n      it may not\n"));
    }
}
