//! Inputs: read under any name, never destroyed, never logged with their passwords, and nothing
//! else is read.

use std::ffi::OsStr;
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use image::GrayImage;

use super::*;

/// Writes the first pairs of the demo scene as l/000000.png, r/000000.png and so on.
fn write_pictures(folder: &Path, pairs: u64) {
    for eye in ["l", "r"] {
        std::fs::create_dir_all(folder.join(eye)).unwrap();
    }
    let (width, height) = (SIZE.0 as u32, SIZE.1 as u32);
    for n in 0..pairs {
        let pair = demo_pair(n);
        for (eye, image) in [("l", &pair.left), ("r", &pair.right)] {
            let pixels = image.pixels().to_vec();
            let picture = GrayImage::from_raw(width, height, pixels).unwrap();
            picture.save(folder.join(eye).join(format!("{n:06}.png"))).unwrap();
        }
    }
}

/// Every file below `folder` with its content.
fn files(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(self::files(&path)),
            false => found.push((path.clone(), std::fs::read(&path).unwrap())),
        }
    }
    found.sort();
    found
}

#[test]
fn pictures_that_count_from_different_numbers_are_told() {
    let folder = tempfile::tempdir().unwrap();
    write_pictures(folder.path(), 3);
    let right = |number: u64| folder.path().join(format!("r/{number:06}.png"));
    (0..3).rev().for_each(|number| std::fs::rename(right(number), right(number + 1)).unwrap());
    let views = ["--left", "l/%06d.png", "--right", "r/%06d.png"];
    let run_with = |more: &[&str]| {
        let arguments = with_statistics(&[&views, more].concat());
        let (status, stdout, stderr) = run(folder.path(), &arguments);
        assert_eq!(status, 0, "{stderr}");
        let statistics: Value = serde_json::from_str(&stdout).unwrap();
        (statistics["pairs"].as_u64(), stderr.contains("begin at 0 (left) and 1 (right)"))
    };
    assert_eq!(run_with(&[]), (Some(2), true));
    assert_eq!(run_with(&["--set", "source.pair_by=index"]), (Some(3), false));
}

#[test]
fn no_output_is_what_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write_eyes(folder.path(), 3, 3);
    write_pictures(folder.path(), 3);
    for eye in ["l", "r"] {
        std::fs::copy(at(&format!("{eye}.mkv")), at(&format!("{eye}.mp4"))).unwrap();
    }
    let segment = "s-20261121T101500Z-00001.mkv";
    std::fs::copy(at("l.mkv"), at(segment)).unwrap();
    std::fs::hard_link(at("l.mkv"), at("hard.mkv")).unwrap();
    std::os::unix::fs::symlink(at("l.mkv"), at("soft.mkv")).unwrap();
    std::fs::write(at("c.toml"), "[matching]\ndisparities = 24\n").unwrap();
    let rig = include_str!("../calibrations/opencv.yml");
    std::fs::write(at("rig.yml"), rig).unwrap();
    let uri = format!("file://{}", at("l.mp4").display());
    let before = files(folder.path());

    let fragment = "filesrc location = \"l.mkv\" ! matroskademux";
    let sources: [&[&str]; 7] = [
        &["--left", "l.mkv", "--right", "r.mkv"],
        &["--left", "l/%06d.png", "--right", "r/%06d.png"],
        &["--left", &uri, "--right", "r.mp4"],
        &["--left", fragment, "--right", "r.mkv"],
        &["--left", segment, "--right", "r.mkv"],
        &["--left", "l/*.png", "--right", "r/*.png"],
        &["l/######.png", "r/######.png"],
    ];
    for (source, outputs) in [
        (0, &["--record", "l.mkv"][..]),
        (0, &["--record", "hard.mkv"]),
        (0, &["--record", "soft.mkv"]),
        (0, &["--stats", "r.mkv"]),
        (0, &["--stats", "c.toml", "--config", "c.toml"]),
        (0, &["--stats", "rig.yml", "--calibration", "rig.yml"]),
        (0, &["--stream", "videoconvert ! jpegenc ! filesink location=l.mkv"]),
        (1, &["--pictures", "l"]),
        (1, &["--pictures", "./r/"]),
        (1, &["--stats", "l/000001.png"]),
        (2, &["--preview", "l.mp4"]),
        (3, &["--record", "l.mkv"]),
        (4, &["--record", "s.mkv", "--segment-size", "1kB", "--keep", "2kB"]),
        (5, &["--pictures", "l"]),
        (6, &["--pictures", "l"]),
    ] {
        let arguments = [&["run", "--headless"], sources[source], outputs].concat();
        let (status, _, stderr) = run(folder.path(), &arguments);
        assert_eq!(status, 2, "{arguments:?}: {stderr}");
        assert!(stderr.contains("also an input"), "{arguments:?}: {stderr}");
        assert!(files(folder.path()) == before, "{arguments:?}: something was changed");
    }
    for arguments in [
        &["match", "l/000000.png", "r/000000.png", "-o", "l/000000.png"][..],
        &["match", "l/000000.png", "r/000000.png", "-o", "x.png", "--colour", "r/000000.png"],
        &["calibration", "convert", "rig.yml", "-o", "rig.yml"],
        &["calibration", "convert", "rig.yml", "-o", "c.toml", "--config", "c.toml"],
    ] {
        let (status, _, stderr) = run(folder.path(), arguments);
        assert_eq!(status, 2, "{arguments:?}: {stderr}");
        assert!(stderr.contains("also an input"), "{arguments:?}: {stderr}");
        assert!(files(folder.path()) == before, "{arguments:?}: something was changed");
    }
    // Outputs may lie next to the inputs.
    let well = ["l.mkv", "r.mkv", "--pictures", ".", "--record", "new.mkv"];
    assert_eq!(statistics(folder.path(), &well)["matched"], 3);
    assert_eq!(statistics(folder.path(), sources[6])["matched"], 3);
}

