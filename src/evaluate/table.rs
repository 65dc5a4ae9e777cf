//! The report for people: aligned for a terminal, in Markdown, as comma-separated values, or for LaTeX.

use std::collections::HashSet;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use super::item::Areas;
use super::report::{Dataset, Report};
use super::scoring::Score;
use super::sparsification::Sparsification;
use super::summary::Summary;
use super::surfaces::Surfaces;
use crate::measured::Measured;
use stereod_io::text::on_one_line;

/// A column: its head, its map and figure, and its digits after the point.
struct Column {
    head: &'static str,
    map: fn(&Summary) -> &Areas<Score>,
    figure: &'static str,
    digits: usize,
}

const fn matched(head: &'static str, figure: &'static str, digits: usize) -> Column {
    Column { head, map: |summary| &summary.unfilled, figure, digits }
}

const fn dense(head: &'static str, figure: &'static str, digits: usize) -> Column {
    Column { head, map: |summary| &summary.dense, figure, digits }
}

/// The columns of figures; the time follows.
const COLUMNS: [Column; 17] = [
    matched("known", "density", 1),
    matched("wrong", "bad1.0_valid", 2),
    matched("nearer", "nearer_valid", 2),
    matched("error", "avgerr", 3),
    matched("rms", "rms", 3),
    matched("bad 0.5", "bad0.5", 2),
    matched("bad 1", "bad1.0", 2),
    matched("bad 2", "bad2.0", 2),
    matched("bad 4", "bad4.0", 2),
    matched("D1", "d1", 2),
    dense("dense 0.5", "bad0.5", 2),
    dense("dense 1", "bad1.0", 2),
    dense("dense 2", "bad2.0", 2),
    dense("dense 4", "bad4.0", 2),
    dense("dense D1", "d1", 2),
    dense("dense error", "avgerr", 3),
    dense("dense rms", "rms", 3),
];

/// Head of a column, and its figure.
type Curve = (&'static str, fn(&Sparsification) -> f64);

/// Columns of the areas below the sparsification curve, if there is a confidence: its own, and the
/// best one; and of its calibration error.
const CURVES: [Curve; 3] =
    [("auc", |curve| curve.area), ("best", |curve| curve.best), ("cal", |curve| curve.calibration)];

/// Columns of whole maps, of which the first and the last are columns of other tables, too.
const WHOLE: [&str; 4] = [KNOWN, "plane residual", "thin gaps", TIME];

const KNOWN: &str = "known";

/// Time in the engine, the last column.
const TIME: &str = "ms";

/// Columns of tables for a terminal, which has not room for all.
const ON_TERMINAL: [&str; 12] = [
    KNOWN, "wrong", "nearer", "error", "bad 1", "D1", "dense 1", "auc", "cal", WHOLE[1], WHOLE[2],
    TIME,
];

/// Columns of tables for LaTeX: with the names eight, which fit a page.
const ON_PAPER: [&str; 9] =
    [KNOWN, "bad 0.5", "bad 1", "bad 2", "D1", "error", WHOLE[1], WHOLE[2], TIME];

/// Returns the head of the column that `--columns` names, with a hyphen for each space.
pub fn column(name: &str) -> Result<&'static str, String> {
    let heads =
        COLUMNS.iter().map(|column| column.head).chain(CURVES.iter().map(|(head, _)| *head));
    let heads: Vec<&str> = heads.chain(WHOLE[1..].iter().copied()).collect();
    let found = heads.iter().find(|head| **head == name.replace('-', " "));
    found.copied().ok_or_else(|| {
        let known: Vec<String> = heads.iter().map(|head| head.replace(' ', "-")).collect();
        format!("expected one of {}", known.join(", "))
    })
}

/// Columns and further tables of a report.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// Columns in their order; none: those of each form of the tables.
    pub columns: Vec<&'static str>,
    /// Column of a table of pairs and combinations.
    pub per_pair: Option<&'static str>,
    /// True if the columns are explained below the tables.
    pub legend: bool,
}

/// Largest width of a table for a terminal.
const WIDEST: usize = 100;

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

/// An area and its title.
#[derive(Clone, Copy)]
struct Section {
    title: &'static str,
    /// Its name in labels of LaTeX.
    label: &'static str,
    score: fn(&Areas<Score>) -> &Option<Score>,
    curve: fn(&Areas<Sparsification>) -> &Option<Sparsification>,
    /// Set if there is a confidence.
    has_curves: bool,
}

