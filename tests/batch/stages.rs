//! Stages that remember earlier pairs: the split is refused, or has a run-in.

use super::*;

/// Share of the pixels that differ between two sets of 16-bit images, and of those that differ by more than 1 px or are
/// unknown in one.
fn differing(one: &BTreeMap<String, Vec<u8>>, other: &BTreeMap<String, Vec<u8>>) -> [f64; 2] {
    let (mut all, mut different, mut far) = (0.0, 0.0, 0.0);
    for (name, content) in one.iter().filter(|(name, _)| name.ends_with(".png")) {
        let [one, other] = [content, &other[name]]
            .map(|png| image::load_from_memory(png).unwrap().into_luma16().into_raw());
        for (a, b) in one.iter().zip(&other) {
            all += 1.0;
            different += f64::from(u8::from(a != b));
            far += f64::from(u8::from((*a == 0) != (*b == 0) || a.abs_diff(*b) > 256));
        }
    }
    [different / all, far / all]
}

/// Numbered images of a batch with these pieces, joined.
fn maps(folder: &Path, out: &str, arguments: &[&str]) -> BTreeMap<String, Vec<u8>> {
    let all = [&["in", "--out", out, "--write", "pictures"], arguments].concat();
    ends(&mut batch(folder, &all), 0);
    let joined = format!("{out}-joined");
    ends(&mut stereod(folder, &["batch", "merge", out, "-o", &joined]), 0);
    files(&folder.join(joined))
}

#[test]
fn stages_with_a_memory_need_a_run_in() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::create_dir(here.join("in")).unwrap();
    write_videos(&here.join("in"), "a", &scene(1, 48));
    for (number, (stage, named)) in [
        (["--temporal", "denoise"], "matching.temporal"),
        (["--steady", "6"], "matching.steady"),
        (["--cost", "mi"], "matching.cost"),
    ]
    .into_iter()
    .enumerate()
    {
        let refused = [&["in", "--out", "no", "--piece", "16"], &stage[..]].concat();
        let (_, said) = ends(&mut batch(here, &refused), 2);
        for part in [named, "--piece 0", "--run-in 100"] {
            assert!(said.contains(part), "{stage:?}: {said}");
        }
        let whole =
            maps(here, &format!("whole{number}"), &[&["--piece", "0"], &stage[..]].concat());
        let cut = |run_in: &str| {
            let out = format!("cut{number}-{run_in}");
            maps(here, &out, &[&["--piece", "16", "--run-in", run_in], &stage[..]].concat())
        };
        // From the beginning on, it is the whole run.
        assert_eq!(differing(&whole, &cut("48")), [0.0, 0.0], "{stage:?}");
        let [none, some] = ["0", "16"].map(|run_in| differing(&whole, &cut(run_in)));
        eprintln!("{stage:?}: {none:?} without a run-in, {some:?} with 16 pairs");
        assert!(none[0] > 0.0, "{stage:?}: a memory without an effect proves nothing");
        assert!(some[1] < 0.05, "{stage:?}: {none:?} {some:?}");
    }
}
