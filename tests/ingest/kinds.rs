//! Every kind of stream: containers, codecs, formats, frames, fragments, halves.

use std::time::Duration;

use stereod::Eye;
use stereod_core::frame::Image;
use stereod_core::picture::orientation::Orient;
use stereod_core::picture::still::read_still;
use stereod_core::picture::tone::Tone;

use super::*;
use crate::common::numbered_videos::steady;

#[test]
fn every_container_and_codec_pairs_completely() {
    let folder = tempfile::tempdir().unwrap();
    let frames = steady(20, 20, Duration::ZERO);
    let codings = [
        // With B-frames, whose delay the edit list compensates.
        ("h264_b.mp4", "video/x-raw,format=I420 ! x264enc bframes=3 ! mp4mux"),
        ("h264.mkv", numbered_videos::H264_MKV),
        ("h264_422.mkv", "video/x-raw,format=Y42B ! x264enc speed-preset=ultrafast ! matroskamux"),
        ("h264_444.mp4", "video/x-raw,format=Y444 ! x264enc speed-preset=ultrafast ! mp4mux"),
        ("h264_10.mkv", "video/x-raw,format=I420_10LE ! x264enc ! matroskamux"),
        ("h264.ts", "video/x-raw,format=I420 ! x264enc speed-preset=ultrafast ! mpegtsmux"),
        ("h264.avi", "video/x-raw,format=I420 ! x264enc bframes=0 ! avimux"),
        ("mjpeg.avi", numbered_videos::MJPEG_AVI),
        ("mjpeg.mkv", numbered_videos::MJPEG_MKV),
        ("vp8.webm", "vp8enc deadline=1 ! webmmux"),
        ("vp9.webm", "vp9enc deadline=1 cpu-used=8 ! webmmux"),
        ("ffv1_grey.mkv", "video/x-raw,format=GRAY8 ! avenc_ffv1 ! matroskamux"),
        ("ffv1_grey16.mkv", "video/x-raw,format=GRAY16_LE ! avenc_ffv1 ! matroskamux"),
        ("ffv1_420.mkv", "video/x-raw,format=I420 ! avenc_ffv1 ! matroskamux"),
        ("ffv1_422.mkv", "video/x-raw,format=Y42B ! avenc_ffv1 ! matroskamux"),
        ("ffv1_rgb.mkv", "video/x-raw,format=BGRx ! avenc_ffv1 ! matroskamux"),
        ("raw_yuy2.avi", "video/x-raw,format=YUY2 ! avimux"),
        ("raw_rgb.avi", "video/x-raw,format=BGR ! avimux"),
        ("raw_grey.mkv", "video/x-raw,format=GRAY8 ! matroskamux"),
    ];
    for (name, coding) in codings {
        let left =
            numbered_videos::eye(folder.path(), &format!("l_{name}"), Eye::Left, &frames, coding);
        let right =
            numbered_videos::eye(folder.path(), &format!("r_{name}"), Eye::Right, &frames, coding);
        let mut source = opened(&two(left, right));
        let info = source.info().clone();
        assert_eq!((info.width, info.height, info.live), (128, 64, false), "{name}");
        assert_eq!(info.description, format!("l_{name} + r_{name}"));
        let rate = info.rate.unwrap_or_else(|| panic!("{name}: no rate"));
        assert!((rate - 20.0).abs() < 0.5, "{name}: {rate} a second");
        // A transport stream does not say how long it is.
        assert!(info.pairs.is_none_or(|pairs| pairs.abs_diff(20) <= 1), "{name}: {:?}", info.pairs);
        assert!(info.pairs.is_some() || name.ends_with(".ts"), "{name}");
        let played = play(&mut *source);
        assert!(played.result.is_ok(), "{name}: {:?}", played.result);
        assert_eq!(played.pairs, same(0..20), "{name}");
        assert_eq!(played.counts, counts(20, 20, 20), "{name}");
        assert!(played.skews.iter().all(|skew| skew.abs() < 2_000_000), "{name}");
        let step = played.times[19] - played.times[0];
        assert!(step.abs_diff(Duration::from_millis(950)) < Duration::from_millis(3), "{name}");
    }
}

