//! Builds the part of a pipeline that leads from an input to the pad that takes raw video.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::{Context, anyhow, bail};
use gstreamer as gst;
use gstreamer::glib;
use gstreamer::prelude::*;

use super::camera;
use super::input::{Camera, Input};
use super::interleaved;
use super::stills;
use crate::labels::Timing;
use crate::plugins::install;
use crate::source::gst::appsink::Shared;
use crate::source::gst::checks::reach::{self, Reach};
use crate::source::gst::options::GstOptions;
use crate::source::launch_line;
use crate::source::v4l2::{self, Format};

/// Connects the first video of an input with `target`.
#[derive(Clone)]
struct Wiring {
    pipeline: glib::WeakRef<gst::Pipeline>,
    target: gst::Pad,
    shared: Arc<Shared>,
    /// Resources that the content may open.
    reach: Reach,
}

/// Adds `input` to `pipeline` so that its decoded frames arrive at `target`.
pub(in crate::source::gst) fn connect(
    input: &Input,
    timing: Option<Timing>,
    options: &GstOptions,
    pipeline: &gst::Pipeline,
    target: gst::Pad,
    shared: &Arc<Shared>,
) -> anyhow::Result<()> {
    let reach = if matches!(input, Input::Uri(_)) { Reach::Network } else { Reach::Itself };
    let wiring = Wiring { pipeline: pipeline.downgrade(), target, shared: shared.clone(), reach };
    match input {
        Input::File(path) => {
            let source = element("filesrc")?;
            source.set_property("location", path);
            wiring.decode_from(pipeline, source)
        }
        Input::Pictures(pictures) => {
            let timing = timing.context("pictures without times")?;
            let source = stills::source(pictures, timing, options, shared.clone());
            pipeline.add(&source)?;
            source.static_pad("src").context("no pad to link")?.link(&wiring.target)?;
            Ok(())
        }
        Input::Uri(uri) => {
            load_network();
            let decoder = wiring.decoder("uridecodebin")?;
            decoder.set_property("uri", uri);
            pipeline.add(&decoder)?;
            Ok(())
        }
        Input::Fragment(text) => wiring.fragment(pipeline, text),
        Input::Camera(camera) => wiring.camera(pipeline, camera),
    }
}

/// Adds `source`, which delivers an encoded video, and a decoder; its frames arrive at `target`.
pub(in crate::source::gst) fn decode(
    source: gst::Element,
    pipeline: &gst::Pipeline,
    target: gst::Pad,
    shared: &Arc<Shared>,
) -> anyhow::Result<()> {
    let (pipeline_of, shared) = (pipeline.downgrade(), shared.clone());
    let wiring = Wiring { pipeline: pipeline_of, target, shared, reach: Reach::Itself };
    wiring.decode_from(pipeline, source)
}

/// Loads the network plug-ins while no stream of theirs runs: GLib 2.74 can deadlock if one
/// thread registers the types of sockets (loading "soup") while another first uses them.
fn load_network() {
    for name in ["souphttpsrc", "rtspsrc"] {
        // A missing plug-in is reported when a stream that needs it starts.
        let _ = gst::ElementFactory::find(name).map(|factory| factory.load());
    }
}

/// Creates an element. The error names the package to install.
pub(in crate::source::gst) fn element(name: &str) -> anyhow::Result<gst::Element> {
    gst::ElementFactory::make(name).build().map_err(|_| {
        anyhow!(
            "GStreamer has no element {name}; {}",
            install("gstreamer1.0-plugins-base and gstreamer1.0-plugins-good")
        )
    })
}

impl Wiring {
    fn decode_from(&self, pipeline: &gst::Pipeline, source: gst::Element) -> anyhow::Result<()> {
        let decoder = self.decoder("decodebin")?;
        pipeline.add_many([&source, &decoder])?;
        source.link(&decoder)?;
        Ok(())
    }

    /// Connects a camera in its chosen mode. It is opened without GStreamer first, which gives a
    /// better message if it is absent.
    fn camera(&self, pipeline: &gst::Pipeline, camera: &Camera) -> anyhow::Result<()> {
        for complaint in v4l2::prepare(&camera.name, &camera.controls)? {
            tracing::warn!("{}: {complaint}", camera.name);
        }
        if camera.pick.format.views() == 2 {
            let source = interleaved::source(camera, self.shared.clone())?;
            pipeline.add(&source)?;
            source.static_pad("src").context("no pad to link")?.link(&self.target)?;
            return Ok(());
        }
        let source = element("v4l2src")?;
        source.set_property("device", &camera.name);
        let filter = element("capsfilter")?;
        filter.set_property("caps", camera::caps(&camera.pick));
        pipeline.add_many([&source, &filter])?;
        source.link(&filter)?;
        let last = match camera.pick.format {
            Format::H264 => {
                let decoder = self.decoder("decodebin")?;
                pipeline.add(&decoder)?;
                filter.link(&decoder)?;
                return Ok(());
            }
            Format::Mjpg => {
                let decoder = element("jpegdec")?;
                pipeline.add(&decoder)?;
                filter.link(&decoder)?;
                decoder
            }
            _ => filter,
        };
        let pad = last.static_pad("src").context("the camera has no output")?;
        pad.link(&self.target)?;
        Ok(())
    }

