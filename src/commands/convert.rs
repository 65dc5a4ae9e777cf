//! From settings to the parameter structs of the stages, which know nothing of settings.

use std::num::NonZeroUsize;

use crate::alignment;
use crate::control::Switch;
use crate::engine::cpu::{CpuOptions, SimdChoice};
use crate::engine::cuda::{Cache, CudaOptions};
use crate::engine::{Choice, Options};
use crate::frame::{DisparityRange, Eye};
use crate::pair::PairBy;
use crate::pool::Pool;
use crate::settings::{
    self, CameraFormat, Control, EngineKind, ExposureFrom, KernelCache, OrAuto, RangeMode,
    Settings, Simd,
};
use crate::sink::colour::{ColourMap, ColourRange};
use crate::sink::colouring::Colouring;
use crate::sink::segments::SegmentLimits;
use crate::sink::video::StreamPicture;
use crate::sink::window::View;
use crate::source::demo::DemoOptions;
use crate::source::gst::{GstOptions, Reconnect};
use crate::source::v4l2::{Controls, Format, PowerLine, Setting, Wish};

/// Which engine is wanted.
pub fn engine_choice(kind: EngineKind) -> Choice {
    match kind {
        EngineKind::Auto => Choice::Auto,
        EngineKind::Cuda => Choice::Cuda,
        EngineKind::Cpu => Choice::Cpu,
    }
}

/// How the engines are to work.
pub fn engine_options(engine: &settings::Engine) -> Options {
    let cpu = CpuOptions {
        threads: NonZeroUsize::new(engine.threads).map(NonZeroUsize::get),
        simd: match engine.simd {
            Simd::Auto => SimdChoice::Auto,
            Simd::Avx512 => SimdChoice::Avx512,
            Simd::Avx2 => SimdChoice::Avx2,
            Simd::Portable => SimdChoice::Portable,
        },
    };
    let cuda = CudaOptions {
        device: engine.device.value().map(usize::from),
        in_flight: engine.in_flight,
        cache: match engine.kernel_cache() {
            KernelCache::OfUser => Cache::of_user(),
            KernelCache::Off => Cache::off(),
            KernelCache::Folder(folder) => Cache::new(folder),
        },
    };
    Options { cpu, cuda }
}

/// Where a good alignment of the eyes ends; `calibrated`: a calibration was given.
pub fn alignment_limits(settings: &Settings, calibrated: bool) -> alignment::Limits {
    alignment::Limits { warn_px: settings.alignment.warn_px, calibrated }
}

/// How the alignment of the eyes is measured.
pub fn alignment_options(range: DisparityRange) -> alignment::Options {
    alignment::Options { range: Some(range), ..alignment::Options::default() }
}

/// The colours.
pub fn colour_map(map: settings::ColourMap) -> ColourMap {
    match map {
        settings::ColourMap::Turbo => ColourMap::Turbo,
        settings::ColourMap::Viridis => ColourMap::Viridis,
        settings::ColourMap::Grey => ColourMap::Grey,
    }
}

/// Which disparities they span; a limit that is not set is that of the candidates.
pub fn colour_range(colour: &settings::Colour, range: DisparityRange) -> ColourRange {
    let limit = |limit: OrAuto, auto: i32| limit.value().map_or(auto as f32, |v| v as f32);
    match (colour.range, colour.min, colour.max) {
        (RangeMode::Adaptive, ..) => ColourRange::ADAPTIVE,
        (RangeMode::Fixed, OrAuto::Auto, OrAuto::Auto) => ColourRange::Full,
        (RangeMode::Fixed, min, max) => {
            ColourRange::Fixed { low: limit(min, range.min), high: limit(max, range.max()) }
        }
    }
}

/// How a recording is cut into files.
pub fn segment_limits(segmenting: settings::Segmenting) -> SegmentLimits {
    let settings::Segmenting { length, size, keep, keep_free } = segmenting;
    SegmentLimits { length, size, keep, keep_free }
}