impl Section {
    fn curves(self) -> impl Iterator<Item = &'static Curve> {
        CURVES.iter().filter(move |_| self.has_curves)
    }
}

const SECTIONS: [Section; 3] = [
    Section {
        title: "Pixels that both cameras see",
        label: "nonocc",
        score: |areas| &areas.non_occluded,
        curve: |areas| &areas.non_occluded,
        has_curves: false,
    },
    Section {
        title: "All pixels",
        label: "all",
        score: |areas| &areas.all,
        curve: |areas| &areas.all,
        has_curves: false,
    },
    Section {
        title: "Pixels near depth discontinuities, of those that both cameras see",
        label: "disc",
        score: |areas| &areas.discontinuities,
        curve: |areas| &areas.discontinuities,
        has_curves: false,
    },
];

/// Cells of a table, row by row; the first row is the head, and the first column holds names.
struct Table {
    title: String,
    /// Its name in labels of LaTeX.
    label: String,
    rows: Vec<Vec<String>>,
    /// True if each row compares its cells; else each column of a comparison does.
    by_row: bool,
}

impl Table {
    /// Leaves these columns, in this order; returns `None` if there is none.
    fn with(mut self, columns: &[&str]) -> Option<Self> {
        let places =
            columns.iter().filter_map(|head| self.rows[0].iter().position(|own| own == head));
        let places: Vec<usize> = [0].into_iter().chain(places).collect();
        for row in &mut self.rows {
            *row = places.iter().map(|&place| row[place].clone()).collect();
        }
        (places.len() > 1).then_some(self)
    }

    /// Empties the standard deviations of times: other programs of the machine change times more than seeds do.
    fn without_deviation_of_times(&mut self) {
        let Some(time) = self.rows[0].iter().position(|head| head == TIME) else { return };
        let deviations = self.rows.iter_mut().filter(|row| row[0].ends_with(DEVIATION));
        deviations.for_each(|row| row[time] = "-".to_owned());
    }

    /// Reports for each cell whether it is the best that it is compared with.
    fn best(&self) -> Vec<Vec<bool>> {
        let is_largest = |column: usize| {
            self.rows[0][column] == KNOWN && !self.by_row
                || self.by_row && self.title.starts_with(KNOWN)
        };
        let figure = |row: usize, column: usize| {
            let is_compared = row > 0 && column > 0 && !self.rows[row][0].ends_with(DEVIATION);
            self.rows[row][column].parse::<f64>().ok().filter(|_| is_compared)
        };
        let (height, width) = (self.rows.len(), self.rows[0].len());
        let is_best = |row: usize, column: usize| {
            let Some(own) = figure(row, column) else { return false };
            let sign = if is_largest(column) { -1.0 } else { 1.0 };
            let others: Vec<f64> = match self.by_row {
                true => (0..width).filter_map(|column| figure(row, column)).collect(),
                false => (0..height).filter_map(|row| figure(row, column)).collect(),
            };
            others.len() > 1 && others.iter().all(|other| sign * own <= sign * other)
        };
        (0..height).map(|row| (0..width).map(|column| is_best(row, column)).collect()).collect()
    }
}

/// Ends the name of a row of standard deviations.
const DEVIATION: &str = " ±";

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
const NO_WIDER: &str = "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%";

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

/// Returns the tables with the columns that are chosen, else with the usual ones of their form, or with all if there are
/// none of them.
fn chosen(report: &Report, layout: &Layout, usual: &[&str]) -> Vec<Table> {
    let columns = if layout.columns.is_empty() { usual } else { &layout.columns };
    let with = |table: Table| if columns.is_empty() { Some(table) } else { table.with(columns) };
    let mut tables = tables(report);
    if !layout.columns.contains(&TIME) {
        tables.iter_mut().for_each(Table::without_deviation_of_times);
    }
    tables.into_iter().filter_map(with).chain(of_pairs(report, layout)).collect()
}

fn of_pairs(report: &Report, layout: &Layout) -> impl Iterator<Item = Table> {
    layout.per_pair.into_iter().flat_map(|column| per_pair(report, column))
}