#[test]
fn lossless_pictures_come_through_bit_for_bit() {
    let folder = tempfile::tempdir().unwrap();
    // An odd width, every value from 0 to 255.
    let picture = |seed: usize| Image::from_fn(51, 7, |x, y| (x * 5 + y * 51 + seed) as u8);
    let pictures: Vec<_> =
        (0..5).map(|i| (picture(i), Duration::from_millis(50 * i as u64))).collect();
    for coding in [
        "video/x-raw,format=GRAY8 ! avenc_ffv1 ! matroskamux",
        "video/x-raw,format=GRAY8 ! matroskamux",
    ] {
        let path = folder.path().join("v.mkv");
        numbered_videos::write(&path, &pictures, 20, coding);
        let mut next = 0;
        opened(&two(&path, &path))
            .run(&Switch::default(), &mut |pair, _| {
                assert_eq!(pair.left.pixels(), pictures[next].0.pixels(), "{coding}");
                assert_eq!(pair.right.pixels(), pictures[next].0.pixels(), "{coding}");
                next += 1;
                ControlFlow::Continue(())
            })
            .unwrap();
        assert_eq!(next, 5, "{coding}");
    }
    // Luma is used unchanged, whatever range it declares.
    let luma: Vec<u8> = (0..56 * 4).map(|i| (i * 5) as u8).collect();
    let mut planes = luma.clone();
    planes.resize(56 * 4 * 3 / 2, 128);
    let path = folder.path().join("luma.mkv");
    for coding in ["avenc_ffv1 ! matroskamux", "matroskamux"] {
        let buffers = vec![(planes.clone(), Duration::ZERO)];
        video_file::write_video(&path, ("I420", 56, 4), buffers, 20, coding);
        let mut seen = 0;
        opened(&two(&path, &path))
            .run(&Switch::default(), &mut |pair, _| {
                assert_eq!(pair.left.pixels(), luma);
                seen += 1;
                ControlFlow::Continue(())
            })
            .unwrap();
        assert_eq!(seen, 1);
    }
}

#[test]
fn one_stream_may_hold_both_views() {
    let folder = tempfile::tempdir().unwrap();
    for side_by_side in [true, false] {
        let pictures: Vec<_> = steady(12, 20, Duration::ZERO)
            .into_iter()
            .map(|(n, time)| (numbered_videos::joined(n, side_by_side), time))
            .collect();
        let path = folder.path().join("both.mp4");
        numbered_videos::write(&path, &pictures, 20, numbered_videos::H264_MP4);
        let text = path.display().to_string();
        let (spec, how) = if side_by_side {
            (SourceSpec::side_by_side(text), "side by side")
        } else {
            (SourceSpec::top_bottom(text), "top-bottom")
        };
        let mut source = opened(&spec);
        let info = source.info().clone();
        assert_eq!(info.description, format!("both.mp4 ({how})"));
        assert_eq!((info.width, info.height, info.pairs), (128, 64, Some(12)));
        let played = play(&mut *source);
        played.result.unwrap();
        assert_eq!(played.pairs, same(0..12));
        assert_eq!(played.counts, counts(12, 12, 12));
        assert_eq!(played.times[11], Duration::from_millis(550));
    }
}

#[test]
fn swap_exchanges_the_eyes() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, picture: &dyn Fn(u8) -> Image| {
        let pictures: Vec<_> =
            steady(4, 20, Duration::ZERO).into_iter().map(|(n, time)| (picture(n), time)).collect();
        let path = folder.path().join(name);
        numbered_videos::write(&path, &pictures, 20, numbered_videos::H264_MP4);
        path
    };
    let left = write("left.mp4", &|n| numbered_videos::view(Eye::Left, n));
    let right = write("right.mp4", &|n| numbered_videos::view(Eye::Right, n));
    let beside = write("beside.mp4", &|n| numbered_videos::joined(n, true)).display().to_string();
    let above = write("above.mp4", &|n| numbered_videos::joined(n, false)).display().to_string();
    for spec in [two(left, right), SourceSpec::side_by_side(beside), SourceSpec::top_bottom(above)]
    {
        for swap in [false, true] {
            let mut source = open(&spec, &GstOptions { swap, ..options() }).unwrap();
            let expected = if swap { (Eye::Right, Eye::Left) } else { (Eye::Left, Eye::Right) };
            let mut numbers = Vec::new();
            source
                .run(&Switch::default(), &mut |pair, _| {
                    let (left, right) =
                        (numbered_videos::read(&pair.left), numbered_videos::read(&pair.right));
                    assert_eq!((left.0, right.0), expected, "{spec:?}");
                    numbers.push((left.1, right.1));
                    ControlFlow::Continue(())
                })
                .unwrap();
            assert_eq!(numbers, same(0..4), "{spec:?}");
        }
    }
}