    /// Creates a decodebin or uridecodebin and links its video to the target. The "3" generation of GStreamer
    /// 1.22 does not reliably continue after damage, so it is not used.
    fn decoder(&self, kind: &str) -> anyhow::Result<gst::Element> {
        let decoder = element(kind)?;
        // Sound and subtitles need no decoder, not even an installed one.
        let (reach, shared) = (self.reach, self.shared.clone());
        let of_select = self.shared.clone();
        decoder.connect("autoplug-continue", false, move |values| {
            let caps = values.get(2)?.get::<gst::Caps>().ok()?;
            let refusal = reach.refusal(&caps);
            let goes_on = refusal.is_none() && !is_other(&caps);
            if let Some(refusal) = refusal {
                shared.fail(refusal);
            }
            Some(goes_on.to_value())
        });
        decoder.connect("autoplug-select", false, move |values| {
            let caps = values.get(2)?.get::<gst::Caps>().ok()?;
            let factory = values.get(3)?.get::<gst::ElementFactory>().ok()?;
            if let Some(refusal) = endless(&factory) {
                of_select.note_missing(refusal);
                return select("skip");
            }
            let skip = is_detour(&factory, &caps) || !reach.allows(&factory);
            select(if skip { "skip" } else { "try" })
        });
        let wiring = self.clone();
        decoder.connect_pad_added(move |_, pad| wiring.offer(pad, false));
        let wiring = self.clone();
        decoder.connect_no_more_pads(move |_| wiring.complete());
        if kind == "decodebin" {
            self.watch_demuxers(decoder.downcast_ref());
        } else {
            let wiring = self.clone();
            decoder.connect("element-added", false, move |values| {
                let child = values.get(1)?.get::<gst::Element>().ok()?;
                wiring.watch_demuxers(child.downcast_ref());
                None
            });
        }
        Ok(decoder)
    }

    /// Notes a Matroska demuxer, because its times need care, and sets that of MJPEG over HTTP.
    fn watch_demuxers(&self, bin: Option<&gst::Bin>) {
        let Some(bin) = bin else { return };
        let shared = self.shared.clone();
        bin.connect_element_added(move |_, child| {
            match child.factory().as_ref().map(|factory| factory.name()).as_deref() {
                Some("matroskademux") => shared.absolute_times.store(true, Ordering::SeqCst),
                // Otherwise decodebin waits for further streams until its queue of 8 MB is full.
                Some("multipartdemux") => child.set_property("single-stream", true),
                _ => {}
            }
        });
    }

    /// Takes `pad` if it is the first with video; `decode` allows a decoder in between.
    fn offer(&self, pad: &gst::Pad, decode: bool) {
        if pad.is_linked() || pad.direction() != gst::PadDirection::Src {
            return;
        }
        let caps = pad.current_caps().unwrap_or_else(|| pad.query_caps(None));
        if is_other(&caps) {
            self.shared.note_other(&caps);
        }
        if self.target.is_linked() {
            if !is_other(&caps) {
                self.shared.note_second_video();
            }
            return;
        }
        let result = if is_other(&caps) {
            Ok(())
        } else if is_raw_video(&caps) {
            self.take(pad, &caps)
        } else if decode {
            self.take_encoded(pad)
        } else {
            Ok(())
        };
        if let Err(error) = result {
            self.shared.fail(format!("{error:#}"));
        }
    }

    fn take(&self, pad: &gst::Pad, caps: &gst::Caps) -> anyhow::Result<()> {
        if pad.link_maybe_ghosting(&self.target).is_err() {
            let memory = caps.features(0).map(ToString::to_string).unwrap_or_default();
            let cure = match memory.as_str() {
                "memory:NVMM" => "\"... ! nvvidconv ! video/x-raw,format=NV12\"",
                "memory:CUDAMemory" => "\"... ! cudadownload\"",
                "memory:GLMemory" => "\"... ! gldownload\"",
                _ => "such as gldownload or cudadownload",
            };
            bail!(
                "its pictures ({caps}) cannot be read; add an element that brings them into ordinary memory: {cure}"
            );
        }
        Ok(())
    }

    fn take_encoded(&self, pad: &gst::Pad) -> anyhow::Result<()> {
        let pipeline = self.pipeline.upgrade().context("the pipeline is gone")?;
        let decoder = self.decoder("decodebin")?;
        pipeline.add(&decoder)?;
        let sink = decoder.static_pad("sink").context("decodebin has no sink pad")?;
        pad.link_maybe_ghosting(&sink)?;
        decoder.sync_state_with_parent()?;
        Ok(())
    }

    /// Fails a stream without video once all of its pads are known.
    fn complete(&self) {
        if !self.target.is_linked() {
            self.shared.fail_without_video();
        }
    }

