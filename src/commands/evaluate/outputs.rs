//! Outputs of an evaluation: standard output, files, and images of the errors.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

use crate::cli::EvaluateArgs;
use crate::commands::{Error, inputs, print};
use crate::settings::Loaded;
use stereod_core::files;
use stereod_core::files::claim::Claim;
use stereod_core::picture::png::encode_rgb;
use stereod_evaluate::find::{Searched, name_of};
use stereod_evaluate::item::Item;
use stereod_evaluate::measured::{Compared, Measured};
use stereod_evaluate::pictures;
use stereod_evaluate::report::Report;
use stereod_evaluate::submission::{self, Benchmark, Entry};
use stereod_evaluate::table::{Layout, forms};

type Form = fn(&Report, &Layout) -> String;

pub(super) struct Outputs<'a> {
    reports: Vec<(&'static str, Cow<'a, Path>, Form)>,
    errors: Option<&'a Path>,
    learn: Option<&'a Path>,
    submission: Option<(Benchmark, &'a Path)>,
}

/// Outputs that can be written and destroy nothing.
pub(super) struct Prepared<'a> {
    outputs: Outputs<'a>,
    /// Files of the images of the errors, one per pair; none unless requested.
    pictures: Vec<PathBuf>,
    /// Files of what the confidence is learnt from, one per pair; none unless requested.
    levels: Vec<PathBuf>,
    /// Files of a submission, one entry per pair; none unless requested.
    entries: Vec<Option<Entry>>,
    /// True if no pixel of a submission should be unknown.
    is_dense: bool,
    _claims: Vec<Claim>,
}

const STDOUT: &str = "-";

impl<'a> Outputs<'a> {
    pub(super) fn of(args: &'a EvaluateArgs) -> Result<Self, Error> {
        let forms: [(_, _, Form); 4] = [
            ("--json", &args.json, |report, _| report.json()),
            ("--markdown", &args.markdown, forms::markdown),
            ("--csv", &args.csv, forms::csv),
            ("--latex", &args.latex, forms::latex),
        ];
        let reports = forms
            .into_iter()
            .filter_map(|(flag, path, form)| Some((flag, Cow::Borrowed(path.as_deref()?), form)));
        // A table of its own has other columns.
        let pairs = args.csv.as_deref().filter(|_| args.per_pair.is_some()).map(pairs_beside);
        let pairs =
            pairs.transpose()?.map(|path| ("--csv", Cow::Owned(path), forms::csv_of_pairs as Form));
        let [errors, learn] = [&args.errors, &args.learn].map(|path| path.as_deref());
        let submission = args.submission.zip(args.output.as_deref());
        let outputs = Self { reports: reports.chain(pairs).collect(), errors, learn, submission };
        let mut printed = outputs.reports.iter().filter(|(_, path, _)| **path == *STDOUT);
        if let (Some((first, ..)), Some((second, ..))) = (printed.next(), printed.next()) {
            return Err(Error::usage(format!(
                "{first} - and {second} - would mix on standard output; name a file for one of them"
            )));
        }
        files::refuse_same(outputs.files()).map_err(Error::Usage)?;
        Ok(outputs)
    }

    fn files(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let files = self.reports.iter().filter(|(_, path, _)| **path != *STDOUT);
        files.map(|(flag, path, _)| (*flag, &**path))
    }

