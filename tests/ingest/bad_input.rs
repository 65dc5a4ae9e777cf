//! Unreadable or truncated input: a clear message, and all pairs before the error.

use std::path::PathBuf;
use std::time::Duration;

use stereod::Eye;
use stereod_core::frame::Image;

use super::*;
use crate::common::numbered_videos::steady;

fn fragments(left: &str, right: &str) -> SourceSpec {
    SourceSpec::two(left, right)
}

fn good(folder: &Path, name: &str, coding: &str) -> PathBuf {
    numbered_videos::eye(folder, name, Eye::Left, &steady(100, 20, Duration::ZERO), coding)
}

fn cut(path: &Path, to: impl Fn(usize) -> usize) -> PathBuf {
    let bytes = std::fs::read(path).unwrap();
    let cut = path.with_file_name(format!("cut_{}", path.file_name().unwrap().to_string_lossy()));
    std::fs::write(&cut, &bytes[..to(bytes.len())]).unwrap();
    cut
}

fn assert_says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in: {message}");
    }
}

#[test]
fn what_is_not_a_video_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let missing = folder.path().join("missing.mp4");
    assert_says(&refusal(&two(&missing, &missing)), &["missing.mp4", "no such file"]);
    assert_says(&refusal(&two(folder.path(), &missing)), &["is a folder without pictures"]);
    let empty = at("empty.mp4", b"");
    assert_says(&refusal(&two(&empty, &empty)), &["empty.mp4", "0 bytes"]);
    let notes = "These are notes, in plain English, and not a video at all.\n".repeat(200);
    let text = at("notes.mp4", notes.as_bytes());
    assert_says(&refusal(&two(&text, &text)), &["notes.mp4", "text"]);
    let noise: Vec<u8> =
        (0..5000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let noise = at("noise.mp4", &noise);
    assert_says(&refusal(&two(&noise, &noise)), &["noise.mp4", "type"]);
    let sound = folder.path().join("sound.wav");
    numbered_videos::launch(&format!(
        "audiotestsrc num-buffers=20 ! wavenc ! filesink location={}",
        sound.display()
    ));
    assert_says(&refusal(&two(&sound, &sound)), &["sound.wav", "no video in it, only audio"]);
    let sound = folder.path().join("sound.mkv");
    numbered_videos::launch(&format!(
        "audiotestsrc num-buffers=20 ! vorbisenc ! matroskamux ! filesink location={}",
        sound.display()
    ));
    assert_says(&refusal(&two(&sound, &sound)), &["sound.mkv", "no video in it, only audio"]);
}

#[test]
fn streams_without_a_picture_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let none = "videotestsrc num-buffers=0 ! video/x-raw,width=64,height=48";
    assert_says(&refusal(&fragments(none, none)), &["num-buffers=0", "no picture"]);
    // A container with a header and no content.
    let video = good(folder.path(), "head.mkv", numbered_videos::H264_MKV);
    let bytes = std::fs::read(&video).unwrap();
    let cluster = bytes.windows(4).position(|id| id == [0x1f, 0x43, 0xb6, 0x75]).unwrap();
    let head = cut(&video, |_| cluster);
    assert_says(&refusal(&two(&head, &head)), &["cut_head.mkv"]);
    // The index of an MP4 comes last, so a truncated recording has none.
    let video = good(folder.path(), "v.mp4", numbered_videos::H264_MP4);
    let headless = cut(&video, |length| length / 2);
    let message = refusal(&two(&video, &headless));
    assert_says(&message, &["cut_v.mp4", "moov"]);
}

#[test]
fn streams_with_both_views_need_an_even_size() {
    let odd = "videotestsrc ! video/x-raw,width=63,height=47,framerate=20/1".to_owned();
    assert_says(&refusal(&SourceSpec::side_by_side(odd.clone())), &["63x47", "even width"]);
    assert_says(&refusal(&SourceSpec::top_bottom(odd)), &["63x47", "even height"]);
}

#[test]
fn bad_fragments_are_quoted_with_the_reason() {
    let refused = |text: &str| refusal(&fragments(text, text));
    assert_says(
        &refused("nosuchsrc ! videoconvert"),
        &["\"nosuchsrc ! videoconvert\"", "nosuchsrc"],
    );
    assert_says(&refused("videotestsrc patern=ball ! queue"), &["patern"]);
    assert_says(&refused("videotestsrc ! ! queue"), &["cannot be built"]);
    assert_says(&refused("videotestsrc ! audioconvert"), &["cannot be built", "link"]);
    assert_says(&refused("!"), &["empty"]);
    assert_says(&refused("videotestsrc ! fakesink"), &["no open end", "leave out the sink"]);
    assert_says(&refused("filesrc location=/nowhere.mp4 ! decodebin"), &["/nowhere.mp4"]);
    assert_says(&refused("audiotestsrc num-buffers=9 ! audioconvert"), &["audio"]);
    // A stream that no decoder can read, as if a plug-in were missing.
    let unknown = "videotestsrc num-buffers=9 ! jpegenc ! capssetter replace=true join=false \
                   caps=video/x-nonsense,width=9,height=9";
    assert_says(&refused(unknown), &["nonsense", "install"]);
}

