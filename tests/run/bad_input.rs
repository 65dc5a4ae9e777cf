//! Bad input: a message that names the item and the remedy, the right exit status, no panic, and
//! existing files stay intact.

use super::*;

/// Runs and expects this exit status and these words in the message.
fn fails(folder: &Path, arguments: &[&str], status: i32, words: &[&str]) -> String {
    let (code, stdout, stderr) = run(folder, arguments);
    assert_eq!(code, status, "{arguments:?}: {stdout}{stderr}");
    let error = stderr.lines().skip_while(|line| !line.starts_with("error: "));
    let error = error.collect::<Vec<_>>().join("\n");
    for word in words {
        assert!(error.contains(word), "{arguments:?}: no {word:?} in {error:?}");
    }
    stderr
}

#[test]
fn what_cannot_be_read_is_named_and_earlier_output_stays() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write_eyes(folder.path(), 4, 4);
    std::fs::write(at("empty.mp4"), b"").unwrap();
    std::fs::write(at("text.mkv"), b"these are no pictures".repeat(100)).unwrap();
    std::fs::create_dir(at("folder")).unwrap();
    write_grey(&at("wide.mkv"), (128, 64), &vec![vec![7; 128 * 64]; 4], LOSSLESS);
    write_grey(&at("none.mkv"), SIZE, &[], LOSSLESS);
    let sound = format!(
        "audiotestsrc num-buffers=20 ! wavenc ! filesink location={}",
        at("sound.wav").display()
    );
    let pipeline = gst::parse::launch(&sound).unwrap();
    pipeline.set_state(gst::State::Playing).unwrap();
    let bus = pipeline.bus().unwrap();
    bus.timed_pop_filtered(gst::ClockTime::from_seconds(30), &[gst::MessageType::Eos]).unwrap();
    pipeline.set_state(gst::State::Null).unwrap();

    for (left, words) in [
        ("missing.mp4", &["missing.mp4", "no such file"][..]),
        ("folder", &["folder", "pattern"]),
        ("empty.mp4", &["empty.mp4", "empty"]),
        ("text.mkv", &["text.mkv"]),
        ("none.mkv", &["none.mkv"]),
        ("sound.wav", &["sound.wav", "no video"]),
        ("wide.mkv", &["128x64", "96x64", "differ in size"]),
        ("p/%03d.png", &["p/%03d.png"]),
        ("nosuchelement ! identity", &["nosuchelement"]),
        ("videotestsrc colour=1 ! identity", &["colour", "videotestsrc"]),
    ] {
        std::fs::write(at("o.mkv"), b"an earlier recording").unwrap();
        let arguments = ["run", "--left", left, "--right", "r.mkv", "--record", "o.mkv"];
        fails(folder.path(), &arguments, 1, words);
        assert_eq!(std::fs::read(at("o.mkv")).unwrap(), b"an earlier recording", "{left}");
    }
}

#[test]
fn a_truncated_video_is_matched_up_to_there() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write_eyes(folder.path(), 40, 40);
    let whole = std::fs::read(at("l.mkv")).unwrap();
    std::fs::write(at("cut.mkv"), &whole[..whole.len() / 2]).unwrap();
    let arguments =
        with_statistics(&["--left", "cut.mkv", "--right", "r.mkv", "--record", "o.mkv"]);
    let (status, stdout, stderr) = run(folder.path(), &arguments);
    assert_eq!(status, 1, "{stderr}");
    assert_eq!(stderr.matches("cut.mkv: only").count(), 1, "{stderr}");
    let statistics: Value = serde_json::from_str(&stdout).unwrap();
    let frames = recorded(&at("o.mkv"));
    assert!((10..30).contains(&frames.len()), "{}", frames.len());
    assert_eq!(statistics["recorded"], frames.len());
    assert_eq!(statistics["frames"]["right"], 40);
    assert!(statistics["error"].as_str().unwrap().contains("truncated"));
    for (n, frame) in frames.iter().enumerate() {
        assert!(*frame == reference(n as u64), "frame {n}");
    }
}

