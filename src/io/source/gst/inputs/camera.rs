//! Cameras among the inputs: their modes are chosen together.

use std::path::PathBuf;

use anyhow::{anyhow, ensure};
use gstreamer as gst;

use super::input::{Camera, Input};
use crate::source::Unavailable;
use crate::source::gst::options::GstOptions;
use crate::source::gst::plane::ViewLayout;
use crate::source::pictures::Pictures;
use crate::source::spec::StreamSpec;
use crate::source::v4l2::{self, CameraRequest, Format, Mode, Offer, Pick};

/// Largest frame of a view that is chosen without a request, in pixels.
const LIMIT: (u32, u32) = (1280, 720);

/// Finds the inputs of the streams and chooses the modes of cameras.
pub(in crate::source::gst) fn inputs<const N: usize>(
    specs: [&StreamSpec; N],
    layout: ViewLayout,
    options: &GstOptions,
) -> anyhow::Result<[Input; N]> {
    let request = &options.cameras;
    let mut cameras = Vec::new();
    for name in specs.into_iter().filter_map(camera_of) {
        let opened = v4l2::open(name)
            .map_err(|error| Unavailable { reason: format!("{name}: {error:#}") })?;
        if let Some(port) = unstable_name(name, v4l2::by_path(&opened.node)) {
            tracing::info!("{port}");
        }
        cameras.push((name, opened));
    }
    if let [(left, one), (right, other)] = &cameras[..] {
        ensure!(
            one.node != other.node,
            "{left} and {right} are one camera; `stereod devices` lists all of them"
        );
    }
    if cameras.is_empty() && *request != CameraRequest::default() {
        tracing::warn!(
            "size, rate and format are for cameras and change nothing of {}",
            specs.map(StreamSpec::name).join(" and ")
        );
    }
    let mut picks = choose(&cameras, layout, request)?.into_iter().peekable();
    let mut inputs = Vec::with_capacity(N);
    for spec in specs {
        let camera = camera_of(spec).zip(picks.next_if(|_| camera_of(spec).is_some()));
        inputs.push(match camera {
            Some((name, pick)) => {
                let controls = options.controls;
                Input::Camera(Camera { name: name.to_owned(), pick, controls })
            }
            None => Input::find(spec)?,
        });
    }
    if let [Input::Pictures(left), Input::Pictures(right)] = &mut inputs[..] {
        Pictures::agree(left, right)?;
    }
    inputs.try_into().map_err(|_| anyhow!("each text is one stream"))
}

fn camera_of(spec: &StreamSpec) -> Option<&str> {
    match spec {
        StreamSpec::Camera(name) => Some(name),
        _ => None,
    }
}

/// Returns a remark if the name may belong to another camera after a restart.
fn unstable_name(name: &str, by_path: Option<PathBuf>) -> Option<String> {
    let port = by_path?;
    name.starts_with("/dev/video").then(|| {
        format!(
            "{name} may be another camera after a restart; this one's port is always {}",
            port.display()
        )
    })
}

/// Returns the modes that fit a layout. In its other formats, a camera of interleaved views shows only one.
fn modes_for(layout: ViewLayout, modes: &[Mode]) -> Vec<Mode> {
    let has_both = |mode: &Mode| mode.format().is_some_and(|format| format.views() == 2);
    let both = layout == ViewLayout::SideBySide && modes.iter().any(has_both);
    modes.iter().filter(|mode| has_both(mode) == both).cloned().collect()
}

/// Chooses the modes and logs the choice with its reason.
fn choose(
    cameras: &[(&str, v4l2::Opened)],
    layout: ViewLayout,
    request: &CameraRequest,
) -> anyhow::Result<Vec<Pick>> {
    if cameras.is_empty() {
        return Ok(Vec::new());
    }
    let modes: Vec<Vec<Mode>> =
        cameras.iter().map(|(_, camera)| modes_for(layout, &camera.modes)).collect();
    for ((name, camera), modes) in cameras.iter().zip(&modes) {
        ensure!(
            !modes.is_empty() || camera.modes.is_empty(),
            "{name} delivers both views in each frame: give it as `--side-by-side {name}`"
        );
    }
    let offers: Vec<Offer> = cameras
        .iter()
        .zip(&modes)
        .map(|((name, camera), modes)| Offer { name, modes, bus: camera.bus })
        .collect();
    let both = |(width, height): (u32, u32)| match layout {
        // Stretched views have the size of the frame.
        ViewLayout::Whole
        | ViewLayout::HalfWhole
        | ViewLayout::HalfSideBySide
        | ViewLayout::HalfTopBottom => (width, height),
        ViewLayout::SideBySide => (width.saturating_mul(2), height),
        ViewLayout::TopBottom => (width, height.saturating_mul(2)),
    };
    let request = CameraRequest { size: request.size.map(both), ..request.clone() };
    let choice = v4l2::choose(&offers, &request, both(LIMIT)).map_err(anyhow::Error::msg)?;
    for (offer, pick) in offers.iter().zip(&choice.picks) {
        let why = if choice.why.is_empty() { String::new() } else { format!(" ({})", choice.why) };
        tracing::info!(
            "{}: {} {}x{} at {}/s{why}",
            offer.name,
            pick.format,
            pick.width,
            pick.height,
            pick.rate
        );
    }
    if let Some(warning) = &choice.warning {
        tracing::warn!("{warning}");
    }
    Ok(choice.picks)
}