/// What is streamed.
pub fn stream_picture(view: settings::StreamView) -> StreamPicture {
    match view {
        settings::StreamView::Disparity => StreamPicture::Disparity,
        settings::StreamView::Left => StreamPicture::Left,
        settings::StreamView::SideBySide => StreamPicture::SideBySide,
        settings::StreamView::Numbers => StreamPicture::Numbers,
    }
}

/// How disparity is coloured.
pub fn colouring(colour: &settings::Colour, range: DisparityRange) -> Colouring {
    Colouring { map: colour_map(colour.map), span: colour_range(colour, range) }
}

/// What the window shows first.
pub fn view(view: settings::View) -> View {
    match view {
        settings::View::Disparity => View::Disparity,
        settings::View::Left => View::Left,
        settings::View::SideBySide => View::SideBySide,
        settings::View::Pair => View::Pair,
    }
}

/// How streams are opened, whose pictures are kept in the pool.
pub fn stream_options(settings: &Settings, stop: &Switch, pool: &Pool<u8>) -> GstOptions {
    let source = &settings.source;
    GstOptions {
        pair_by: pair_by(source.pair_by),
        tolerance: source.tolerance(),
        picture_rate: source.picture_rate,
        swap: source.swap,
        cameras: camera_wish(source),
        controls: controls(&settings.camera),
        exposure_from: match settings.camera.exposure_from {
            ExposureFrom::Each => None,
            ExposureFrom::Left => Some(Eye::Left),
            ExposureFrom::Right => Some(Eye::Right),
        },
        reconnect: match source.reconnect {
            settings::Reconnect::Auto => Reconnect::Auto,
            settings::Reconnect::On => Reconnect::On,
            settings::Reconnect::Off => Reconnect::Off,
        },
        silence: source.silence(),
        stop: stop.clone(),
        pool: pool.clone(),
        ..GstOptions::default()
    }
}

/// What is wanted of cameras.
fn camera_wish(source: &settings::Source) -> Wish {
    let format = match source.format {
        CameraFormat::Auto => None,
        CameraFormat::Grey => Some(Format::Grey),
        CameraFormat::Nv12 => Some(Format::Nv12),
        CameraFormat::Yuyv => Some(Format::Yuyv),
        CameraFormat::Uyvy => Some(Format::Uyvy),
        CameraFormat::Mjpg => Some(Format::Mjpg),
        CameraFormat::H264 => Some(Format::H264),
    };
    Wish { size: source.size(), rate: source.rate.value(), format }
}

/// Exposure and the like.
fn controls(camera: &settings::Camera) -> Controls {
    let setting = |control| match control {
        Control::Keep => Setting::Keep,
        Control::Auto => Setting::Auto,
        Control::Value(value) => Setting::Value(value),
    };
    Controls {
        exposure_ms: setting(camera.exposure_ms),
        gain: setting(camera.gain),
        white_balance: setting(camera.white_balance),
        focus: setting(camera.focus),
        power_line: match camera.power_line {
            settings::PowerLine::Keep => PowerLine::Keep,
            settings::PowerLine::Off => PowerLine::Off,
            settings::PowerLine::Hz50 => PowerLine::Hz50,
            settings::PowerLine::Hz60 => PowerLine::Hz60,
            settings::PowerLine::Auto => PowerLine::Auto,
        },
    }
}

/// What makes two frames a pair.
fn pair_by(by: settings::PairBy) -> PairBy {
    match by {
        settings::PairBy::Auto => PairBy::Auto,
        settings::PairBy::Time => PairBy::Time,
        settings::PairBy::Index => PairBy::Index,
    }
}

/// The demo scene, spanning the candidate disparities.
pub fn demo_options(settings: &Settings, disparities: DisparityRange) -> DemoOptions {
    let demo = &settings.demo;
    DemoOptions {
        width: demo.width,
        height: demo.height,
        frames: (demo.frames > 0).then_some(demo.frames),
        rate: demo.rate,
        seed: demo.seed,
        noise: demo.noise as f32,
        right_gain: demo.gain as f32,
        right_offset: demo.offset as f32,
        disparities,
    }
}