/// Writes numbered pictures of both views and gives their patterns.
fn numbered(folder: &Path, encoder: &str, kind: &str, left: &[u8], right: &[u8]) -> SourceSpec {
    let mut patterns =
        [(Eye::Left, left), (Eye::Right, right)].into_iter().map(|(eye, numbers)| {
            let at = folder.join(format!("{eye}_{kind}"));
            std::fs::create_dir_all(&at).unwrap();
            for &number in numbers {
                let path = at.join(format!("{number:04}.{kind}"));
                numbered_videos::write(
                    &path,
                    &[(numbered_videos::view(eye, number), Duration::ZERO)],
                    20,
                    encoder,
                );
            }
            at.join(format!("%04d.{kind}"))
        });
    two(patterns.next().unwrap(), patterns.next().unwrap())
}

#[test]
fn numbered_pictures_play_every_number_that_exists() {
    let folder = tempfile::tempdir().unwrap();
    for (encoder, kind) in [
        ("pngenc", "png"),
        ("jpegenc", "jpg"),
        ("pnmenc", "pgm"),
        ("videoconvert ! video/x-raw,format=RGB ! pnmenc", "ppm"),
    ] {
        let spec = numbered(folder.path(), encoder, kind, &[7, 8, 9, 10], &[7, 8, 9, 10]);
        let mut source = opened(&spec);
        assert_eq!(source.info().pairs, Some(4), "{kind}");
        assert_eq!(source.info().rate, Some(30.0));
        let played = play(&mut *source);
        played.result.unwrap();
        assert_eq!(played.pairs, same(7..11), "{kind}");
        assert_eq!(played.times[0], Duration::ZERO, "{kind}");
        assert_eq!(played.times[3].as_millis(), 100, "{kind}");
    }
    // Pairs are made by number, not by position.
    let spec = numbered(folder.path(), "pngenc", "PNG", &[16, 32, 64, 80], &[0, 16, 48, 64]);
    let mut source = opened(&spec);
    assert_eq!(source.info().pairs, Some(2));
    let played = play(&mut *source);
    assert_eq!(played.pairs, same([16, 64]));
    assert_eq!(played.counts, counts(4, 4, 2));
}

/// `run` reads separate image files as every other command does, whatever their sample format;
/// GStreamer has no name for some formats.
#[test]
fn numbered_pictures_of_every_kind_are_what_is_read_one_by_one() {
    use image::{DynamicImage, ImageBuffer, Rgb};
    let folder = tempfile::tempdir().unwrap();
    let level = |x: u32, y: u32, n: u32| ((x * 977 + y * 3331) % 60_000 + n * 1_000) as u16;
    // An odd width, so that rows have any length.
    let deep = |n| ImageBuffer::from_fn(51, 7, |x, y| Rgb([0, 7, 20].map(|c| level(x + c, y, n))));
    type Convert = fn(DynamicImage) -> DynamicImage;
    let kinds: [(&str, &str, Convert); 10] = [
        ("rgb16", "tif", |deep| deep),
        ("rgba16", "tif", |deep| deep.into_rgba16().into()),
        ("luma16", "tif", |deep| deep.into_luma16().into()),
        ("rgb8", "tif", |deep| deep.into_rgb8().into()),
        ("rgb16", "png", |deep| deep),
        ("lumaa16", "png", |deep| deep.into_luma_alpha16().into()),
        ("luma8", "bmp", |deep| deep.into_luma8().into()),
        ("rgb8", "jpg", |deep| deep.into_rgb8().into()),
        ("rgb32f", "exr", |deep| deep.into_rgb32f().into()),
        ("rgba32f", "exr", |deep| deep.into_rgba32f().into()),
    ];
    for (samples, kind, convert) in kinds {
        let name = |n: u32| folder.path().join(format!("{samples}-{n}.{kind}"));
        for n in 0..3 {
            convert(DynamicImage::ImageRgb16(deep(n))).save(name(n)).unwrap();
        }
        let pattern = folder.path().join(format!("{samples}-%d.{kind}"));
        for (spec, count) in [(two(&pattern, &pattern), 3), (two(name(0), name(0)), 1)] {
            for colours in [None, Some(Default::default())] {
                let (mut options, has_colour) = (options(), colours.is_some());
                options.keep.colours = colours;
                let mut next = 0;
                open(&spec, &options)
                    .unwrap()
                    .run(&Switch::default(), &mut |pair, _| {
                        let expected = read_still(&name(next), Tone::default()).unwrap();
                        let case = format!("{samples} {kind} {next}, colours {has_colour}");
                        assert_eq!(pair.left.pixels(), expected.pixels(), "{case}");
                        assert_eq!(pair.right.pixels(), expected.pixels(), "{case}");
                        // A grey BMP is a colour image with a grey palette.
                        let is_colour = samples.starts_with("rgb") || kind == "bmp";
                        let shown = pair.left.chroma().is_some();
                        assert_eq!(shown, has_colour && is_colour, "{case}");
                        next += 1;
                        ControlFlow::Continue(())
                    })
                    .unwrap();
                assert_eq!(next, count, "{samples} {kind}");
            }
        }
    }
}