    /// Checks that no input would be destroyed and that every output can be written.
    pub(super) fn prepare(
        self,
        loaded: &Loaded,
        datasets: &[Searched],
    ) -> Result<Prepared<'a>, Error> {
        let pairs = || datasets.iter().flat_map(|dataset| &dataset.pairs);
        let items = pairs().filter_map(|(_, item)| item.as_ref().ok());
        let inputs = inputs(loaded, items.flat_map(Item::files).cloned());
        for (_, file) in self.files() {
            inputs.refuse(file).map_err(Error::Usage)?;
            files::check_writable(file)?;
        }
        let mut claims = Vec::new();
        let mut of_pairs = |flag, folder: Option<&Path>, kind: &str| -> Result<_, Error> {
            let Some(folder) = folder else { return Ok(Vec::new()) };
            let names = datasets.iter().flat_map(|dataset| {
                let name = name_of(&dataset.path);
                dataset.pairs.iter().map(move |(pair, _)| (name.clone(), pair.as_str()))
            });
            let files = pictures::names(names).into_iter();
            let files: Vec<_> = files.map(|name| folder.join(name).with_extension(kind)).collect();
            for file in &files {
                inputs.refuse(file).map_err(Error::Usage)?;
                let all = self.files().chain([(flag, file.as_path())]);
                files::refuse_same(all).map_err(Error::Usage)?;
            }
            claims.push(claimed(folder)?);
            Ok(files)
        };
        let pictures = of_pairs("--errors", self.errors, "png")?;
        let levels = of_pairs("--learn", self.learn, "levels")?;
        let mut entries = Vec::new();
        let is_dense = submission::is_dense(&loaded.params);
        if let Some((benchmark, folder)) = self.submission {
            for (_, item) in pairs() {
                let entry = |item| Entry::of(benchmark, item, folder, is_dense);
                let entry = item.as_ref().ok().map(entry).transpose().map_err(Error::Usage)?;
                for file in entry.iter().flat_map(Entry::files) {
                    inputs.refuse(file).map_err(Error::Usage)?;
                }
                entries.push(entry);
            }
            let written = || entries.iter().flatten().flat_map(Entry::files);
            let all = self.files().chain(written().map(|file| ("--output", file)));
            files::refuse_same(all).map_err(Error::Usage)?;
            claims.push(claimed(folder)?);
        }
        Ok(Prepared { outputs: self, pictures, levels, entries, is_dense, _claims: claims })
    }
}

impl Prepared<'_> {
    /// Writes the image of a pair's errors and what the confidence is learnt from, if requested.
    pub(super) fn show_errors(&self, pair: usize, compared: &Compared) -> anyhow::Result<()> {
        if let Some(path) = self.levels.get(pair) {
            files::write_whole(path, &compared.levels)?;
        }
        let Some(path) = self.pictures.get(pair) else { return Ok(()) };
        let (width, height) = (compared.left.width(), compared.left.height());
        files::write_whole(path, &encode_rgb(&pictures::errors(compared), width, height)?)
    }

    pub(super) fn submit(
        &self,
        pair: usize,
        measured: &Measured,
        compared: &Compared,
    ) -> anyhow::Result<()> {
        let Some(Some(entry)) = self.entries.get(pair) else { return Ok(()) };
        entry.write(&compared.map, measured.summary.time_ms)?;
        if self.is_dense && compared.map.density() < 100.0 {
            let files = entry.files().next().map(|file| file.display().to_string());
            tracing::warn!(
                "{} has unknown pixels, although --fill is on: raise --fill-max",
                files.unwrap_or_default()
            );
        }
        Ok(())
    }

    /// Writes the report; aligned tables go to standard output unless something else does.
    pub(super) fn write(&self, report: &Report, layout: &Layout) -> Result<(), Error> {
        let mut is_printed = false;
        for (_, path, form) in &self.outputs.reports {
            match **path == *STDOUT {
                true => print(form(report, layout))?,
                false => files::write_whole(path, form(report, layout).as_bytes())?,
            }
            is_printed |= **path == *STDOUT;
        }
        if is_printed { Ok(()) } else { print(forms::aligned(report, layout)) }
    }
}

/// Returns the file of the pairs next to that of the means.
fn pairs_beside(file: &Path) -> Result<PathBuf, Error> {
    if *file == *STDOUT {
        return Err(Error::usage("--csv with --per-pair writes two files; name one in place of -"));
    }
    let mut name = file.file_stem().unwrap_or_default().to_owned();
    name.push("-pairs");
    if let Some(kind) = file.extension() {
        name.push(".");
        name.push(kind);
    }
    Ok(file.with_file_name(name))
}

/// Makes the folder if it is missing, and claims it.
fn claimed(folder: &Path) -> Result<Claim, Error> {
    if folder.exists() && !folder.is_dir() {
        return Err(Error::usage(format!(
            "cannot write pictures into {}: it is not a folder",
            folder.display()
        )));
    }
    fs::create_dir_all(folder).map_err(|error| files::explain(folder, &error))?;
    Ok(Claim::on_folder(folder)?)
}