#[test]
fn outputs_that_cannot_be_written_are_refused_before_anything_is_read() {
    let folder = tempfile::tempdir().unwrap();
    write_pictures(folder.path(), 1);
    std::fs::write(folder.path().join("damaged.png"), "no picture").unwrap();
    let before = files(folder.path());
    for outputs in [
        &["-o", "none/d.png"][..],
        &["-o", "d.tiff", "--colour", "none/c.png"],
        &["-o", "d.npy", "--confidence", "none/c.png"],
        &["-o", "d.png", "--cloud", "none/c.ply", "--focal", "9", "--baseline", "1"],
    ] {
        let arguments = [&["match", "l/000000.png", "damaged.png"], outputs].concat();
        let (status, _, stderr) = run(folder.path(), &arguments);
        assert_eq!(status, 1, "{arguments:?}: {stderr}");
        let names_folder = stderr.contains("the folder none does not exist");
        assert!(names_folder && !stderr.contains("damaged"), "{arguments:?}: {stderr}");
        assert!(files(folder.path()) == before, "{arguments:?}: something was changed");
    }
}

#[test]
fn a_range_that_no_pixel_can_have_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    write_pictures(folder.path(), 1);
    let pair = ["l/000000.png", "r/000000.png"];
    for command in [&["match", "-o", "d.png"][..], &["run", "--headless"]] {
        for range in ["--min-disparity=1900", "--min-disparity=-2000"] {
            let arguments = [command, &pair, &[range, "-d", "16"]].concat();
            let (status, _, stderr) = run(folder.path(), &arguments);
            assert_eq!(status, 2, "{arguments:?}: {stderr}");
            assert!(stderr.contains("no pixel can have a disparity"), "{arguments:?}: {stderr}");
            assert!(stderr.contains("--min-disparity"), "{arguments:?}: {stderr}");
        }
    }
}

