//! Compares the frame packing that a stream states (StereoMode of Matroska, frame packing of H.264)
//! with the layout that it is read with.

use gstreamer as gst;
use gstreamer_video::{self as gst_video, VideoMultiviewFlags, VideoMultiviewMode};

use super::plane::ViewLayout;

/// Returns a warning if a stream states another layout than `layout`, or views that are squeezed to half their
/// size; `swap` exchanges the views.
pub(super) fn remark(
    info: &gst_video::VideoInfo,
    layout: ViewLayout,
    swap: bool,
) -> Option<String> {
    other_layout(info, layout, swap).or_else(|| squeezed(info, layout))
}

fn squeezed(info: &gst_video::VideoInfo, layout: ViewLayout) -> Option<String> {
    let (par, side) = match layout {
        ViewLayout::SideBySide => ((2, 1), "width"),
        ViewLayout::TopBottom => ((1, 2), "height"),
        ViewLayout::Whole | ViewLayout::HalfSideBySide | ViewLayout::HalfTopBottom => return None,
    };
    (info.par() == gst::Fraction::new(par.0, par.1)).then(|| {
        format!(
            "it states pixels of {}:{}, so the views are squeezed to half their {side} and their disparities are \
             not those of the cameras; give `--half`, which stretches them",
            par.0, par.1
        )
    })
}

fn other_layout(info: &gst_video::VideoInfo, layout: ViewLayout, swap: bool) -> Option<String> {
    let right_first = info.multiview_flags().contains(VideoMultiviewFlags::RIGHT_VIEW_FIRST);
    let (stated, option, means) = match info.multiview_mode() {
        VideoMultiviewMode::SideBySide => {
            ("side by side", "--side-by-side", ViewLayout::SideBySide)
        }
        VideoMultiviewMode::TopBottom => {
            ("one above the other", "--top-bottom", ViewLayout::TopBottom)
        }
        VideoMultiviewMode::SideBySideQuincunx
        | VideoMultiviewMode::ColumnInterleaved
        | VideoMultiviewMode::RowInterleaved
        | VideoMultiviewMode::Checkerboard
        | VideoMultiviewMode::FrameByFrame
        | VideoMultiviewMode::MultiviewFrameByFrame => {
            return Some(
                "it states that its views are interleaved, which cannot be taken apart here; bring them side by \
                 side with ffmpeg's filter stereo3d, and give the result as --side-by-side"
                    .to_owned(),
            );
        }
        _ => return None,
    };
    let order = if right_first { ", the right one first" } else { "" };
    let exchange = if right_first { " with --swap" } else { "" };
    let read = match layout {
        ViewLayout::HalfSideBySide => ViewLayout::SideBySide,
        ViewLayout::HalfTopBottom => ViewLayout::TopBottom,
        other => other,
    };
    if read != means {
        return Some(format!(
            "it states that each picture holds both views {stated}{order}; give it as {option}{exchange}"
        ));
    }
    (right_first && !swap)
        .then(|| format!("it states that the right view comes first; give {option}{exchange}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(mode: VideoMultiviewMode, right_first: bool, layout: ViewLayout, swap: bool) -> String {
        gstreamer::init().unwrap();
        let flags = if right_first {
            VideoMultiviewFlags::RIGHT_VIEW_FIRST
        } else {
            VideoMultiviewFlags::empty()
        };
        let info = gst_video::VideoInfo::builder(gst_video::VideoFormat::Gray8, 64, 48)
            .multiview_mode(mode)
            .multiview_flags(flags)
            .build()
            .unwrap();
        remark(&info, layout, swap).unwrap_or_default()
    }

    #[test]
    fn squeezed_views_are_told_with_the_flag_that_stretches_them() {
        gst::init().unwrap();
        let of = |par, layout| {
            let info = gst_video::VideoInfo::builder(gst_video::VideoFormat::Gray8, 64, 48)
                .par(gst::Fraction::from(par))
                .build()
                .unwrap();
            remark(&info, layout, false).unwrap_or_default()
        };
        for (par, layout) in [((2, 1), ViewLayout::SideBySide), ((1, 2), ViewLayout::TopBottom)] {
            assert!(of(par, layout).contains("`--half`"), "{layout:?}");
        }
        for (par, layout) in [
            ((1, 1), ViewLayout::SideBySide),
            ((2, 1), ViewLayout::TopBottom),
            ((2, 1), ViewLayout::Whole),
            ((2, 1), ViewLayout::HalfSideBySide),
        ] {
            assert_eq!(of(par, layout), "", "{par:?} {layout:?}");
        }
    }

    #[test]
    fn a_stated_layout_that_is_not_followed_is_named_with_the_option() {
        use VideoMultiviewMode as Mode;
        assert_eq!(of(Mode::Mono, false, ViewLayout::Whole, false), "");
        assert_eq!(of(Mode::SideBySide, false, ViewLayout::SideBySide, false), "");
        assert_eq!(of(Mode::TopBottom, true, ViewLayout::TopBottom, true), "");
        assert_eq!(of(Mode::SideBySide, false, ViewLayout::HalfSideBySide, false), "");
        for (mode, right_first, layout, end) in [
            (
                Mode::SideBySide,
                false,
                ViewLayout::Whole,
                "both views side by side; give it as --side-by-side",
            ),
            (Mode::TopBottom, false, ViewLayout::SideBySide, "; give it as --top-bottom"),
            (
                Mode::SideBySide,
                true,
                ViewLayout::Whole,
                "first; give it as --side-by-side with --swap",
            ),
            (Mode::TopBottom, true, ViewLayout::TopBottom, "first; give --top-bottom with --swap"),
            (Mode::Checkerboard, false, ViewLayout::Whole, "give the result as --side-by-side"),
        ] {
            let remark = of(mode, right_first, layout, false);
            assert!(remark.ends_with(end), "{remark}");
        }
    }
}
