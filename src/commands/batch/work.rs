//! A piece of a batch, from its input to its folder.
//!
//! Each piece is matched by a process of its own, `stereod run`. So a damaged input that crashes a decoder,
//! or a hanging driver, affects this piece only, and each piece starts with fresh memory and devices.

use std::cell::RefCell;
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind};
#[cfg(unix)]
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::Value;
use tempfile::TempDir;

use super::identity::Identity;
use super::list::Input;
use super::manifest::{Manifest, NO_MANIFEST, State, foreign, state};
use super::plan::{Piece, Plan, SCHEMA, SETTINGS, STATISTICS};
use crate::outputs::{Kind, Output};
use crate::run::error::{BAD_INPUT, EMPTY_PIECE};
use crate::settings::names::text_of;
use crate::settings::{Loaded, row};
use crate::telemetry::stderr;
use stereod_core::files::claim::{Claim, Taken};
use stereod_core::files::explain;
use stereod_core::settings::row::InBatch;
use stereod_core::thread;
use stereod_io::control::Switch;
use stereod_io::sink::numbered::RECORD;
use stereod_io::text::on_one_line;

/// Time limit for a process to end after a signal.
const PATIENCE: Duration = Duration::from_secs(8);

pub const UNFINISHED: &str = ".part";

#[derive(Debug, PartialEq)]
pub enum Ended {
    Done(Box<Manifest>),
    /// It existed before.
    WasThere,
    /// Another worker is making it.
    Busy,
    /// The input is missing, damaged, or differs from the plan.
    BadInput(String),
    /// It failed for another reason, possibly a temporary one.
    Failed(String),
    Stopped,
}

/// The common data of all pieces.
pub struct Work<'a> {
    pub folder: &'a Path,
    pub plan: &'a Plan,
    pub loaded: &'a Loaded,
    pub stop: &'a Switch,
    pub log: Vec<OsString>,
    /// Inputs with the content of the plan.
    pub seen: RefCell<HashSet<usize>>,
    /// Whether folders that are in the way are replaced.
    pub force: bool,
    /// Time after which a piece is ended as failed.
    pub limit: Option<Duration>,
}

/// Reports whether the files of an input have changed. Of a large input the identity sees samples only.
fn has_changed(input: &Input, identity: &Identity, modified: &[Option<SystemTime>]) -> bool {
    let (files, modified_now) = files_of(input);
    modified_now != modified || Identity::of(&files).ok().as_ref() != Some(identity)
}