/// Returns the name of each data set: as many of the last folders of its path as tell it from the others.
fn names(datasets: &[Dataset]) -> Vec<String> {
    let whole = |dataset: &Dataset| fs::canonicalize(&dataset.path).unwrap_or(dataset.path.clone());
    let paths: Vec<PathBuf> = datasets.iter().map(whole).collect();
    let last = |path: &PathBuf, count| {
        let folders: Vec<_> = path.iter().rev().take(count).collect();
        on_one_line(&folders.into_iter().rev().collect::<PathBuf>().to_string_lossy()).into_owned()
    };
    let named = |count| paths.iter().map(|path| last(path, count)).collect::<Vec<_>>();
    let different = paths.iter().collect::<HashSet<_>>().len();
    let longest = paths.iter().map(|path| path.iter().count()).max().unwrap_or(1);
    let tells = |names: &Vec<String>| names.iter().collect::<HashSet<_>>().len() == different;
    (1..=longest).map(named).find(tells).unwrap_or_else(|| named(longest))
}

/// Returns a table for each area with any truth; its means are over the pairs in it.
fn tables(report: &Report) -> Vec<Table> {
    let several = report.datasets.len() > 1;
    let mut tables = Vec::new();
    for area in sections(&report.datasets) {
        let (mut rows, mut all) = (Vec::new(), Vec::new());
        let row = |name: &str, summary: &Summary| row(name, summary, area);
        let mean = |name: &str, of: &[&Summary]| row(name, &Summary::mean(of)?);
        for (dataset, called) in report.datasets.iter().zip(names(&report.datasets)) {
            let before = all.len();
            for (name, measured) in dataset.measured() {
                let name = on_one_line(name);
                if let Some(row) = row(&name, &measured.summary) {
                    rows.push(row);
                    all.push(&measured.summary);
                }
                let deviation = measured.deviation.as_ref();
                rows.extend(deviation.and_then(|of| row(&format!("{name}{DEVIATION}"), of)));
            }
            if !report.is_comparison {
                rows.extend(mean(&format!("mean of {called}"), &all[before..]));
            }
        }
        if several {
            rows.extend(mean("mean of all", &all));
        }
        if !rows.is_empty() {
            rows.insert(
                0,
                [first(report)].into_iter().chain(heads(area)).map(str::to_owned).collect(),
            );
            let (title, label) = (area.title.to_owned(), area.label.to_owned());
            tables.push(Table { title, label, rows, by_row: false });
        }
    }
    tables.extend(whole_maps(report));
    tables
}

/// Returns the areas, and whether there is a confidence.
fn sections(datasets: &[Dataset]) -> impl Iterator<Item = Section> {
    SECTIONS.into_iter().map(|section| {
        let curves = datasets.iter().flat_map(Dataset::measured);
        let mut curves = curves.map(|(_, measured)| &measured.summary.sparsification);
        let has_curves = curves.any(|areas| (section.curve)(areas).is_some());
        Section { has_curves, ..section }
    })
}

/// Returns the heads of the figures of an area.
fn heads(area: Section) -> impl Iterator<Item = &'static str> {
    let heads = COLUMNS.iter().map(|column| column.head);
    heads.chain(area.curves().map(|(head, _)| *head)).chain([TIME])
}

/// Returns for each area a table of a column's figure: a row for each pair, a column for each combination.
fn per_pair(report: &Report, column: &str) -> Vec<Table> {
    let mut tables = Vec::new();
    for area in sections(&report.datasets) {
        let Some(place) = heads(area).position(|head| head == column) else { continue };
        let figure =
            |measured: &Measured| Some(row("", &measured.summary, area)?[place + 1].clone());
        let mut rows = vec![vec!["pair".to_owned()]];
        let Some((_, datasets)) = report.combinations.first() else { return tables };
        for (number, dataset) in datasets.iter().enumerate() {
            for (at, (name, _)) in dataset.pairs.iter().enumerate() {
                let of = |(_, datasets): &(String, Vec<Dataset>)| {
                    let outcome = datasets[number].pairs[at].1.as_ref();
                    outcome.ok().and_then(figure).unwrap_or_else(|| "-".into())
                };
                let cells: Vec<String> = report.combinations.iter().map(of).collect();
                if cells.iter().any(|cell| cell != "-") {
                    rows.push([on_one_line(name).into_owned()].into_iter().chain(cells).collect());
                }
            }
        }
        if rows.len() > 1 {
            rows[0]
                .extend(report.combinations.iter().map(|(name, _)| on_one_line(name).into_owned()));
            let title = format!("{column} of each pair, {}", area.title);
            tables.push(Table {
                title,
                label: format!("{}-pairs", area.label),
                rows,
                by_row: true,
            });
        }
    }
    tables
}