#[test]
fn a_source_that_never_delivers_times_out() {
    let silent =
        "appsrc is-live=true caps=video/x-raw,format=GRAY8,width=8,height=8,framerate=1/1 ! queue";
    let options = GstOptions { patience: Duration::from_millis(300), ..GstOptions::default() };
    let error = open(&fragments(silent, silent), &options).err().unwrap();
    assert_says(&format!("{error:#}"), &["no picture came within 0.3 s"]);
    // Stopping ends the wait.
    let options = super::options();
    options.stop.set(true);
    let error = open(&fragments(silent, silent), &options).err().unwrap();
    assert_says(&format!("{error:#}"), &["stopped"]);
    let nobody = fragments("rtsp://127.0.0.1:1/x", "http://127.0.0.1:1/x.mp4");
    assert_says(&refusal(&nobody), &["rtsp://127.0.0.1:1/x"]);
}

#[test]
fn a_recording_that_just_stops_is_played_to_there() {
    let folder = tempfile::tempdir().unwrap();
    let faststart =
        "video/x-raw,format=I420 ! x264enc speed-preset=ultrafast ! mp4mux faststart=true";
    for (name, coding) in [
        ("v.mkv", numbered_videos::H264_MKV),
        ("v.avi", numbered_videos::MJPEG_AVI),
        ("fast.mp4", faststart),
    ] {
        let whole = good(folder.path(), name, coding);
        let cut = cut(&whole, |length| length * 6 / 10);
        let spec = two(&whole, &cut);
        let mut source = opened(&spec);
        let mut pairs = 0;
        let result = source.run(&Switch::default(), &mut |pair, _| {
            assert_eq!(
                numbered_videos::read(&pair.left).1,
                numbered_videos::read(&pair.right).1,
                "{name}"
            );
            pairs += 1;
            ControlFlow::Continue(())
        });
        let text = result.unwrap_err().to_string();
        let expected = format!("only {pairs} of about 100 pictures could be read");
        assert!(text.contains(&expected) && text.contains("truncated"), "{name}: {text}");
        assert!((20..90).contains(&pairs), "{name}: {pairs}");
        // The complete view is counted to its end.
        assert_eq!(source.counts(), counts(100, pairs, pairs), "{name}");
    }
}

#[test]
fn damage_in_the_middle_costs_what_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let faststart = "video/x-raw,format=I420 ! x264enc speed-preset=ultrafast key-int-max=5 ! mp4mux faststart=true";
    for (name, coding) in [
        ("v.avi", numbered_videos::MJPEG_AVI),
        ("v.mkv", numbered_videos::MJPEG_MKV),
        ("v.mp4", faststart),
    ] {
        let whole = good(folder.path(), name, coding);
        let mut bytes = std::fs::read(&whole).unwrap();
        let middle = bytes.len() / 2;
        for (i, byte) in bytes[middle..middle + 2000].iter_mut().enumerate() {
            *byte = (i * i % 251) as u8;
        }
        let damaged = folder.path().join(format!("damaged_{name}"));
        std::fs::write(&damaged, bytes).unwrap();
        let mut source = opened(&two(&whole, &damaged));
        let mut pairs = 0;
        let result = source.run(&Switch::default(), &mut |_, _| {
            pairs += 1;
            ControlFlow::Continue(())
        });
        let seen = source.counts();
        assert!(pairs >= 40, "{name}: {pairs} pairs");
        assert_eq!((seen.left, seen.pairs), (100, pairs), "{name}");
        if let Err(error) = result {
            let message = format!("{error:#}");
            assert_says(&message, &["damaged_"]);
            let place = format!("only {} of about 100 pictures could be read", seen.right);
            assert!(message.contains(", after ") || message.contains(&place), "{message}");
            assert!(!message.contains("GstPipeline"), "{message}");
        }
    }
}

#[test]
fn an_error_in_the_middle_comes_after_all_pairs_before_it() {
    let broken = "videotestsrc num-buffers=50 pattern=black ! \
                  video/x-raw,width=64,height=48,framerate=20/1 ! identity error-after=21";
    let whole = "videotestsrc num-buffers=50 pattern=black ! \
                 video/x-raw,width=64,height=48,framerate=20/1";
    let mut source = opened(&fragments(whole, broken));
    let mut pairs = 0;
    let result = source.run(&Switch::default(), &mut |_, _| {
        pairs += 1;
        ControlFlow::Continue(())
    });
    assert_eq!(pairs, 20);
    assert_eq!(source.counts(), counts(50, 20, 20));
    let message = format!("{:#}", result.unwrap_err());
    assert_says(&message, &["error-after=21", "after 20 pictures"]);
}

