//! Plays image files as a stream of raw video.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use gstreamer as gst;
use gstreamer_app as gst_app;
use gstreamer_video as gst_video;
use image::DynamicImage;

use crate::labels::Timing;
use crate::source::gst::appsink::Shared;
use crate::source::gst::options::GstOptions;
use crate::source::pictures::Pictures;
use stereod_core::picture::grey::Grey;
use stereod_core::picture::orientation::Orient;
use stereod_core::picture::packing::{Packing, Stated};
use stereod_core::picture::still::{self, Still};

/// Plays the images, each as one raw frame with its time. Damaged ones are left out.
pub(in crate::source::gst) fn source(
    pictures: &Pictures,
    timing: Timing,
    options: &GstOptions,
    shared: Arc<Shared>,
) -> gst_app::AppSrc {
    let source =
        gst_app::AppSrc::builder().format(gst::Format::Time).max_bytes(0).max_buffers(2).build();
    let files = pictures.files.clone();
    let (orient, has_colour) = (options.orient, options.keep.colours.is_some());
    let mut next = 0;
    let need_data = move |source: &gst_app::AppSrc, _| {
        while let Some((number, path)) = files.get(next) {
            next += 1;
            let time = |number| clock_time(timing.time(number));
            match frame(path, orient, has_colour, &shared) {
                Ok((mut buffer, caps)) => {
                    if let Some(buffer) = buffer.get_mut() {
                        buffer.set_pts(time(*number));
                        let end = time(number.saturating_add(1));
                        buffer.set_duration(end.checked_sub(time(*number)));
                    }
                    // The push fails if the stream is shutting down.
                    let sample = gst::Sample::builder().buffer(&buffer).caps(&caps).build();
                    let _ = source.push_sample(&sample);
                    return;
                }
                Err(error) => shared.leave_out(*number, format!("{error:#}")),
            }
        }
        let _ = source.end_of_stream();
    };
    source.set_callbacks(gst_app::AppSrcCallbacks::builder().need_data(need_data).build());
    source
}

/// Reads an image file as a raw frame and its caps, with colour only if an output needs it.
fn frame(
    path: &Path,
    orient: Orient,
    has_colour: bool,
    shared: &Shared,
) -> anyhow::Result<(gst::Buffer, gst::Caps)> {
    let Still { picture, orientation, stated } = still::read_any(path, orient)?;
    shared.note_orientation(orientation);
    let picture = if has_colour { picture } else { Grey::of(picture).into() };
    raw(picture, stated).with_context(|| format!("cannot read {}", path.display()))
}

/// Converts an image to a format of GStreamer, without transparency.
fn raw(picture: DynamicImage, stated: Option<Stated>) -> anyhow::Result<(gst::Buffer, gst::Caps)> {
    let (width, height) = (picture.width(), picture.height());
    let (format, bytes_a_pixel, samples) = match picture {
        DynamicImage::ImageLuma8(_) | DynamicImage::ImageLumaA8(_) => {
            (gst_video::VideoFormat::Gray8, 1, picture.into_luma8().into_raw())
        }
        DynamicImage::ImageLuma16(_) | DynamicImage::ImageLumaA16(_) => {
            (gst_video::VideoFormat::Gray16Le, 2, bytes(&picture.into_luma16()))
        }
        DynamicImage::ImageRgb16(_) | DynamicImage::ImageRgba16(_) => {
            (gst_video::VideoFormat::Rgba64Le, 8, bytes(&picture.into_rgba16()))
        }
        _ => (gst_video::VideoFormat::Rgb, 3, picture.into_rgb8().into_raw()),
    };
    // The caller sets the rate.
    let info = gst_video::VideoInfo::builder(format, width, height).fps(gst::Fraction::new(0, 1));
    let info = match stated {
        Some(stated) => state(info, stated).build()?,
        None => info.build()?,
    };
    let stride = i32::try_from(width * bytes_a_pixel)?;
    let mut buffer = gst::Buffer::from_mut_slice(samples);
    if let Some(buffer) = buffer.get_mut() {
        let flags = gst_video::VideoFrameFlags::empty();
        // GStreamer expects padded rows by default; these have no padding.
        gst_video::VideoMeta::add_full(buffer, flags, format, width, height, &[0], &[stride])?;
    }
    Ok((buffer, info.to_caps()?))
}

/// Adds the arrangement of the views that a file states, as a video states it.
fn state(info: gst_video::VideoInfoBuilder<'_>, stated: Stated) -> gst_video::VideoInfoBuilder<'_> {
    let Stated { packing, right_first, half } = stated;
    let (mode, squeezed) = match packing {
        Packing::TopBottom => (gst_video::VideoMultiviewMode::TopBottom, (1, 2)),
        _ => (gst_video::VideoMultiviewMode::SideBySide, (2, 1)),
    };
    let order = match right_first {
        true => gst_video::VideoMultiviewFlags::RIGHT_VIEW_FIRST,
        false => gst_video::VideoMultiviewFlags::empty(),
    };
    let shape = if half { squeezed } else { (1, 1) };
    info.multiview_mode(mode).multiview_flags(order).par(gst::Fraction::from(shape))
}

/// Converts 16-bit samples to little-endian bytes.
fn bytes(samples: &[u16]) -> Vec<u8> {
    samples.iter().flat_map(|sample| sample.to_le_bytes()).collect()
}

fn clock_time(time: Duration) -> gst::ClockTime {
    gst::ClockTime::from_nseconds(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX - 1))
}

#[cfg(test)]
mod tests {
    use super::super::packing::remarks;
    use super::*;
    use crate::container;
    use crate::source::gst::plane::ViewLayout;

    #[test]
    fn the_arrangement_that_a_file_states_is_told_as_of_a_video() {
        gst::init().unwrap();
        let told = |stated, layout, swap| {
            let (_, caps) = raw(DynamicImage::new_luma8(8, 4), stated).unwrap();
            let info = gst_video::VideoInfo::from_caps(&caps).unwrap();
            remarks(&info, container::Stated::default(), layout, swap).join(" ")
        };
        let stated = Some(Stated::CROSS_EYED);
        assert!(told(stated, ViewLayout::Whole, false).ends_with("--side-by-side with --swap"));
        assert!(told(stated, ViewLayout::SideBySide, false).contains("--swap"));
        assert_eq!(told(stated, ViewLayout::SideBySide, true), "");
        assert_eq!(told(None, ViewLayout::Whole, false), "");
        let above = Stated { packing: Packing::TopBottom, right_first: false, half: true };
        assert!(told(Some(above), ViewLayout::TopBottom, false).contains("`--half`"));
        assert_eq!(told(Some(above), ViewLayout::HalfTopBottom, false), "");
    }
}