#[test]
fn passwords_are_told_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    // Nothing listens on that port any more.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config = format!(
        "[source]\nleft = \"http://me:s3cret-1@{address}/l.mkv\"\n\
         right = \"videotestsrc ! video/x-raw,width=64,height=48 ! identity name=user-pw=s3cret-2\"\n"
    );
    std::fs::write(folder.path().join("c.toml"), config).unwrap();
    let uri = |rest: &str| rest.replace("HOST", &address.to_string());
    let in_path = uri("http://me:s3/cret-3@HOST/l.mkv");
    let in_query = uri("http://HOST/l.mkv?password=s3cret-4&size=3");
    let element = uri("souphttpsrc user-id=me user-pw=\"s3cret 5\" location=http://HOST/x ! queue");
    let stream = "videoconvert ! nosuchsink user-pw=s3cret-6";
    let wrong = "matching.p1=rtsp://me:s3cret-7@host/1";
    let argument = "rtsp://me:s3cret-8@host/1";
    for arguments in [
        &["run", "--headless", "--config", "c.toml", "-vv"][..],
        &["config", "print", "--config", "c.toml", "--origin"],
        &["run", "--headless", "--left", &in_path, "--right", &in_path],
        &["run", "--headless", "--left", &in_query, "--right", &in_query],
        &["run", "--headless", "--left", &element, "--right", &element],
        &["run", "--demo", "--frames", "2", "--headless", "--stream", stream],
        &["run", "--demo", "--set", wrong],
        &["run", "--headless", argument],
    ] {
        let (_, stdout, stderr) = run(folder.path(), arguments);
        let told = stdout + &stderr;
        assert!(!told.contains("cret"), "{arguments:?}: {told}");
        assert!(told.contains("***"), "{arguments:?}: {told}");
    }
}

#[test]
fn statistics_hold_no_passwords() {
    let folder = tempfile::tempdir().unwrap();
    let eye = "videotestsrc num-buffers=3 ! video/x-raw,width=64,height=48 ! \
               taginject tags=\"comment=http://me:s3cret@host/\"";
    let config = format!("[source]\nleft = '{eye}'\nright = '{eye}'\n");
    std::fs::write(folder.path().join("c.toml"), config).unwrap();
    let arguments = ["run", "--headless", "--config", "c.toml", "--stats", "s.json", "-d", "24"];
    let (status, stdout, stderr) = run(folder.path(), &arguments);
    assert_eq!(status, 0, "{stderr}");
    let statistics = std::fs::read_to_string(folder.path().join("s.json")).unwrap();
    for text in [&statistics, &stdout, &stderr] {
        assert!(!text.contains("s3cret"), "{text}");
    }
    let read: Value = serde_json::from_str(&statistics).unwrap();
    assert!(read["settings"]["source"]["left"].as_str().unwrap().contains("http://***@host/"));
}

#[test]
fn a_playlist_in_a_local_file_opens_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write_eyes(folder.path(), 4, 4);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            count.fetch_add(1, Ordering::SeqCst);
            drop(stream);
        }
    });
    let other = at("r.mkv").display().to_string();
    let hls = |what: &str| {
        format!(
            "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\n{what}\n\
             #EXT-X-ENDLIST\n"
        )
    };
    let dash = format!(
        "<?xml version=\"1.0\"?>\n<MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\" type=\"static\" \
         mediaPresentationDuration=\"PT4S\" minBufferTime=\"PT1S\" \
         profiles=\"urn:mpeg:dash:profile:isoff-on-demand:2011\"><Period><AdaptationSet \
         mimeType=\"video/mp4\"><Representation id=\"1\" bandwidth=\"1000\" width=\"96\" \
         height=\"64\"><BaseURL>http://{address}/v.mp4</BaseURL></Representation></AdaptationSet>\
         </Period></MPD>\n"
    );
    let sdp = format!(
        "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\na=control:rtsp://{address}/\n\
         m=video {} RTP/AVP 96\na=rtpmap:96 H264/90000\n",
        address.port()
    );
    for (n, (manifest, words)) in [
        (hls(&format!("http://{address}/1.ts")), "an HLS playlist"),
        (hls(&format!("file://{other}")), "an HLS playlist"),
        (dash, "a DASH manifest"),
        (sdp, ""),
        (format!("http://{address}/1.mkv\nfile://{other}\n"), ""),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("left{n}.mp4");
        std::fs::write(at(&name), &manifest).unwrap();
        let picture = format!("p{n}-1.bmp");
        std::fs::write(at(&picture), &manifest).unwrap();
        let uri = format!("file://{}", at(&name).display());
        let pattern = format!("p{n}-%d.bmp");
        let fragment = format!("filesrc location={name} ! ");
        for left in [&name, &uri, &pattern, &fragment] {
            let arguments = ["run", "--headless", "--left", left, "--right", "r.mkv", "-d", "24"];
            let (status, _, stderr) = run(folder.path(), &arguments);
            assert_eq!(status, 1, "{left}: {stderr}");
            // GStreamer does not recognise a manifest of another kind among images.
            let words = if *left == pattern { "" } else { words };
            assert!(stderr.contains(words), "{left}: no {words:?} in {stderr}");
        }
        assert_eq!(asked.load(Ordering::SeqCst), 0, "{name} made it ask:\n{manifest}");
    }
}

