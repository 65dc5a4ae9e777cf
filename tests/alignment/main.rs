//! The alignment of real pairs, as they are and with known errors injected.

use std::path::{Path, PathBuf};
use stereod::alignment::*;
use stereod::frame::*;
use stereod::source::still::read_still;

/// The folder of recordings, or nothing with a visible note.
fn data(below: &str) -> Option<PathBuf> {
    let root = std::env::var_os("STEREOD_TEST_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data"),
        PathBuf::from,
    );
    let path = root.join(below);
    if !path.exists() {
        eprintln!("skipped: no {}; set STEREOD_TEST_DATA", path.display());
        return None;
    }
    Some(path)
}

#[test]
fn look() {
    let d = data(".").unwrap();
    let mut list: Vec<(String, String, usize)> = Vec::new();
    for k in ["000000", "000016", "000032", "000048", "000064", "000080"] {
        for sub in ["rectified/png", "png"] {
            list.push((format!("euroc_v1_01/{sub}/cam0/{k}.png"), format!("euroc_v1_01/{sub}/cam1/{k}.png"), 64));
        }
    }
    for (k, n) in [("tsukuba", 16), ("venus", 32), ("cones", 64), ("teddy", 64)] {
        list.push((format!("middlebury_v2/{k}/imL.png"), format!("middlebury_v2/{k}/imR.png"), n));
    }
    list.push(("middlebury_2006/aloe/aloeL.jpg".into(), "middlebury_2006/aloe/aloeR.jpg".into(), 224));
    for k in ["02", "03", "08", "13", "20"] {
        list.push((format!("kitti2015/0000{k}_10/image_2.png"), format!("kitti2015/0000{k}_10/image_3.png"), 128));
    }
    for k in ["rect_000", "rect_060", "rect_150", "rect_250", "raw_000", "raw_030", "raw_100", "raw_300", "raw_600"] {
        list.push((format!("/tmp/h/oakd_{k}_l.png"), format!("/tmp/h/oakd_{k}_r.png"), 64));
    }
    for (l, r, n) in list {
        let (li, ri) = (read_still(&d.join(&l)).unwrap(), read_still(&d.join(&r)).unwrap());
        for (w, a, b, range) in [("", &li, &ri, Some(n)), ("none", &li, &ri, None), ("SWAP", &ri, &li, Some(n))] {
            let options = Options { range: range.map(|count| DisparityRange { min: 0, count }), ..Options::default() };
            let t = std::time::Instant::now();
            let m = measure(a, b, &options);
            let t = t.elapsed().as_secs_f64() * 1e3;
            let v = Limits::default().judge(m.as_ref(), Verdict::Unsure);
            match m {
                None => println!("{w:5}{l:40} {t:5.1} ms NONE"),
                Some(m) => println!("{w:5}{l:40} {t:5.1} ms {v:?} {}/{} err {:.2}+-{:.2} shift {:.2} roll {:.3} scale {:.4} curv {:.2}+-{:.2} med {:.2} spread {:.2} d {:.1} below {:.2}", m.consistent, m.matches, m.row_error_px, m.uncertainty_px, m.shift_px, m.roll_deg, m.scale, m.curvature_px, m.curvature_uncertainty_px, m.median_px, m.spread_px, m.disparity_px, m.below_range),
            }
        }
    }
}