/// Returns the table of the figures that need no truth; `None` if no pair was matched.
fn whole_maps(report: &Report) -> Option<Table> {
    let row = |name: &str, summary: &Summary| -> Vec<String> {
        let Surfaces { density, plane_residual, thin_gaps } = summary.surfaces;
        let residual = plane_residual.map_or("-".into(), |residual| format!("{residual:.3}"));
        let figures = [format!("{density:.1}"), residual, format!("{thin_gaps:.2}")];
        let time = format!("{:.1}", summary.time_ms);
        [name.to_owned()].into_iter().chain(figures).chain([time]).collect()
    };
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (dataset, called) in report.datasets.iter().zip(names(&report.datasets)) {
        for (name, measured) in dataset.measured() {
            let name = on_one_line(name);
            rows.push(row(&name, &measured.summary));
            let deviation = measured.deviation.as_ref();
            rows.extend(deviation.map(|of| row(&format!("{name}{DEVIATION}"), of)));
        }
        let mean = dataset.mean().filter(|_| !report.is_comparison);
        rows.extend(mean.map(|mean| row(&format!("mean of {called}"), &mean)));
    }
    if report.datasets.len() > 1 {
        rows.extend(report.mean().map(|mean| row("mean of all", &mean)));
    }
    if rows.is_empty() {
        return None;
    }
    rows.insert(0, [first(report)].into_iter().chain(WHOLE).map(str::to_owned).collect());
    let title = "Whole maps, without the truth".to_owned();
    Some(Table { title, label: "maps".into(), rows, by_row: false })
}

fn first(report: &Report) -> &'static str {
    if report.is_comparison { "settings" } else { "pair" }
}

/// Returns a row; `None` if there is no truth for the area.
fn row(name: &str, summary: &Summary, area: Section) -> Option<Vec<String>> {
    let mut cells = vec![name.to_owned()];
    for column in &COLUMNS {
        let score = (area.score)((column.map)(summary)).as_ref()?;
        let figure = score.figures.get(column.figure);
        cells.push(figure.map_or("-".into(), |figure| format!("{figure:.0$}", column.digits)));
    }
    let curve = (area.curve)(&summary.sparsification).as_ref();
    for (_, value) in area.curves() {
        cells.push(curve.map_or("-".into(), |curve| format!("{:.2}", value(curve))));
    }
    cells.push(format!("{:.1}", summary.time_ms));
    Some(cells)
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

#[cfg(test)]
mod tests {
    use super::super::scoring::{Figures, NAMES};
    use super::*;
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
        let curve =
            Sparsification { area: dense / 2.0, best: dense / 4.0, calibration: dense / 8.0 };
        let all = has_all.then_some(curve);
        let summary = Summary {
            time_ms: 10.0 * dense,
            image_density: 100.0,
            surfaces: Surfaces { density: 90.0, plane_residual: None, thin_gaps: dense },
            unfilled,
            dense: areas(dense),
            sparsification: Areas { all, ..Areas::default() },
        };
        Measured {
            size: (4, 2),
            range: DisparityRange { min: 0, count: 16 },
            summary,
            deviation: None,
        }
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
            lines
                .iter()
                .any(|line| line.starts_with("| mean of all |") && line.ends_with("| 40.0 |"))
        );
        assert!(
            lines
                .iter()
                .any(|line| line.starts_with("| mean of all |") && line.ends_with("| 20.0 |"))
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
        assert_eq!(
            latex.matches("\\begin{tabular}").count(),
            latex.matches("\\bottomrule").count()
        );
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
            lines[3].starts_with(
                "\\caption{Pixels that both cameras see: 2 combinations on CPU; noise"
            ),
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
        assert!(
            text.contains("\n| paths=4 | 3.00 | 4.0 |\n| paths=4 ± | 3.00 | 4.0 |\n"),
            "{text}"
        );
        assert!(
            text.contains("Whole maps, without the truth:\n\n| settings | known |\n"),
            "{text}"
        );
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
        let named = |paths: &[&str]| {
            names(&paths.iter().map(|path| dataset(path, &[])).collect::<Vec<_>>())
        };
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
}