#[test]
fn a_damaged_picture_is_left_out_and_named() {
    let folder = tempfile::tempdir().unwrap();
    for (kind, encoder) in [("png", "pngenc"), ("jpg", "jpegenc"), ("pgm", "pnmenc")] {
        for number in 0..5u8 {
            let path = folder.path().join(format!("{number}.{kind}"));
            numbered_videos::write(
                &path,
                &[(numbered_videos::view(Eye::Left, number), Duration::ZERO)],
                20,
                encoder,
            );
        }
        let third = folder.path().join(format!("3.{kind}"));
        let bytes = std::fs::read(&third).unwrap();
        let pattern = folder.path().join(format!("%d.{kind}"));
        for damage in [&b""[..], &bytes[..bytes.len() / 2], b"junk"] {
            std::fs::write(&third, damage).unwrap();
            let mut source = opened(&two(&pattern, &pattern));
            let mut seen = Vec::new();
            let result = source.run(&Switch::default(), &mut |pair, _| {
                let number = numbered_videos::read(&pair.left).1;
                assert_eq!(numbered_videos::read(&pair.right).1, number);
                // Each frame keeps its own time, even if earlier ones are left out.
                let time = (f64::from(number) / 30.0 * 1e9).round() as u128;
                assert_eq!(pair.timestamp.as_nanos(), time);
                seen.push(number);
                ControlFlow::Continue(())
            });
            let message = format!("{:#}", result.unwrap_err());
            eprintln!("{kind} {}: {seen:?} {message}", damage.len());
            assert_eq!(seen, [0, 1, 2, 4], "{kind}");
            assert_says(&message, &[&format!("3.{kind}")]);
        }
    }
    let third = folder.path().join("3.png");
    let bytes = std::fs::read(folder.path().join("2.png")).unwrap();
    let pattern = folder.path().join("%d.png");
    std::fs::write(&third, bytes).unwrap();
    // A damaged first frame is no reason to refuse the others.
    std::fs::write(folder.path().join("0.png"), b"").unwrap();
    let mut source = opened(&two(&pattern, &pattern));
    let mut numbers = Vec::new();
    let result = source.run(&Switch::default(), &mut |pair, _| {
        numbers.push(numbered_videos::read(&pair.left).1);
        ControlFlow::Continue(())
    });
    assert_eq!(numbers, [1, 2, 2, 4]);
    assert_says(&format!("{:#}", result.unwrap_err()), &["1 of 5", "0.png is empty"]);
    // Without a common number there are no pairs.
    let other = folder.path().join("1%d.png");
    std::fs::copy(&third, folder.path().join("17.png")).unwrap();
    assert_says(
        &refusal(&two(&other, folder.path().join("%02d.png"))),
        &["no number in common", "17"],
    );
    assert_says(
        &refusal(&two(folder.path().join("%06d.png"), &pattern)),
        &["no such picture", "%d."],
    );
}

#[test]
fn a_change_of_size_ends_the_stream_with_what_came_before() {
    let folder = tempfile::tempdir().unwrap();
    let small = |n: u8| Image::from_fn(64, 48, |x, _| x as u8 ^ n);
    let large = |n: u8| Image::from_fn(80, 48, |x, _| x as u8 ^ n);
    for n in 0..6 {
        let picture = if n < 4 { small(n) } else { large(n) };
        let path = folder.path().join(format!("{n}.png"));
        numbered_videos::write(&path, &[(picture, Duration::ZERO)], 20, "pngenc");
    }
    let pattern = folder.path().join("%d.png").display().to_string();
    let specs = [SourceSpec::side_by_side(pattern.clone()), fragments(&pattern, &pattern)];
    for spec in specs {
        let mut source = opened(&spec);
        let mut pairs = 0;
        let result = source.run(&Switch::default(), &mut |_, _| {
            pairs += 1;
            ControlFlow::Continue(())
        });
        assert_eq!(pairs, 4);
        let message = format!("{:#}", result.unwrap_err());
        assert_says(&message, &["change from", "x48", "4.png"]);
    }
}

#[test]
fn a_source_that_sends_nothing_is_told_with_what_to_check() {
    let silent = "udpsrc address=127.0.0.1 port=0 caps=image/jpeg ! jpegdec";
    let impatient = GstOptions { patience: Duration::from_millis(500), ..options() };
    let error = open(&SourceSpec::two(silent, silent), &impatient).err().unwrap();
    let error = format!("{error:#}");
    assert!(error.contains("no picture came within 0.5 s; check that the sender"), "{error}");
    assert!(error.contains("firewall"), "{error}");
}

#[test]
fn frames_in_the_memory_of_a_device_are_told_with_the_element_that_copies_them() {
    for (memory, element) in [("NVMM", "nvvidconv"), ("CUDAMemory", "cudadownload")] {
        let there = format!(
            "fakesrc ! video/x-raw(memory:{memory}),format=NV12,width=64,height=48,framerate=30/1"
        );
        let error = refusal(&SourceSpec::two(&there, &there));
        assert!(error.contains("cannot be read") && error.contains(element), "{error}");
    }
}
