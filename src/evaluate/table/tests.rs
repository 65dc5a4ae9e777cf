use super::forms::*;
use super::*;
use crate::scoring::{Figures, NAMES};
use stereod_core::frame::DisparityRange;

/// Returns a pair whose figures are all `dense` percent after filling and 1 more before; `all`
/// where it has truth for all pixels.
fn measured(dense: f64, has_all: bool) -> Measured {
    let score = |value| Some(Score { count: 8, figures: Figures([Some(value); NAMES.len()]) });
    let areas = |value| Areas {
        non_occluded: score(value),
        all: if has_all { score(value) } else { None },
        discontinuities: None,
    };
    let mut unfilled = areas(dense + 1.0);
    if let Some(score) = &mut unfilled.non_occluded {
        score.figures.0[15] = None;
    }
    let curve = Sparsification { area: dense / 2.0, best: dense / 4.0, calibration: dense / 8.0 };
    let all = has_all.then_some(curve);
    let summary = Summary {
        time_ms: 10.0 * dense,
        image_density: 100.0,
        surfaces: Surfaces { density: 90.0, plane_residual: None, thin_gaps: dense },
        unfilled,
        dense: areas(dense),
        sparsification: Areas { all, ..Areas::default() },
    };
    Measured { size: (4, 2), range: DisparityRange { min: 0, count: 16 }, summary, deviation: None }
}

fn report(datasets: Vec<Dataset>) -> Report {
    let (engine, noise, seeds) = (Some("CPU".into()), Some(5.0), vec![7]);
    let settings = toml::Value::from(0);
    let is_comparison = false;
    Report {
        engine,
        repeat: 3,
        even: None,
        noise,
        seeds,
        settings,
        datasets,
        is_comparison,
        combinations: Vec::new(),
        deviation: None,
    }
}

fn dataset(path: &str, pairs: &[(&str, f64, bool)]) -> Dataset {
    let pair =
        |&(name, dense, all): &(&str, f64, bool)| (name.to_owned(), Ok(measured(dense, all)));
    Dataset { path: path.into(), pairs: pairs.iter().map(pair).collect() }
}

#[test]
fn rows_are_pairs_and_means_of_what_the_table_shows() {
    let mut first = dataset("v2", &[("teddy", 2.0, true), ("a|b\n", 4.0, false)]);
    first.pairs.push(("lost".into(), Err("cannot be read".into())));
    let second = dataset("kitti", &[("one", 6.0, false)]);
    let report = report(vec![first, second]);
    let text = markdown(&report, &Layout::default());
    let lines: Vec<&str> = text.lines().collect();
    let row = |name: &str, values: &str| {
        lines.iter().filter(|line| line.starts_with(&format!("| {name} | {values}"))).count()
    };
    assert_eq!(lines[0], "Pixels that both cameras see:");
    assert!(lines[2].starts_with(
        "| pair | known | wrong | nearer | error | rms | bad 0.5 | bad 1 | bad 2 | bad 4 | D1 | dense 0.5 |"
    ));
    assert!(lines[3].starts_with("| --- | ---: | ---: |"));
    // 4 rows of pairs and means in the first table besides the total, 1 and its means in the second.
    assert_eq!(row("teddy", "3.0 | 3.00 | 3.00 | 3.000 | - | 3.00 |"), 1);
    assert_eq!(row("teddy", "3.0 | 3.00 | 3.00 | 3.000 | 3.000 | 3.00 |"), 1);
    assert_eq!(row("a\\|b\\n", "5.0 | 5.00"), 1);
    assert_eq!((row("mean of v2", "4.0 | 4.00"), row("mean of v2", "3.0 | 3.00")), (1, 1));
    assert_eq!((row("mean of kitti", "7.0 | 7.00"), row("one", "7.0")), (1, 1));
    assert_eq!((row("mean of all", "5.0 | 5.00"), row("mean of all", "3.0 | 3.00")), (1, 1));
    assert!(
        lines.iter().any(|line| line.starts_with("| mean of all |") && line.ends_with("| 40.0 |"))
    );
    assert!(
        lines.iter().any(|line| line.starts_with("| mean of all |") && line.ends_with("| 20.0 |"))
    );
    assert_eq!(row("mean of all", "90.0 | - | 4.00 | 40.0 |"), 1);
    let end = "3 of 4 pairs on CPU; noise of 5 grey levels was added to both views (seed 7).";
    assert_eq!(lines.last(), Some(&end));
}