#[test]
fn names_need_not_be_utf_8() {
    let folder = tempfile::tempdir().unwrap();
    write_eyes(folder.path(), 3, 3);
    let named = |name: &'static [u8]| OsStr::from_bytes(name);
    let (left, right) = (named(b"l\xff.mkv"), named(b"r\xfe.mkv"));
    std::fs::rename(folder.path().join("l.mkv"), folder.path().join(left)).unwrap();
    std::fs::rename(folder.path().join("r.mkv"), folder.path().join(right)).unwrap();
    let mut command = stereod(folder.path(), &with_statistics(&["--headless", "--left"]));
    let record = named(b"o\xfd.mkv");
    let output = command.arg(left).arg("--right").arg(right).arg("--record").arg(record);
    let output = output.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let statistics: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(statistics["matched"], 3);
    assert!(folder.path().join(record).metadata().unwrap().len() > 0);
}

#[test]
fn one_grammar_for_all_commands() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write_pictures(folder.path(), 3);
    let numbered = ["--left", "l/%06d.png", "--right", "r/%06d.png", "--pictures", "a"];
    let globbed = ["--left", "l/*.png", "--right", "r/*.png", "--pictures", "b"];
    for arguments in [numbered, globbed] {
        assert_eq!(statistics(folder.path(), &arguments)["matched"], 3);
    }
    assert_eq!(
        std::fs::read(at("a/000002.png")).unwrap(),
        std::fs::read(at("b/000002.png")).unwrap()
    );

    let pair = demo_pair(0);
    let (width, height) = SIZE;
    let beside = GrayImage::from_fn(2 * width as u32, height as u32, |x, y| {
        let (x, y) = (x as usize, y as usize);
        let (image, x) = if x < width { (&pair.left, x) } else { (&pair.right, x - width) };
        image::Luma([image.row(y)[x]])
    });
    beside.save(at("beside.png")).unwrap();
    let above = GrayImage::from_raw(
        width as u32,
        2 * height as u32,
        [pair.right.pixels(), pair.left.pixels()].concat(),
    );
    above.unwrap().save(at("above.png")).unwrap();
    let matched = |arguments: &[&str]| {
        let all = [&["match", "-d", "24", "-o", "o.png"], arguments].concat();
        let (status, _, stderr) = run(folder.path(), &all);
        assert_eq!(status, 0, "{arguments:?}: {stderr}");
        std::fs::read(at("o.png")).unwrap()
    };
    let expected = matched(&["l/000000.png", "r/000000.png"]);
    for arguments in [
        &["r/000000.png", "l/000000.png", "--swap"][..],
        &["--side-by-side", "beside.png"],
        &["--top-bottom", "above.png", "--swap"],
        &["l/*0.png", "r/%06d.png"],
    ] {
        if arguments.contains(&"r/%06d.png") {
            let all = [&["match", "-d", "24", "-o", "o.png"], arguments].concat();
            let (status, _, stderr) = run(folder.path(), &all);
            assert_eq!(status, 2, "{stderr}");
            assert!(stderr.contains("names 3 pictures"), "{stderr}");
        } else {
            assert!(matched(arguments) == expected, "{arguments:?}");
        }
    }
    for wrong in [&["l.png"][..], &["l.png", "r.png", "--side-by-side", "b.png"], &[]] {
        let (status, ..) = run(folder.path(), &[&["match", "-o", "o.png"], wrong].concat());
        assert_eq!(status, 2, "{wrong:?}");
    }
    let (status, _, stderr) = run(folder.path(), &["run", "--side-by-side", "x/*.png"]);
    assert_eq!(status, 1);
    assert!(stderr.contains("no file is called so"), "{stderr}");
}