/// A tag of a video is followed on request.
#[test]
fn a_video_is_turned_as_its_tag_says_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let picture = || Image::from_fn(64, 32, |x, y| (x * 3 + y) as u8);
    let pictures = [(picture(), Duration::ZERO), (picture(), Duration::from_millis(50))];
    let path = folder.path().join("v.mkv");
    let coding = "video/x-raw,format=GRAY8 ! avenc_ffv1 ! matroskamux";
    numbered_videos::write(&path, &pictures, 20, coding);
    // No muxer of GStreamer 1.22 writes the tag.
    let tagged = "matroskademux ! taginject tags=image-orientation=rotate-180 ! avdec_ffv1";
    let tagged = format!("filesrc location={} ! {tagged}", path.display());
    for (orient, turned) in [(Orient::Ignore, false), (Orient::Auto, true)] {
        let mut expected = picture().pixels().to_vec();
        if turned {
            expected.reverse();
        }
        let mut seen = 0;
        open(&SourceSpec::two(&tagged, &tagged), &GstOptions { orient, ..options() })
            .unwrap()
            .run(&Switch::default(), &mut |pair, _| {
                assert_eq!(pair.left.pixels(), expected, "{orient:?}");
                seen += 1;
                ControlFlow::Continue(())
            })
            .unwrap();
        assert_eq!(seen, 2, "{orient:?}");
    }
}

#[test]
fn fragments_may_end_raw_encoded_or_in_a_demuxer() {
    let folder = tempfile::tempdir().unwrap();
    let frames = steady(10, 20, Duration::ZERO);
    let left =
        numbered_videos::eye(folder.path(), "l.mkv", Eye::Left, &frames, numbered_videos::H264_MKV);
    let right = numbered_videos::eye(
        folder.path(),
        "r.mkv",
        Eye::Right,
        &frames,
        numbered_videos::H264_MKV,
    );
    let (left, right) = (left.display(), right.display());
    for tail in [
        "matroskademux ! h264parse ! avdec_h264 ! videoconvert",
        "matroskademux ! h264parse",
        "matroskademux",
        "decodebin",
        "decodebin ! videoconvert ! video/x-raw,format=RGB !",
        "queue",
    ] {
        let spec = SourceSpec::two(
            format!("filesrc location={left} ! {tail}"),
            format!("filesrc location={right} ! {tail}"),
        );
        let played = played(&spec);
        assert_eq!(played.pairs, same(0..10), "{tail}");
    }
    let spec = SourceSpec::two(left.to_string(), format!("file://{right}"));
    assert_eq!(played(&spec).pairs, same(0..10));
    let one = "videotestsrc num-buffers=5 ! video/x-raw,width=1,height=1,framerate=20/1";
    let spec = SourceSpec::two(one, one);
    let mut pairs = 0;
    opened(&spec)
        .run(&Switch::default(), &mut |pair, _| {
            assert_eq!((pair.left.width(), pair.left.height()), (1, 1));
            pairs += 1;
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(pairs, 5);
}

#[test]
fn sound_beside_the_video_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sound.mkv");
    numbered_videos::launch(&format!(
        "videotestsrc num-buffers=30 ! video/x-raw,width=128,height=64,framerate=30/1 ! jpegenc ! \
         queue ! m. audiotestsrc num-buffers=60 ! vorbisenc ! queue ! matroskamux name=m ! \
         filesink location={}",
        path.display()
    ));
    let mut pairs = 0;
    let mut source = opened(&two(&path, &path));
    source
        .run(&Switch::default(), &mut |_, _| {
            pairs += 1;
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!((pairs, source.counts()), (30, counts(30, 30, 30)));
}

#[test]
fn two_squeezed_videos_are_stretched_as_they_state() {
    let folder = tempfile::tempdir().unwrap();
    let video = folder.path().join("v.mkv");
    let half = GstOptions { half: true, ..options() };
    for (shape, size) in [("2/1", (64, 48)), ("1/2", (32, 96)), ("1/1", (64, 48))] {
        numbered_videos::launch(&format!(
            "videotestsrc num-buffers=3 ! video/x-raw,format=I420,width=32,height=48,framerate=20/1,\
             pixel-aspect-ratio={shape} ! avenc_ffv1 ! matroskamux ! filesink location={}",
            video.display()
        ));
        let source = open(&two(&video, &video), &half).unwrap();
        assert_eq!((source.info().width, source.info().height), size, "{shape}");
    }
}
