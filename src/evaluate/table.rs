//! The tables of a report for people: their columns, areas and rows.

pub mod forms;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
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
            rows.insert(0, head(report, heads(area)));
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
            let label = format!("{}-pairs", area.label);
            tables.push(Table { title, label, rows, by_row: true });
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
    rows.insert(0, head(report, WHOLE));
    let title = "Whole maps, without the truth".to_owned();
    Some(Table { title, label: "maps".into(), rows, by_row: false })
}

/// Returns the first row of a table with these figures.
fn head(report: &Report, figures: impl IntoIterator<Item = &'static str>) -> Vec<String> {
    let first = if report.is_comparison { "settings" } else { "pair" };
    [first].into_iter().chain(figures).map(str::to_owned).collect()
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
