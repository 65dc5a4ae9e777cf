//! Outputs of an evaluation: standard output, files, and images of the errors.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::bail;

use super::find::{Searched, name_of};
use super::item::Item;
use super::measure::Compared;
use super::report::Report;
use super::{pictures, table};
use crate::cli::EvaluateArgs;
use crate::commands::{Error, inputs, print};
use crate::settings::Loaded;
use crate::sink::claim::Claim;
use crate::sink::files;
use crate::sink::png::encode_rgb;

/// The requested outputs.
pub(super) struct Outputs<'a> {
    json: Option<&'a Path>,
    markdown: Option<&'a Path>,
    errors: Option<&'a Path>,
    learn: Option<&'a Path>,
}

/// Outputs that can be written and destroy nothing.
pub(super) struct Prepared<'a> {
    outputs: Outputs<'a>,
    /// Files of the images of the errors, one per pair; none unless requested.
    pictures: Vec<PathBuf>,
    /// Files of what the confidence is learnt from, one per pair; none unless requested.
    levels: Vec<PathBuf>,
    _claims: Vec<Claim>,
}

/// Standard output.
const STDOUT: &str = "-";

impl<'a> Outputs<'a> {
    /// Creates the outputs that the command line names.
    pub(super) fn of(args: &'a EvaluateArgs) -> Result<Self, Error> {
        let [json, markdown, errors, learn] =
            [&args.json, &args.markdown, &args.errors, &args.learn].map(|path| path.as_deref());
        let outputs = Self { json, markdown, errors, learn };
        if is_stdout(json) && is_stdout(markdown) {
            return Err(Error::usage(
                "--json - and --markdown - would mix on standard output; name a file for one of them",
            ));
        }
        files::refuse_same(outputs.files()).map_err(Error::Usage)?;
        Ok(outputs)
    }

    /// Returns those that are files, with their flags.
    fn files(&self) -> impl Iterator<Item = (&'static str, &'a Path)> {
        let all = [("--json", self.json), ("--markdown", self.markdown)];
        all.into_iter()
            .filter_map(|(flag, path)| Some((flag, path.filter(|path| *path != STDOUT)?)))
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
        Ok(Prepared { outputs: self, pictures, levels, _claims: claims })
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

    /// Writes the report; aligned tables go to standard output unless something else does.
    pub(super) fn write(&self, report: &Report) -> Result<(), Error> {
        let Outputs { json, markdown, .. } = self.outputs;
        for (path, text) in
            [(json, Report::json as fn(&Report) -> String), (markdown, table::markdown)]
        {
            match path {
                Some(path) if path == STDOUT => print(text(report))?,
                Some(path) => files::write_whole(path, text(report).as_bytes())?,
                None => {}
            }
        }
        match is_stdout(json) || is_stdout(markdown) {
            true => Ok(()),
            false => print(table::aligned(report)),
        }
    }
}

fn is_stdout(path: Option<&Path>) -> bool {
    path.is_some_and(|path| path == STDOUT)
}

/// Makes the folder if it is missing, and claims it.
fn claimed(folder: &Path) -> anyhow::Result<Claim> {
    if folder.exists() && !folder.is_dir() {
        bail!("cannot write pictures into {}: it is not a folder", folder.display());
    }
    fs::create_dir_all(folder).map_err(|error| files::explain(folder, &error))?;
    Claim::on_folder(folder)
}
