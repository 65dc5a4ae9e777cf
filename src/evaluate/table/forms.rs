//! The tables of a report as text: aligned for a terminal, in Markdown, as comma-separated values, or for LaTeX.

use std::fmt::Write;

use super::{KNOWN, Layout, TIME, Table, WHOLE, chosen, of_pairs};
use crate::report::Report;

/// Columns of tables for a terminal, which has not room for all.
const ON_TERMINAL: [&str; 12] = [
    KNOWN, "wrong", "nearer", "error", "bad 1", "D1", "dense 1", "auc", "cal", WHOLE[1], WHOLE[2],
    TIME,
];

/// Columns of tables for LaTeX: with the names eight, which fit a page.
const ON_PAPER: [&str; 9] =
    [KNOWN, "bad 0.5", "bad 1", "bad 2", "D1", "error", WHOLE[1], WHOLE[2], TIME];

/// Largest width of a table for a terminal.
pub(super) const WIDEST: usize = 100;

const LEGEND: &str = "\
Percent of the pixels with truth, errors in pixels. known: have a disparity; wrong: those of them
that are off by more than 1 px; nearer: those that are nearer than the truth by more than 3 px and
5 %; error, rms: mean and root mean square error of the known. bad 0.5, 1, 2, 4: off by more pixels
or unknown; D1: by more than 3 px and 5 %, or unknown. These are of the map before --fill; dense:
the same after --fill, and after unknown pixels took the smaller neighbour of their row. auc, best: where there is a confidence, mean share of pixels
off by more than 1 px over all densities, by the confidence and by the truth; cal: mean difference
between the confidence and the share of pixels within 1 px, by tenths of the confidence. Depth
discontinuities: within 9x9 pixels of neighbours that differ by more than 2 px, unless the data set
has a mask. plane residual: mean root mean square deviation of 15x15 pixels of a surface from the
plane that fits them best, in pixels; thin gaps: part of the map that is unknown along at most 3 px
of a row or column. ms: time in the engine";

pub fn aligned(report: &Report, layout: &Layout) -> String {
    let mut text = String::new();
    for table in chosen(report, layout, &ON_TERMINAL) {
        let columns = table.rows[0].len();
        let width = |column: usize| table.rows.iter().map(move |row| row[column].chars().count());
        let mut widths: Vec<usize> =
            (0..columns).map(|column| width(column).max().unwrap_or(0)).collect();
        let room =
            WIDEST.saturating_sub(widths.iter().skip(1).map(|width| width + 2).sum::<usize>() + 2);
        widths[0] = width(0).filter(|&width| width <= room).max().unwrap_or(0);
        let _ = writeln!(text, "{}", table.title);
        for row in &table.rows {
            // A longer name has lines of its own.
            let name: Vec<char> = row[0].chars().collect();
            let is_long = name.len() > room;
            for line in name.chunks(WIDEST - 2).filter(|_| is_long) {
                let _ = writeln!(text, "  {}", line.iter().collect::<String>());
            }
            let _ = write!(text, "  {:<1$}", if is_long { "" } else { &row[0] }, widths[0]);
            for (cell, width) in row.iter().zip(&widths).skip(1) {
                let _ = write!(text, "  {cell:>width$}");
            }
            text.push('\n');
        }
        text.push('\n');
    }
    text.push_str(&explained(report, layout));
    if !layout.legend {
        text.push_str("`--legend` explains the columns.\n");
    }
    text
}

pub fn markdown(report: &Report, layout: &Layout) -> String {
    let mut text = String::new();
    for table in chosen(report, layout, &[]) {
        let _ = writeln!(text, "{}:\n", table.title);
        for (number, row) in table.rows.iter().enumerate() {
            let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
            let _ = writeln!(text, "| {} |", cells.join(" | "));
            if number == 0 {
                let _ = writeln!(text, "| --- |{}", " ---: |".repeat(row.len() - 1));
            }
        }
        text.push('\n');
    }
    text.push_str(&explained(report, layout));
    text
}

/// Returns the report as one table of comma-separated values (RFC 4180), with the region in the first column. A figure
/// that a row does not have is empty. The tables of pairs and combinations have other columns: [`csv_of_pairs`].
pub fn csv(report: &Report, layout: &Layout) -> String {
    comma_separated(&chosen(report, &Layout { per_pair: None, ..layout.clone() }, &[]))
}

/// Returns the tables of pairs and combinations as one table of comma-separated values.
pub fn csv_of_pairs(report: &Report, layout: &Layout) -> String {
    comma_separated(&of_pairs(report, layout).collect::<Vec<_>>())
}

