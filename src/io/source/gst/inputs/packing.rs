//! Compares the arrangement of views that a stream states (StereoMode of Matroska, boxes of MP4, frame packing of
//! H.264) with the layout that it is read with.

use gstreamer_video::{self as gst_video, VideoMultiviewFlags, VideoMultiviewMode};

use crate::container::{Arrangement, Projection, Stated};
use crate::source::gst::plane::ViewLayout;

/// Returns warnings of a stream that states another layout than `layout`, views that are squeezed to half their
/// size, or no pinhole camera; `swap` exchanges the views. `stated`: by the file itself, which has priority.
pub(in crate::source::gst) fn remarks(
    info: &gst_video::VideoInfo,
    stated: Stated,
    layout: ViewLayout,
    swap: bool,
) -> Vec<String> {
    let stated = match stated.arrangement {
        None | Some(Arrangement::Single) => of_frames(info)
            .map_or(stated, |of_frames| Stated { projection: stated.projection, ..of_frames }),
        Some(_) => stated,
    };
    let size = || squeezed(info, layout);
    let views = of_views(stated, layout, swap).or_else(size);
    views.into_iter().chain(of_projection(stated)).collect()
}

/// Returns what to do with one file that holds both views, if it states so.
pub(in crate::source) fn advice(stated: Stated) -> Option<String> {
    of_views(stated, ViewLayout::Whole, false)
}

/// Warns if the pixels of the two views have different shapes.
pub(in crate::source::gst) fn compare_shapes([left, right]: [(i32, i32); 2]) {
    if left != right {
        tracing::warn!(
            "the left view states pixels of {}:{} and the right one of {}:{}, so the same thing has another width or \
             height in each; bring both to square pixels first: {SQUARE}",
            left.0,
            left.1,
            right.0,
            right.1
        );
    }
}

/// Returns the arrangement that GStreamer has found.
fn of_frames(info: &gst_video::VideoInfo) -> Option<Stated> {
    let right_first = info.multiview_flags().contains(VideoMultiviewFlags::RIGHT_VIEW_FIRST);
    let arrangement = match info.multiview_mode() {
        VideoMultiviewMode::SideBySide => Arrangement::SideBySide,
        VideoMultiviewMode::TopBottom => Arrangement::TopBottom,
        VideoMultiviewMode::ColumnInterleaved => Arrangement::Columns,
        VideoMultiviewMode::RowInterleaved => Arrangement::Rows,
        VideoMultiviewMode::SideBySideQuincunx | VideoMultiviewMode::Checkerboard => {
            Arrangement::Checkerboard
        }
        VideoMultiviewMode::FrameByFrame | VideoMultiviewMode::MultiviewFrameByFrame => {
            Arrangement::Frames
        }
        _ => return None,
    };
    Some(Stated { arrangement: Some(arrangement), right_first, projection: None })
}

/// Makes a video's pixels square.
const SQUARE: &str = "ffmpeg -i INPUT -vf scale=iw*sar:ih,setsar=1 -c:v ffv1 OUTPUT.mkv";

/// Deviation from square pixels that does not matter.
const NEARLY_SQUARE: f64 = 0.02;

fn squeezed(info: &gst_video::VideoInfo, layout: ViewLayout) -> Option<String> {
    let (wide, tall, is_stretched) = match layout {
        ViewLayout::SideBySide => (true, false, false),
        ViewLayout::TopBottom => (false, true, false),
        ViewLayout::Whole => (true, true, false),
        ViewLayout::HalfSideBySide => (true, false, true),
        ViewLayout::HalfTopBottom => (false, true, true),
        ViewLayout::HalfWhole => (true, true, true),
    };
    let (width, height) = (info.par().numer(), info.par().denom());
    let (par, side) = match (width, height) {
        (2, 1) if wide => ("2:1", "width"),
        (1, 2) if tall => ("1:2", "height"),
        _ if (f64::from(width) / f64::from(height) - 1.0).abs() < NEARLY_SQUARE => return None,
        _ if is_stretched => {
            return Some(format!(
                "it states pixels of {width}:{height}, but `--half` stretches by 2; leave it out and bring the views \
                 to square pixels first: {SQUARE}"
            ));
        }
        _ => {
            return Some(format!(
                "it states pixels of {width}:{height}, which are matched as they are stored, so a calibration must be \
                 of such images; for square pixels: {SQUARE}"
            ));
        }
    };
    (!is_stretched).then(|| {
        format!(
            "it states pixels of {par}, so the views are squeezed to half their {side} and their disparities are not \
             those of the cameras; give `--half`, which stretches them"
        )
    })
}