#[test]
fn wrong_parameters_are_usage_errors() {
    let folder = tempfile::tempdir().unwrap();
    let demo = ["run", "--demo", "--frames", "1"];
    for (flags, words) in [
        (&["-d", "0"][..], &["--disparities", "from 1 to 1024"][..]),
        (&["--p1", "50", "--p2", "20"], &["P2 is 20", "P1 is 50"]),
        (&["--cost", "ad", "--ad-truncation", "200", "--p2", "80"], &["280", "255", "--p2"]),
        (&["--min-disparity", "3000"], &["min_disparity"]),
        (&["--set", "matching.disparites=3"], &["disparites", "disparities"]),
        (&["--config", "c.toml"], &["c.toml:2", "pathz", "did you mean `paths`"]),
        (&["--left", "x"], &["--left"]),
    ] {
        std::fs::write(folder.path().join("c.toml"), "[matching]\npathz = 8\n").unwrap();
        fails(folder.path(), &[&demo[..], flags].concat(), 2, words);
    }
    fails(folder.path(), &["run"], 2, &["--demo", "--side-by-side", "stereod run --demo"]);
}

#[test]
fn outputs_that_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let demo = ["run", "--demo", "--demo-size", "96x64", "-d", "24", "--frames", "40"];
    std::fs::write(folder.path().join("file"), b"x").unwrap();
    std::os::unix::fs::symlink("/dev/full", folder.path().join("full.mkv")).unwrap();
    for (flags, words) in [
        (&["--record", "none/o.mkv"][..], &["none/o.mkv", "folder none does not exist"][..]),
        (&["--preview", "none/o.mp4"], &["none/o.mp4", "does not exist"]),
        (&["--record", "file/o.mkv"], &["file/o.mkv"]),
        (&["--pictures", "file"], &["file"]),
        (&["--record", "full.mkv"], &["full.mkv", "disk is full"]),
        (&["--stats", "none/s.json"], &["none/s.json"]),
    ] {
        fails(folder.path(), &[&demo[..], flags].concat(), 1, words);
    }
    // A wrong ending is wrong usage.
    fails(folder.path(), &[&demo[..], &["--record", "o.avi"]].concat(), 2, &["o.avi", ".mkv"]);
    fails(folder.path(), &[&demo[..], &["--preview", "o.mkv"]].concat(), 2, &["o.mkv", ".mp4"]);
    // One full disk does not affect the other output.
    let both = ["--record", "full.mkv", "--pictures", "p"];
    fails(folder.path(), &[&demo[..], &both].concat(), 1, &["full.mkv"]);
    let first = image::open(folder.path().join("p/000000.png")).unwrap();
    assert_eq!(first.into_luma16().into_raw(), reference(0));
}

#[test]
fn what_this_machine_or_version_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let demo = ["run", "--demo", "--frames", "1"];
    // No machine has that many, with or without a GPU.
    let cuda = [&demo[..], &["--engine", "cuda", "--device", "9999"]].concat();
    fails(folder.path(), &cuda, 1, &["CUDA", "--engine cpu"]);
    let window = [&demo[..], &["--window"]].concat();
    fails(folder.path(), &window, 1, &["display", "--headless"]);
}

#[test]
fn stills_that_do_not_fit() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    image::GrayImage::new(8, 6).save(at("a.png")).unwrap();
    image::GrayImage::new(9, 6).save(at("b.png")).unwrap();
    std::fs::write(at("text.png"), b"no picture").unwrap();
    std::fs::write(at("o.png"), b"earlier").unwrap();
    let matched = |left, right, output, status, words: &[&str]| {
        fails(folder.path(), &["match", left, right, "-o", output], status, words);
        assert_eq!(std::fs::read(at("o.png")).unwrap(), b"earlier");
    };
    matched("a.png", "b.png", "o.png", 1, &["8x6", "9x6"]);
    matched("a.png", "c.png", "o.png", 1, &["c.png"]);
    matched("a.png", "text.png", "o.png", 1, &["text.png"]);
    matched("a.png", "a.png", "o.bmp", 2, &["o.bmp", ".png", ".pfm", ".pgm"]);
    matched("a.png", "a.png", "a.png", 2, &["a.png"]);
}

