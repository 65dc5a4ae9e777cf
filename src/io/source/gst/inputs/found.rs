//! Cameras that GStreamer's device providers find (Aravis, libcamera, NDI and the like), each as the element
//! that reads it.

use std::time::Duration;

use gstreamer as gst;
use gstreamer::glib;
use gstreamer::prelude::*;

use crate::source::gst::initialise;
use stereod_core::thread;

/// Longest search: GigE cameras answer within a second.
const LONGEST: Duration = Duration::from_secs(10);

/// A camera that a device provider has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundCamera {
    /// Name for people.
    pub name: String,
    /// The element with its properties, as `--left` takes it.
    pub element: String,
}

/// Looks for cameras, except those of V4L2. Returns why it found none if the search fails.
pub fn find_cameras() -> anyhow::Result<Vec<FoundCamera>> {
    initialise()?;
    let look = || {
        let monitor = gst::DeviceMonitor::new();
        monitor.add_filter(Some("Video/Source"), None);
        monitor.start()?;
        let found = monitor.devices().iter().filter_map(found).collect();
        monitor.stop();
        Ok::<Vec<FoundCamera>, glib::BoolError>(found)
    };
    let found = thread::bounded("devices", look, |waited| waited > LONGEST)?;
    let found = found.ok_or_else(|| {
        anyhow::anyhow!("GStreamer's search for cameras takes longer than {} s", LONGEST.as_secs())
    })?;
    // Without any provider the monitor does not start.
    Ok(found.unwrap_or_default())
}

fn found(device: &gst::Device) -> Option<FoundCamera> {
    let element = device.create_element(None).ok()?;
    let is_of_v4l2 = element.factory()?.name() == "v4l2src";
    let name = device.display_name().to_string();
    if is_of_v4l2 { None } else { Some(FoundCamera { name, element: written(&element)? }) }
}

/// Writes an element with the properties that differ from the defaults.
fn written(element: &gst::Element) -> Option<String> {
    let factory = element.factory()?;
    let plain = factory.create().build().ok()?;
    let mut text = factory.name().to_string();
    for property in element.list_properties() {
        let flags = property.flags();
        if ["name", "parent"].contains(&property.name())
            || !flags.contains(glib::ParamFlags::READWRITE)
            || flags.contains(glib::ParamFlags::CONSTRUCT_ONLY)
        {
            continue;
        }
        let value = element.property_value(property.name());
        let value = value.serialize().ok();
        let default = plain.property_value(property.name()).serialize().ok();
        if let (Some(value), true) = (&value, value != default) {
            text += &format!(" {}={value}", property.name());
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::spec::StreamSpec;

    #[test]
    fn the_line_of_a_camera_is_one_that_left_takes() {
        gst::init().unwrap();
        for (text, expected) in [
            ("videotestsrc", "videotestsrc"),
            ("videotestsrc is-live=true pattern=ball", "videotestsrc pattern=ball is-live=true"),
            ("filesrc location=\"a b's\"", "filesrc location=\"a\\ b\\'s\""),
        ] {
            let element = gst::parse::launch(text).unwrap();
            let line = written(&element).unwrap();
            assert_eq!(line, expected);
            assert_eq!(StreamSpec::parse(&line), StreamSpec::Fragment(line.clone()));
            let again = gst::parse::launch(&line).unwrap();
            assert_eq!(written(&again).as_deref(), Some(expected));
        }
    }
}