fn of_views(stated: Stated, layout: ViewLayout, swap: bool) -> Option<String> {
    let read = match layout {
        ViewLayout::Whole | ViewLayout::HalfWhole => None,
        ViewLayout::SideBySide | ViewLayout::HalfSideBySide => Some(Arrangement::SideBySide),
        ViewLayout::TopBottom | ViewLayout::HalfTopBottom => Some(Arrangement::TopBottom),
    };
    let (arrangement, right_first) = (stated.arrangement?, stated.right_first);
    let (how, option) = match arrangement {
        Arrangement::SideBySide => ("side by side", "--side-by-side"),
        Arrangement::TopBottom => ("one above the other", "--top-bottom"),
        Arrangement::Single => {
            return read.map(|_| {
                "it states one view in each picture, but both are cut out of it; give it as one view, with a \
                 second file, if that is so"
                    .to_owned()
            });
        }
        Arrangement::Unstated => {
            return read.is_none().then(|| {
                "it states that it holds both views, but not how; give it as --side-by-side or --top-bottom, as \
                 its pictures show"
                    .to_owned()
            });
        }
        other => return Some(of_mixed(other, right_first)),
    };
    let order = if right_first { ", the right one first" } else { "" };
    let exchange = if right_first { " with --swap" } else { "" };
    if read != Some(arrangement) {
        return Some(format!(
            "it states that each picture holds both views {how}{order}; give it as {option}{exchange}"
        ));
    }
    (right_first && !swap)
        .then(|| format!("it states that the right view comes first; give {option}{exchange}"))
}

/// Returns what to do with views that no layout takes apart.
fn of_mixed(arrangement: Arrangement, right_first: bool) -> String {
    // Letters of ffmpeg's filter for the order of the views.
    let order = if right_first { 'r' } else { 'l' };
    let interleaved = |what: &str, from: &str, to: &str, mode: &str, option: &str| {
        format!(
            "it states that its views are interleaved by {what}; take them apart: ffmpeg -i INPUT -vf \
             stereo3d={from}{order}:{to} -metadata:s:v stereo_mode={mode} -c:v ffv1 OUTPUT.mkv, and give the result \
             as {option}"
        )
    };
    match arrangement {
        Arrangement::Rows => interleaved("rows", "ir", "abl", "top_bottom", "--top-bottom"),
        Arrangement::Columns => interleaved("columns", "ic", "sbsl", "left_right", "--side-by-side"),
        Arrangement::Frames => interleaved("frames", "a", "sbsl", "left_right", "--side-by-side"),
        Arrangement::Checkerboard => {
            "it states that its views are interleaved like the fields of a checkerboard, which cannot be taken \
             apart without loss; use a recording with the views side by side"
                .to_owned()
        }
        Arrangement::Anaglyph => {
            "it states that its views are mixed by their colours (anaglyph), which cannot be taken apart; use the \
             recording that it was made from"
                .to_owned()
        }
        Arrangement::Mvc => {
            "it states that each block holds both views (MVC), of which GStreamer and ffmpeg decode the first one \
             only; convert it to side by side with a program that decodes MVC, such as FRIMDecode"
                .to_owned()
        }
        _ => {
            "it holds the second view as a layer of its own (MV-HEVC), which is not decoded here; take both out \
             with ffmpeg 7.1 or later: ffmpeg -i INPUT -map 0:v:0:vpos:left -c:v ffv1 LEFT.mkv -map 0:v:0:vpos:right \
             -c:v ffv1 RIGHT.mkv"
                .to_owned()
        }
    }
}

fn of_projection(stated: Stated) -> Option<String> {
    let packing = match stated.arrangement {
        Some(Arrangement::SideBySide) => "sbs",
        Some(Arrangement::TopBottom) => "tb",
        _ => "2d",
    };
    let (what, from, more) = match stated.projection? {
        Projection::Equirectangular => ("an equirectangular", "e", ""),
        Projection::HalfEquirectangular => ("a half equirectangular", "hequirect", ""),
        Projection::Fisheye => ("a fisheye", "fisheye", ":ih_fov=180:iv_fov=180"),
        Projection::Cubemap => ("a cubemap", "c3x2", ""),
        Projection::Mesh => {
            return Some(
                "it states a mesh as its projection, so the rows of its views do not correspond by depth; use the \
                 recording that it was made from"
                    .to_owned(),
            );
        }
    };
    Some(format!(
        "it states {what} projection, so the rows of its views do not correspond by depth; cut a flat part out of \
         it first: ffmpeg -i INPUT -vf v360={from}:flat:in_stereo={packing}:out_stereo={packing}:h_fov=90:v_fov=90:\
         w=W:h=W{more},sidedata=delete -c:v ffv1 OUTPUT.mkv with the width W of a flat view"
    ))
}