    fn fragment(mut self, pipeline: &gst::Pipeline, text: &str) -> anyhow::Result<()> {
        // A sink behind a demuxer is linked too late to be seen below, and one without a screen can crash.
        if let Some(sink) = launch_line::sink_at_end(text) {
            bail!("{NO_OPEN_END} (! {sink})");
        }
        let built = gst::parse::bin_from_description_full(
            &close_caps(text),
            false,
            None,
            gst::ParseFlags::FATAL_ERRORS,
        );
        let bin = built
            .map_err(|error| {
                let cure = match error.kind::<gst::ParseError>() {
                    Some(gst::ParseError::NoSuchElement) => plugin_of(text),
                    _ => "",
                };
                anyhow!("cannot be built: {}{cure}", error.message())
            })?
            .downcast::<gst::Bin>()
            .map_err(|_| anyhow!("cannot be built: it is not a chain of elements"))?;
        pipeline.add(&bin)?;
        self.reach = reach::of_fragment(&bin);
        let mut open_ends = 0;
        for child in bin.children() {
            for pad in child.src_pads().iter().filter(|pad| !pad.is_linked()) {
                open_ends += 1;
                self.offer(pad, true);
            }
            let appears = |template: &gst::PadTemplate| {
                template.direction() == gst::PadDirection::Src
                    && template.presence() == gst::PadPresence::Sometimes
            };
            if child.pad_template_list().iter().any(appears) {
                open_ends += 1;
                let wiring = self.clone();
                child.connect_pad_added(move |_, pad| wiring.offer(pad, true));
            }
        }
        if open_ends == 0 {
            bail!(NO_OPEN_END);
        }
        Ok(())
    }
}

const NO_OPEN_END: &str =
    "has no open end that pictures could come from; leave out the sink at its end";

/// Returns where the plug-in of a missing element comes from.
fn plugin_of(text: &str) -> &'static str {
    match text.split_whitespace().next().unwrap_or_default() {
        "libcamerasrc" => "; install gstreamer1.0-libcamera",
        "nvarguscamerasrc" => {
            "; only NVIDIA's system for Jetson boards has it (nvidia-l4t-gstreamer); a container needs it from there"
        }
        _ => "; check its name, or install its plug-in (gst-inspect-1.0 lists what is there)",
    }
}

/// Appends an element to a fragment that ends with caps, which GStreamer's syntax allows only
/// between two elements.
fn close_caps(text: &str) -> String {
    let last = text.rsplit('!').next().unwrap_or_default().trim_start().trim_start_matches('"');
    let name = last.split([',', ' ', '(', ';', '"']).next().unwrap_or_default();
    let is_caps = name.contains('/') && !name.contains('=');
    if is_caps { format!("{text} ! identity") } else { text.to_owned() }
}

/// Reports whether a pad with these caps never carries video.
fn is_other(caps: &gst::Caps) -> bool {
    const OTHERS: [&str; 5] =
        ["audio/", "text/", "subpicture/", "closedcaption/", "application/x-subtitle"];
    let other = |media: &str| OTHERS.iter().any(|start| media.starts_with(start));
    !caps.is_any()
        && !caps.is_empty()
        && caps.iter().all(|structure| other(structure.name().as_str()))
}

/// Reports whether a pad with these caps needs no decoder, because it offers only raw video, unlike a camera
/// that may deliver MJPEG.
fn is_raw_video(caps: &gst::Caps) -> bool {
    let raw = |name: &str| name == "video/x-raw";
    !caps.is_any()
        && caps.iter().any(|s| raw(s.name().as_str()))
        && caps.iter().all(|s| raw(s.name().as_str()) || s.name() == "video/x-bayer")
}

/// Returns the answer to decodebin's signal "autoplug-select" with this short name.
fn select(nick: &str) -> Option<glib::Value> {
    glib::EnumClass::with_type(glib::Type::from_name("GstAutoplugSelectResult")?)?
        .to_value_by_nick(nick)
}

/// Returns why a demuxer is not used that never stops at the end of its file, as some of FFmpeg in
/// gst-libav 1.22; `None` for others.
fn endless(factory: &gst::ElementFactory) -> Option<String> {
    let (format, ending) = match factory.name().as_str() {
        "avdemux_gif" => ("GIF", "gif"),
        "avdemux_nut" => ("NUT", "nut"),
        _ => return None,
    };
    Some(format!(
        "GStreamer cannot read {format} files to their end; convert it without loss: ffmpeg -i INPUT.{ending} \
         -c:v ffv1 OUTPUT.mkv"
    ))
}

/// Reports whether this decoder leaves its frames on a device although another one could decode
/// them into host memory, as needed here.
fn is_detour(factory: &gst::ElementFactory, caps: &gst::Caps) -> bool {
    let on_device = |factory: &gst::ElementFactory| {
        factory.metadata("klass").is_some_and(|class| class.contains("Hardware"))
    };
    on_device(factory)
        && gst::ElementFactory::factories_with_type(
            gst::ElementFactoryType::DECODER,
            gst::Rank::MARGINAL,
        )
        .iter()
        .any(|other| !on_device(other) && other.can_sink_any_caps(caps))
}