/// Returns the caps that select `pick`.
pub(in crate::source::gst) fn caps(pick: &Pick) -> gst::Caps {
    let raw = |name: &str| gst::Caps::builder("video/x-raw").field("format", name);
    let builder = match pick.format {
        Format::Grey | Format::Y8i => raw("GRAY8"),
        Format::Nv12 => raw("NV12"),
        Format::Yuyv => raw("YUY2"),
        Format::Uyvy => raw("UYVY"),
        Format::Y16 | Format::Y12i => raw("GRAY16_LE"),
        Format::Mjpg => gst::Caps::builder("image/jpeg"),
        Format::H264 => gst::Caps::builder("video/x-h264"),
    };
    let fraction = |value: u32| i32::try_from(value).unwrap_or(i32::MAX);
    let rate = gst::Fraction::new(fraction(pick.rate.frames), fraction(pick.rate.seconds));
    builder
        .field("width", fraction(pick.width))
        .field("height", fraction(pick.height))
        .field("framerate", rate)
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::v4l2::Rate;

    #[test]
    fn caps_say_what_was_chosen() {
        gst::init().unwrap();
        let rate = Rate { frames: 30000, seconds: 1001 };
        for (format, text) in [
            (Format::Yuyv, "video/x-raw, format=(string)YUY2, "),
            (Format::Grey, "video/x-raw, format=(string)GRAY8, "),
            (Format::Y16, "video/x-raw, format=(string)GRAY16_LE, "),
            (Format::Y8i, "video/x-raw, format=(string)GRAY8, "),
            (Format::Y12i, "video/x-raw, format=(string)GRAY16_LE, "),
            (Format::Mjpg, "image/jpeg, "),
        ] {
            let pick = Pick { format, width: 640, height: 480, rate };
            let expected = "width=(int)640, height=(int)480, framerate=(fraction)30000/1001";
            assert_eq!(caps(&pick).to_string(), format!("{text}{expected}"));
        }
    }

    #[test]
    fn a_camera_of_interleaved_views_is_read_as_one_source_of_both() {
        let mode = |code: &[u8; 4], width| {
            let rates = vec![Rate { frames: 30, seconds: 1 }];
            Mode { code: *code, width, height: 480, rates }
        };
        // As a RealSense D435 lists them: GREY is its left view alone.
        let all =
            [mode(b"GREY", 640), mode(b"UYVY", 640), mode(b"Y8I ", 1280), mode(b"Y12I", 1280)];
        let camera = |modes: &[Mode]| v4l2::Opened {
            node: "/dev/video2".into(),
            bus: None,
            modes: modes.to_vec(),
        };
        let picks = |modes: &[Mode], layout| {
            choose(&[("/dev/video2", camera(modes))], layout, &CameraRequest::default())
        };
        let [pick] = picks(&all, ViewLayout::SideBySide).unwrap()[..] else { panic!() };
        assert_eq!((pick.format, pick.width), (Format::Y8i, 1280));
        let [pick] = picks(&all, ViewLayout::Whole).unwrap()[..] else { panic!() };
        assert_eq!((pick.format, pick.width), (Format::Grey, 640));
        let refusal = picks(&all[2..], ViewLayout::Whole).unwrap_err().to_string();
        assert!(refusal.contains("give it as `--side-by-side /dev/video2`"), "{refusal}");
    }

    #[test]
    fn a_camera_that_is_missing_is_named_with_the_cure() {
        let specs = ["/dev/video777", "left.mp4"].map(StreamSpec::parse);
        let error = inputs(specs.each_ref(), ViewLayout::Whole, &GstOptions::default())
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("/dev/video777: no camera there"), "{error}");
        assert!(error.contains("`stereod devices`"), "{error}");
    }

    #[test]
    fn a_name_that_may_change_comes_with_one_that_does_not() {
        let port = || Some(PathBuf::from("/dev/v4l/by-path/pci-usb-0:1:1.0-video-index0"));
        let hint = unstable_name("/dev/video2", port()).unwrap();
        assert!(hint.contains("/dev/video2 may") && hint.ends_with("video-index0"), "{hint}");
        assert_eq!(unstable_name("/dev/v4l/by-path/x", port()), None);
        assert_eq!(unstable_name("/dev/video2", None), None);
    }
}