#[cfg(test)]
mod tests {
    use gstreamer as gst;

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
        remarks(&info, Stated::default(), layout, swap).concat()
    }

    #[test]
    fn squeezed_views_are_told_with_the_flag_that_stretches_them() {
        gst::init().unwrap();
        let of = |par, layout| {
            let info = gst_video::VideoInfo::builder(gst_video::VideoFormat::Gray8, 64, 48)
                .par(gst::Fraction::from(par))
                .build()
                .unwrap();
            remarks(&info, Stated::default(), layout, false).concat()
        };
        for (par, layout) in [
            ((2, 1), ViewLayout::SideBySide),
            ((1, 2), ViewLayout::TopBottom),
            ((2, 1), ViewLayout::Whole),
            ((1, 2), ViewLayout::Whole),
        ] {
            assert!(of(par, layout).contains("`--half`"), "{layout:?}");
        }
        for (par, layout) in [
            ((1, 1), ViewLayout::SideBySide),
            ((100, 99), ViewLayout::Whole),
            ((1, 1), ViewLayout::HalfWhole),
            ((1, 1), ViewLayout::Whole),
            ((2, 1), ViewLayout::HalfWhole),
            ((2, 1), ViewLayout::HalfSideBySide),
        ] {
            assert_eq!(of(par, layout), "", "{par:?} {layout:?}");
        }
        assert!(of((4, 3), ViewLayout::Whole).contains("pixels of 4:3, which are matched as"));
        assert!(
            of((4, 3), ViewLayout::HalfWhole).contains("`--half` stretches by 2; leave it out")
        );
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
            (Mode::ColumnInterleaved, true, ViewLayout::Whole, "give the result as --side-by-side"),
            (Mode::Checkerboard, false, ViewLayout::SideBySide, "with the views side by side"),
        ] {
            let remark = of(mode, right_first, layout, false);
            assert!(remark.ends_with(end), "{remark}");
        }
    }

    #[test]
    fn the_statement_of_the_file_has_priority_over_gstreamer_s() {
        use Arrangement as A;
        gst::init().unwrap();
        // GStreamer's reading of Matroska's columns, the left one first.
        let info = gst_video::VideoInfo::builder(gst_video::VideoFormat::Gray8, 64, 48)
            .multiview_mode(VideoMultiviewMode::SideBySide)
            .multiview_flags(VideoMultiviewFlags::RIGHT_VIEW_FIRST)
            .build()
            .unwrap();
        let of = |arrangement, right_first, layout| {
            let stated = Stated { arrangement: Some(arrangement), right_first, projection: None };
            remarks(&info, stated, layout, false).concat()
        };
        let beside = ViewLayout::SideBySide;
        assert!(of(A::Columns, false, beside).contains("stereo3d=icl:sbsl "));
        assert!(of(A::Columns, true, beside).contains("stereo3d=icr:sbsl "));
        assert!(of(A::Rows, true, beside).contains("stereo3d=irr:abl "));
        assert!(of(A::Frames, false, beside).contains("stereo3d=al:sbsl "));
        assert!(of(A::Anaglyph, false, beside).contains("anaglyph"));
        assert!(of(A::Mvc, false, beside).contains("FRIMDecode"));
        assert!(of(A::MvHevc, false, ViewLayout::Whole).contains("vpos:left"));
        assert_eq!(of(A::SideBySide, false, beside), "");
        assert!(of(A::SideBySide, true, beside).ends_with("give --side-by-side with --swap"));
        assert!(of(A::TopBottom, false, beside).ends_with("give it as --top-bottom"));
        assert_eq!(of(A::Unstated, false, beside), "");
        assert!(of(A::Unstated, false, ViewLayout::Whole).contains("but not how"));
    }

    #[test]
    fn one_view_and_projections_are_told() {
        let single = Stated { arrangement: Some(Arrangement::Single), ..Stated::default() };
        assert_eq!(of_views(single, ViewLayout::Whole, false), None);
        assert!(of_views(single, ViewLayout::SideBySide, false).unwrap().contains("one view"));
        let vr = |projection| {
            let arrangement = Some(Arrangement::TopBottom);
            let projection = Some(projection);
            of_projection(Stated { arrangement, right_first: false, projection }).unwrap()
        };
        assert!(
            vr(Projection::Equirectangular).contains("v360=e:flat:in_stereo=tb:out_stereo=tb:")
        );
        assert!(vr(Projection::HalfEquirectangular).contains("v360=hequirect:flat:"));
        assert!(vr(Projection::Mesh).contains("mesh"));
        assert_eq!(of_projection(single), None);
    }
}