impl Work<'_> {
    /// Makes a piece unless it exists. Errors concern the whole batch.
    pub fn make(&self, input: &Input, piece: &Piece) -> Result<Ended, crate::commands::Error> {
        if self.seen.borrow().contains(&piece.input)
            && let State::Done(_) = state(self.folder, self.plan, piece)?
        {
            return Ok(Ended::WasThere);
        }
        let known = &self.plan.inputs[piece.input].identity;
        let (files, modified) = files_of(input);
        let identity = match Identity::of(&files) {
            Ok(identity) => identity,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(Ended::BadInput(error.to_string()));
            }
            Err(error) => return Ok(Ended::Failed(error.to_string())),
        };
        if known.as_ref().is_some_and(|known| *known != identity) {
            return Ok(Ended::BadInput(
                "its content is not that of run.json; --force takes it as it is now".into(),
            ));
        }
        self.seen.borrow_mut().insert(piece.input);
        if let State::Done(_) = state(self.folder, self.plan, piece)? {
            return Ok(Ended::WasThere);
        }
        let _claim = match Claim::on(&self.folder.join(format!("{}.piece", piece.name))) {
            Ok(claim) => claim,
            Err(error) if error.is::<Taken>() => return Ok(Ended::Busy),
            Err(error) => return Err(error.into()),
        };
        match state(self.folder, self.plan, piece)? {
            State::Done(_) => return Ok(Ended::WasThere),
            State::Other(reason) if !self.force => self.refuse_foreign(piece, &reason)?,
            State::Other(_) | State::Missing => {}
        }
        self.remove_unfinished(piece);
        match self.match_pairs(input, piece, (identity, modified)) {
            Ok(Ended::Failed(reason)) if self.stop.is_set() => {
                tracing::debug!("{}: {reason}", piece.name);
                Ok(Ended::Stopped)
            }
            Ok(ended) => Ok(ended),
            Err(error) => match error.downcast::<crate::commands::Error>() {
                Ok(error) => Err(error),
                Err(error) => Ok(Ended::Failed(format!("{error:#}"))),
            },
        }
    }

    /// Refuses to replace a folder that no batch has made, or that holds other files.
    fn refuse_foreign(&self, piece: &Piece, reason: &str) -> Result<(), crate::commands::Error> {
        let place = self.folder.join(&piece.name);
        let foreign = foreign(&place, &self.plan.own_files())?
            .map(|name| format!("{} is none of its files", name.display()));
        let has_manifest = reason != NO_MANIFEST;
        if let Some(why) = foreign.or_else(|| (!has_manifest).then(|| reason.to_owned())) {
            return Err(crate::commands::Error::usage(format!(
                "{} is in the way: {why}; remove it, or give --force to replace it",
                place.display()
            )));
        }
        tracing::warn!("{}: {reason}; it is made anew", piece.name);
        Ok(())
    }

    /// Matches the pairs of a piece in a temporary folder, which is then renamed.
    fn match_pairs(
        &self,
        input: &Input,
        piece: &Piece,
        (identity, modified): (Identity, Vec<Option<SystemTime>>),
    ) -> Result<Ended> {
        let begin = Instant::now();
        let part = self.new_folder(piece)?;
        // The lock prevents other workers from removing it.
        let lock = File::open(part.path()).map_err(|error| explain(part.path(), &error))?;
        let _ = lock.try_lock();
        let at = |name: &str| part.path().join(name);
        self.write_settings(part.path(), Some(part.path()))?;
        let files =
            ["--config".into(), at(SETTINGS).into(), "--stats".into(), at(STATISTICS).into()];
        let (status, said) = self.run(&self.arguments(input, piece, files))?;
        let statistics: Value = match status {
            Some(0) => self.take_statistics(part.path(), piece)?,
            Some(status) if status == i32::from(EMPTY_PIECE) => Value::Null,
            Some(status) if status == i32::from(BAD_INPUT) => return Ok(Ended::BadInput(said)),
            Some(2) => bail!(crate::commands::Error::usage(said)),
            _ => return Ok(Ended::Failed(said)),
        };
        if has_changed(input, &identity, &modified) {
            return Ok(Ended::BadInput(
                "its content changed while it was matched; start the batch again once it does not change any more \
                 (--force takes it as it is then)"
                    .into(),
            ));
        }
        let pairs = statistics["pairs"].as_u64().unwrap_or(0);
        if piece.first == 0 && pairs == 0 {
            return Ok(Ended::BadInput("it has no pair".into()));
        }
        self.complete_outputs(part.path(), pairs, &statistics["written"])?;
        // A later run with these settings must not write into the archive.
        self.write_settings(part.path(), None)?;
        let manifest = Manifest {
            schema: SCHEMA,
            settings: self.plan.settings_id(),
            source: input.source.clone(),
            input: identity,
            first: piece.first,
            end: piece.end,
            pairs,
            damaged: damaged_frames(&statistics),
            engine: statistics["engine"].as_str().unwrap_or_default().to_owned(),
            seconds: (begin.elapsed().as_secs_f64() * 1000.0).round() / 1000.0,
            ..Manifest::default()
        };
        manifest.write(part.path())?;
        sync(&lock);
        self.put_in_place(part, piece)
    }

    /// Checks that every output has all pairs, and removes the records of folders, which would let a later run
    /// replace the files of a piece.
    fn complete_outputs(&self, part: &Path, pairs: u64, written: &Value) -> Result<()> {
        let is_whole = |output: &Output| written[output.counted_as()].as_u64() == Some(pairs);
        ensure!(
            pairs == 0 || self.plan.outputs().all(|(_, output, _)| is_whole(output)),
            "{pairs} pairs were matched, but written were {written}"
        );
        let is_folder = |output: &Output| matches!(output.kind, Kind::Folder(..));
        for (_, _, path) in self.plan.outputs().filter(|(_, output, _)| is_folder(output)) {
            match fs::remove_file(part.join(path).join(RECORD)) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(explain(part, &error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes the settings of a piece with outputs in `folder` into its unfinished folder.
    fn write_settings(&self, part: &Path, folder: Option<&Path>) -> Result<()> {
        let path = part.join(SETTINGS);
        fs::write(&path, self.settings(folder)?).map_err(|error| explain(&path, &error))
    }

    fn new_folder(&self, piece: &Piece) -> Result<TempDir> {
        tempfile::Builder::new()
            .prefix(&prefix(piece))
            .suffix(UNFINISHED)
            .tempdir_in(self.folder)
            .map_err(|error| explain(self.folder, &error))
    }

    /// Reads the statistics of a run, and names its outputs in them by the folder that they will have.
    fn take_statistics(&self, part: &Path, piece: &Piece) -> Result<Value> {
        let path = part.join(STATISTICS);
        let text = fs::read_to_string(&path).map_err(|error| explain(&path, &error))?;
        let [unfinished, place] = [part, &self.folder.join(&piece.name)].map(in_statistics);
        let text = text.replace(&unfinished, &place);
        fs::write(&path, &text).map_err(|error| explain(&path, &error))?;
        serde_json::from_str(&text).context(STATISTICS)
    }

    fn arguments(&self, input: &Input, piece: &Piece, files: [OsString; 4]) -> Vec<OsString> {
        let mut arguments: Vec<OsString> =
            vec!["run".into(), "--headless".into(), "--piece".into()];
        arguments.extend(files);
        if piece.first > 0 || piece.end.is_some() {
            let end = piece.end.map_or_else(String::new, |end| end.to_string());
            arguments.extend(["--frames".into(), format!("{}..{end}", piece.first).into()]);
            arguments.extend(["--run-in".into(), self.plan.run_in.to_string().into()]);
        }
        arguments.extend(self.log.iter().cloned());
        arguments.extend(input.arguments.iter().cloned());
        arguments
    }

    /// Renames a finished folder to its final name. Without locks, another worker may have been the first;
    /// then its piece stays.
    fn put_in_place(&self, part: TempDir, piece: &Piece) -> Result<Ended> {
        let place = self.folder.join(&piece.name);
        let State::Done(made) = state_in(part.path(), self.plan, piece)? else {
            bail!("the manifest is not as written");
        };
        let is_done = || {
            Ok::<_, anyhow::Error>(matches!(state(self.folder, self.plan, piece)?, State::Done(_)))
        };
        if place.exists() && !is_done()? {
            let earlier = self.new_folder(piece)?;
            fs::rename(&place, earlier.path().join("earlier"))
                .map_err(|error| explain(&place, &error))?;
        }
        // The mode of the folder above, because temporary folders are private.
        #[cfg(unix)]
        let mode =
            fs::metadata(self.folder).map_or(0o755, |about| about.permissions().mode() & 0o777);
        #[cfg(unix)]
        let _ = fs::set_permissions(part.path(), PermissionsExt::from_mode(mode));
        match fs::rename(part.path(), &place) {
            Ok(()) => {
                let _ = part.keep();
                Ok(Ended::Done(made))
            }
            Err(_) if is_done()? => {
                tracing::info!("{}: another worker was the first to finish it", piece.name);
                Ok(Ended::WasThere)
            }
            Err(error) => Err(explain(&place, &error)),
        }
    }

    /// Returns the settings of a piece with outputs in `folder`; `None`: without outputs.
    fn settings(&self, folder: Option<&Path>) -> Result<String> {
        let mut all = toml::Table::new();
        for section in [
            "matching",
            "source",
            "calibration",
            "mount",
            "obstacles",
            "output",
            "colour",
            "engine",
            "queue",
            "log",
        ] {
            let mut values = self.loaded.values()[section].as_table().cloned().unwrap_or_default();
            for (key, value) in &mut values {
                match (section, key.as_str()) {
                    // Only needed for its output.
                    ("calibration", "align")
                        if !self.plan.write.iter().any(|to| to == "aligned") =>
                    {
                        *value = "".into();
                    }
                    ("source", "pace") => *value = "fast".into(),
                    ("colour", "range") => *value = "fixed".into(),
                    _ => {
                        if let Some(row) =
                            row(section, key).filter(|row| row.in_batch == InBatch::Reset)
                        {
                            *value = row.default.into();
                        }
                    }
                }
                let mut outputs = self.plan.outputs();
                let output = outputs.find(|(_, output, _)| output.key() == (section, key));
                if let Some((folder, (_, _, path))) = folder.zip(output) {
                    *value = text_of(folder.join(path).as_os_str()).into();
                }
            }
            all.insert(section.into(), values.into());
        }
        Ok(toml::to_string(&all)?)
    }

    /// Runs `stereod` with these arguments. Returns its exit status, or `None` if a signal ended it, and its
    /// last error.
    fn run(&self, arguments: &[OsString]) -> Result<(Option<i32>, String)> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        // The settings already include these variables.
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if name.starts_with("STEREOD_") && !name.starts_with("STEREOD_TEST_") {
                command.env_remove(&*name);
            }
        }
        #[cfg(target_os = "linux")]
        {
            use std::os::unix::process::CommandExt;
            // SAFETY: prctl is async-signal-safe and takes no pointers. The process must not outlive a killed worker.
            unsafe {
                command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                });
            }
        }
        let mut child = command.spawn().context("cannot start a process for the piece")?;
        let lines = BufReader::new(child.stderr.take().context("no standard error")?);
        let hear = move || {
            let mut last = None;
            for line in lines.split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).into_owned();
                match line.strip_prefix("error: ") {
                    Some(error) => last = Some(error.to_owned()),
                    None => stderr::tell(&on_one_line(&line)),
                }
            }
            last
        };
        let heard = thread::spawn("piece", hear, |broken| tracing::error!("{broken}"));
        let heard = heard.context("cannot start a thread")?;
        let (status, is_late) = self.wait(&mut child)?;
        let said = thread::joined("the piece", heard.join())?;
        if let Some(limit) = self.limit.filter(|_| is_late) {
            let limit = limit.as_secs_f64();
            return Ok((None, format!("it took longer than --time-limit {limit} (seconds)")));
        }
        let said = said.unwrap_or_else(|| format!("the process ended early ({status})"));
        Ok((status.code(), said))
    }

    /// Waits for a process, and terminates it if the batch is to stop or the piece takes too long. Reports whether
    /// it took too long.
    fn wait(&self, child: &mut Child) -> Result<(std::process::ExitStatus, bool)> {
        let (begin, mut since, mut is_late) = (Instant::now(), None, false);
        loop {
            if let Some(status) = child.try_wait().context("cannot wait for the piece")? {
                return Ok((status, is_late));
            }
            is_late |= self.limit.is_some_and(|limit| begin.elapsed() > limit);
            if self.stop.is_set() || is_late {
                match since {
                    None => {
                        since = Some(Instant::now());
                        // SAFETY: the process is a child that was not waited for, so its number is its own.
                        #[cfg(unix)]
                        let _ = unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGTERM) };
                    }
                    Some(since) if since.elapsed() > PATIENCE => child.kill()?,
                    Some(_) => {}
                }
            }
            std::thread::sleep(crate::commands::TICK);
        }
    }

    /// Removes unfinished folders of killed workers.
    fn remove_unfinished(&self, piece: &Piece) {
        for entry in fs::read_dir(self.folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !(name.starts_with(&prefix(piece)) && name.ends_with(UNFINISHED)) {
                continue;
            }
            // On a file system without locks the folder may belong to another worker.
            let is_left = File::open(entry.path()).is_ok_and(|folder| folder.try_lock().is_ok());
            if is_left && let Err(error) = fs::remove_dir_all(entry.path()) {
                tracing::warn!("cannot remove {}: {error}", entry.path().display());
            }
        }
    }
}