fn comma_separated(tables: &[Table]) -> String {
    let quoted = |cell: &str| match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    };
    let mut heads: Vec<&str> = Vec::new();
    for head in tables.iter().flat_map(|table| &table.rows[0]) {
        if !heads.contains(&&**head) {
            heads.push(head);
        }
    }
    let mut text = format!("region,{}\r\n", heads.join(","));
    for Table { title, rows, .. } in tables {
        let (own, rows) = rows.split_first().expect("a table has a head");
        for row in rows {
            let cell = |head: &&str| {
                let at = own.iter().position(|own| own == head);
                at.map(|at| &*row[at]).filter(|cell| *cell != "-").map(quoted).unwrap_or_default()
            };
            let cells: Vec<String> = heads.iter().map(cell).collect();
            let _ = write!(text, "{},{}\r\n", quoted(title), cells.join(","));
        }
    }
    text
}

/// Returns the report as tables of LaTeX, with the rules of the package booktabs. A table that is wider than the line is
/// made as wide. The best figures of a comparison are bold.
pub fn latex(report: &Report, layout: &Layout) -> String {
    let mut text = String::from("% needs \\usepackage{booktabs,graphicx}\n");
    for table in chosen(report, layout, &ON_PAPER) {
        let Table { title, label, rows, .. } = &table;
        let columns = "r".repeat(rows[0].len() - 1);
        let caption = escaped_for_latex(&format!("{title}: {}", conditions(report)));
        let _ = writeln!(text, "\\begin{{table}}\n\\centering\n\\caption{{{caption}}}");
        let _ = writeln!(text, "\\label{{tab:{label}}}");
        let _ = writeln!(text, "{NO_WIDER}\n\\begin{{tabular}}{{l{columns}}}\n\\toprule");
        let best = table.best();
        for (number, row) in rows.iter().enumerate() {
            let cells = row.iter().zip(&best[number]).map(|(cell, is_best)| {
                let cell = escaped_for_latex(cell);
                if *is_best && report.is_comparison { format!("\\textbf{{{cell}}}") } else { cell }
            });
            let rule = if number == 0 { "\n\\midrule" } else { "" };
            let _ = writeln!(text, "{} \\\\{rule}", cells.collect::<Vec<_>>().join(" & "));
        }
        text.push_str("\\bottomrule\n\\end{tabular}}\n\\end{table}\n");
    }
    text
}

/// Begins a box of its own width, or of the line's if that is less.
pub(super) const NO_WIDER: &str =
    "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%";

fn escaped_for_latex(cell: &str) -> String {
    cell.chars().fold(String::new(), |mut text, c| {
        match c {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => text.extend(['\\', c]),
            '\\' => text.push_str("\\textbackslash{}"),
            '~' => text.push_str("\\textasciitilde{}"),
            '^' => text.push_str("\\textasciicircum{}"),
            '±' => text.push_str("$\\pm$"),
            other => text.push(other),
        }
        text
    })
}

/// Returns the lines below the tables.
fn explained(report: &Report, layout: &Layout) -> String {
    let conditions = conditions(report);
    match layout.legend {
        true => format!("{LEGEND}{}.\n{conditions}\n", times(report)),
        false => conditions + "\n",
    }
}

fn times(report: &Report) -> String {
    match report.repeat {
        1 => String::new(),
        repeat => format!(", the median of {repeat}"),
    }
}

/// Returns the engine and the changes to the images.
fn conditions(report: &Report) -> String {
    let even = report.even.map(|grey| format!("; a quarter of the left picture was painted grey {grey}, with what it shows in the right one"));
    let seeds: Vec<String> = report.seeds.iter().map(u64::to_string).collect();
    let seeds = match &seeds[..] {
        [] => None,
        [seed] => Some(format!("seed {seed}")),
        seeds => Some(format!("seeds {}; ±: standard deviation over them", seeds.join(", "))),
    };
    let sigma = report.noise.map_or(String::new(), |sigma| format!(" of {sigma} grey levels"));
    let noise = seeds.map(|seeds| format!("; noise{sigma} was added to both views ({seeds})"));
    let (measured, all) = report.counts();
    let what = if report.is_comparison { "combination" } else { "pair" };
    let count = match measured == all {
        true => format!("{all} {what}{}", if all == 1 { "" } else { "s" }),
        false => format!("{measured} of {all} {what}s"),
    };
    let engine = report.engine.as_ref().map(|engine| format!(" on {engine}"));
    let [engine, even, noise] = [engine, even, noise].map(Option::unwrap_or_default);
    format!("{count}{engine}{even}{noise}.")
}