#[test]
fn other_programs_can_read_the_tables() {
    let report = report(vec![dataset("v2", &[("te_ddy, 1", 2.0, false)])]);
    let csv = csv(&report, &Layout::default());
    let lines: Vec<&str> = csv.split("\r\n").collect();
    assert!(lines[0].starts_with("region,pair,known,wrong,nearer,error,rms,bad 0.5,"), "{csv}");
    let heads: std::collections::HashSet<&str> = lines[0].split(',').collect();
    assert_eq!(heads.len(), lines[0].split(',').count(), "{csv}");
    let start = "Pixels that both cameras see,\"te_ddy, 1\",3.0,3.00,3.00,3.000,,3.00,";
    assert!(lines[1].starts_with(start), "{csv}");
    assert!(
        lines[3].starts_with("\"Whole maps, without the truth\",\"te_ddy, 1\",90.0,,"),
        "{csv}"
    );
    let latex = latex(&report, &Layout::default());
    assert!(latex.contains("te\\_ddy, 1 & 3.0 & 3.00 & "), "{latex}");
    assert_eq!(latex.matches("\\begin{tabular}").count(), latex.matches("\\bottomrule").count());
}

#[test]
fn a_comparison_has_a_row_for_each_combination_and_no_means() {
    let rows = dataset("all", &[("paths=4", 2.0, false), ("paths=8", 1.0, false)]);
    let report = Report { is_comparison: true, ..report(vec![rows]) };
    let text = aligned(&report, &Layout::default());
    assert!(text.lines().nth(1).unwrap().trim_start().starts_with("settings "), "{text}");
    assert!(!text.contains("mean of all"), "{text}");
    assert!(text.contains("2 combinations on CPU"), "{text}");
}

/// A comparison of two combinations over two pairs, and its deviations.
fn comparison() -> Report {
    let of = |first, second| {
        let mut report =
            report(vec![dataset("v2", &[("a_1", first, false), ("b", second, false)])]);
        report.deviation = report.mean();
        report.seeds = vec![1, 2];
        report
    };
    let names = ["paths=4".to_owned(), "paths=8".to_owned()];
    Report::comparison(vec![(&names[0], of(2.0, 4.0)), (&names[1], of(1.0, 9.0))])
}

#[test]
fn tables_for_papers_have_eight_columns_and_bold_figures() {
    let text = latex(&comparison(), &Layout::default());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[1], "\\begin{table}", "{text}");
    assert!(
        lines[3]
            .starts_with("\\caption{Pixels that both cameras see: 2 combinations on CPU; noise"),
        "{text}"
    );
    assert_eq!(lines[4..7], ["\\label{tab:nonocc}", NO_WIDER, "\\begin{tabular}{lrrrrrrr}"]);
    let row = |name: &str| *lines.iter().find(|line| line.starts_with(name)).unwrap();
    assert_eq!(
        row("settings"),
        "settings & known & bad 0.5 & bad 1 & bad 2 & D1 & error & ms \\\\"
    );
    // Means before filling are 4 and 6: more is better for `known` only. Deviations are not compared.
    let best = "\\textbf{4.00}";
    assert_eq!(
        row("paths=4 &"),
        format!(
            "paths=4 & 4.0 & {best} & {best} & {best} & {best} & \\textbf{{4.000}} & \\textbf{{30.0}} \\\\"
        )
    );
    assert!(row("paths=8 &").starts_with("paths=8 & \\textbf{6.0} & 6.00 & "), "{text}");
    let deviation = row("paths=4 $");
    assert!(deviation.starts_with("paths=4 $\\pm$ & 4.0 & 4.00 & "), "{text}");
    assert!(deviation.ends_with("& - \\\\"), "the time has none: {text}");
    assert!(
        !latex(
            &report(vec![dataset("v2", &[("a", 2.0, false), ("b", 1.0, false)])]),
            &Layout::default()
        )
        .contains("textbf")
    );
}