/// Their pixel format has no name in GStreamer 1.22, whose libav wrapper crashes on such formats;
/// the demuxer of NUT never ends.
#[test]
fn video_that_gstreamer_cannot_decode_is_refused_with_the_cure() {
    let words = ["pixel format", "ffmpeg -i INPUT -pix_fmt gray16le -c:v ffv1"];
    let cases = [
        ("bugs/ffv1-gray10", ["left.mkv", "right.mkv"], words),
        ("bugs/nut-hang", ["l.nut", "r.nut"], ["NUT", "ffmpeg -i INPUT.nut -c:v ffv1 OUTPUT.mkv"]),
    ];
    for (folder, [left, right], words) in cases {
        let Some(folder) = crate::common::data::data(folder) else { return };
        fails(&folder, &["run", "--left", left, "--right", right, "--headless"], 1, &words);
    }
}

#[test]
fn a_second_video_in_a_file_is_told_with_the_way_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let track = "videotestsrc num-buffers=8 pattern=ball ! video/x-raw,format=GRAY8,width=96,height=64 ! \
                 avenc_ffv1 ! m.";
    let launch = format!(
        "matroskamux name=m ! filesink location={} {track} {track}",
        folder.path().join("two.mkv").display()
    );
    crate::common::numbered_videos::launch(&launch);
    let arguments = ["run", "--left", "two.mkv", "--right", "two.mkv", "-d", "16", "--headless"];
    let (status, _, stderr) = run(folder.path(), &arguments);
    assert_eq!(status, 0, "{stderr}");
    assert!(stderr.contains("ffmpeg -i two.mkv -map 0:v:1 -c copy SECOND.mkv"), "{stderr}");
}

/// A codec whose name in the container GStreamer does not know, though it may have the decoder.
#[test]
fn no_package_is_named_for_a_codec_that_no_package_adds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("v.mov");
    write_grey(&path, SIZE, &vec![vec![7; 96 * 64]; 4], "jpegenc ! qtmux");
    let mut content = std::fs::read(&path).unwrap();
    // The sample description (ISO/IEC 14496-12): its length, and the length of the entry.
    let entry = content.windows(4).position(|window| window == b"stsd").unwrap() + 16;
    assert_eq!(&content[entry..entry + 4], b"jpeg");
    content[entry..entry + 4].copy_from_slice(b"AVdh");
    std::fs::write(&path, content).unwrap();
    let arguments = ["run", "--left", "v.mov", "--right", "v.mov", "--headless"];
    let words = ["AVdh", "ffmpeg -i INPUT -c:v ffv1 OUTPUT.mkv", "-c copy OUTPUT.mxf"];
    let stderr = fails(folder.path(), &arguments, 1, &words);
    assert!(!stderr.contains("install gstreamer"), "{stderr}");
}

/// Views that share one image at half their width.
#[test]
fn squeezed_views_are_told_with_the_way_to_stretch_them() {
    let folder = tempfile::tempdir().unwrap();
    let calibration = "cam0=[80 0 47.5; 0 80 31.5; 0 0 1]\ncam1=[80 0 47.5; 0 80 31.5; 0 0 1]\ndoffs=0\n\
                       baseline=100\nwidth=96\nheight=64\nndisp=24\n";
    std::fs::write(folder.path().join("calib.txt"), calibration).unwrap();
    let coding = "capssetter caps=\"video/x-raw,pixel-aspect-ratio=(fraction)2/1\" ! avenc_ffv1 ! matroskamux";
    let pictures: Vec<_> = (0..4).map(|n| demo_pair(n).left.pixels().to_vec()).collect();
    write_grey(&folder.path().join("half.mkv"), SIZE, &pictures, coding);
    let half = ["run", "--side-by-side", "half.mkv", "--headless", "-d", "24"];
    let stretched = "squeezed to half their width";
    let (status, _, stderr) = run(folder.path(), &half);
    assert_eq!(status, 0, "{stderr}");
    assert!(stderr.contains(stretched) && stderr.contains("give `--half`"), "{stderr}");
    let calibrated = [&half[..], &["--calibration", "calib.txt", "--depth"]].concat();
    let stderr = fails(folder.path(), &calibrated, 2, &["96x64", "48x64", stretched, "--half"]);
    assert!(!stderr.contains("--top-bottom"), "{stderr}");
    // What is advised works.
    let (status, _, stderr) = run(folder.path(), &[&calibrated[..], &["--half"]].concat());
    assert_eq!(status, 0, "{stderr}");
    assert!(stderr.contains("96x64") && !stderr.contains(stretched), "{stderr}");
}