/// Returns a path as the statistics hold it in the name of an output: on one line, and with the escapes of
/// JSON, which stand for one character each.
fn in_statistics(path: &Path) -> String {
    let text = Value::from(on_one_line(&path.display().to_string())).to_string();
    text[1..text.len() - 1].to_owned()
}

/// Returns the files of an input, and the times of their last changes.
fn files_of(input: &Input) -> (Vec<PathBuf>, Vec<Option<SystemTime>>) {
    let files = input.spec.local_files();
    let modified = |path: &PathBuf| fs::metadata(path).and_then(|about| about.modified()).ok();
    let modified = files.iter().map(modified).collect();
    (files, modified)
}

/// Returns the number of damaged frames of both views, concealed or left out.
fn damaged_frames(statistics: &Value) -> u64 {
    let count = |view: &str, kind: &str| statistics["damaged"][view][kind].as_u64().unwrap_or(0);
    ["left", "right"].map(|view| count(view, "concealed") + count(view, "left_out")).iter().sum()
}

fn prefix(piece: &Piece) -> String {
    format!(".{}.stereod-", piece.name)
}

fn state_in(part: &Path, plan: &Plan, piece: &Piece) -> Result<State> {
    let name = part.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let folder = part.parent().ok_or_else(|| anyhow!("{} has no parent", part.display()))?;
    state(folder, plan, &Piece { name, ..piece.clone() })
}

/// Flushes the file system of this folder to the disk, because after a power failure a name must not refer to
/// files without content.
fn sync(folder: &File) {
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd;
        // SAFETY: the descriptor belongs to an open folder.
        unsafe { libc::syncfs(folder.as_raw_fd()) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = folder.sync_all();
}