#[test]
fn columns_and_pairs_are_chosen() {
    let columns = vec![column("dense-1").unwrap(), column("known").unwrap()];
    let per_pair = Some(column("bad-1").unwrap());
    let layout = Layout { columns, per_pair, legend: false };
    let text = markdown(&comparison(), &layout);
    assert!(
        text.starts_with("Pixels that both cameras see:\n\n| settings | dense 1 | known |\n"),
        "{text}"
    );
    assert!(text.contains("\n| paths=4 | 3.00 | 4.0 |\n| paths=4 ± | 3.00 | 4.0 |\n"), "{text}");
    assert!(text.contains("Whole maps, without the truth:\n\n| settings | known |\n"), "{text}");
    let pairs = "bad 1 of each pair, Pixels that both cameras see:\n\n| pair | paths=4 | paths=8 |\n\
                 | --- | ---: | ---: |\n| a_1 | 3.00 | 2.00 |\n| b | 5.00 | 10.00 |\n";
    assert!(text.contains(pairs), "{text}");
    assert!(!csv(&comparison(), &layout).contains("of each pair"));
    assert_eq!(
        csv_of_pairs(&comparison(), &layout).lines().take(2).collect::<Vec<_>>(),
        [
            "region,pair,paths=4,paths=8",
            "\"bad 1 of each pair, Pixels that both cameras see\",a_1,3.00,2.00"
        ]
    );
    let times = Layout { columns: vec![column("ms").unwrap()], ..Layout::default() };
    assert!(markdown(&comparison(), &times).contains("| paths=4 ± | 30.0 |"));
    let latex = latex(&comparison(), &layout);
    assert!(
        latex.contains("a\\_1 & 3.00 & \\textbf{2.00} \\\\\nb & \\textbf{5.00} & 10.00"),
        "{latex}"
    );
    assert!(column("bad").unwrap_err().contains("known, wrong, nearer, error, rms, bad-0.5"));
}

#[test]
fn long_names_have_lines_of_their_own() {
    let name = "cost=combined paths=4 cost-window=9 prior=2 ".repeat(4);
    let text = aligned(
        &report(vec![dataset("v2", &[("teddy", 2.0, true), (&name, 40.0, true)])]),
        &Layout { legend: true, ..Layout::default() },
    );
    let (tables, _) = text.split_once("Percent of").unwrap();
    assert!(tables.lines().all(|line| line.chars().count() <= WIDEST), "{text}");
    let lines: Vec<&str> = tables.lines().take(6).collect();
    assert!(lines[3].starts_with("  cost=combined") && lines[4].starts_with("  "), "{text}");
    let figures: Vec<&str> = lines[5].split_whitespace().collect();
    assert_eq!(figures[..2], ["41.0", "41.00"], "{text}");
    assert_eq!(lines[5].chars().count(), lines[2].chars().count(), "{text}");
}

#[test]
fn data_sets_have_short_names_that_differ() {
    let named =
        |paths: &[&str]| names(&paths.iter().map(|path| dataset(path, &[])).collect::<Vec<_>>());
    assert_eq!(named(&["/nowhere/a/teddy", "/nowhere/cones/"]), ["teddy", "cones"]);
    let both = ["/nowhere/2012/training", "/nowhere/2015/training"];
    assert_eq!(named(&both), ["2012/training", "2015/training"]);
    assert_eq!(named(&["/nowhere/a", "/nowhere/a"]), ["a", "a"]);
}

#[test]
fn columns_are_aligned() {
    let text = aligned(
        &report(vec![dataset("v2", &[("teddy", 2.0, false), ("x", 40.0, false)])]),
        &Layout { legend: true, ..Layout::default() },
    );
    let lines: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).collect();
    assert_eq!(lines.len(), 5);
    assert!(lines.iter().all(|line| line.chars().count() <= 100), "{text}");
    let widths: Vec<usize> = lines[1..].iter().map(|line| line.chars().count()).collect();
    assert!(widths.iter().all(|width| *width == widths[0]), "{text}");
    assert!(!text.contains("All pixels") && !text.contains("mean of all"), "{text}");
    assert!(text.contains("time in the engine, the median of 3.\n2 pairs on CPU;"), "{text}");
}
