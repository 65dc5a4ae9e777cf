//! `run.json`: the common data of all shards of a batch, and the pieces that follow from it.
//!
//! Pieces do not depend on the number of shards, which may change from call to call. A piece is a range of
//! pair numbers over the whole input, so a split does not change the pairs.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::identity::{self, Identity};
use super::list::{self, Input};
use super::shard::Shards;
use crate::commands::Error;
use crate::outputs::{self, Output};
use crate::settings::{Loaded, row};
use stereod_calibration::format::file_list;
use stereod_core::files::claim::{Claim, Taken};
use stereod_core::files::explain;
use stereod_core::reading;
use stereod_core::settings::row::InBatch;
use stereod_io::control::Switch;
use stereod_io::source;
use stereod_io::source::demo::DemoOptions;
use stereod_io::source::gst::Keep;

const NAME: &str = "run.json";

/// Largest size of the file in bytes.
const LONGEST: u64 = 1 << 30;

/// Number of the layout of `run.json` and manifests.
pub const SCHEMA: u32 = 2;

/// Name of a piece's settings, in the format of a configuration file.
pub const SETTINGS: &str = "settings.toml";

pub const STATISTICS: &str = "stats.json";

/// Largest number of pieces of a batch: 20 years of video at 30 pairs a second in pieces of 20,000 pairs.
const MOST: u64 = 1 << 20;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub schema: u32,
    pub version: String,
    /// Settings that affect the bytes of the outputs, by section and key.
    pub settings: BTreeMap<String, Value>,
    pub write: Vec<String>,
    /// Pairs matched before each piece.
    pub run_in: u64,
    /// Pairs of a piece; 0: whole inputs.
    pub piece: u64,
    /// Shards of the first call, if it named any.
    pub shards: Option<Shards>,
    pub inputs: Vec<Known>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Known {
    pub name: String,
    /// Its line in the list, or its name in the folder.
    pub source: String,
    /// Number of pairs according to its container; may be slightly wrong.
    pub pairs: Option<u64>,
    /// Identity of its content; `None` if it could not be read.
    pub identity: Option<Identity>,
}

/// A part of an input, which is matched in one go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    pub name: String,
    pub input: usize,
    pub first: u64,
    /// Number of the pair after its last one; `None`: to the end.
    pub end: Option<u64>,
    /// Expected number of pairs.
    pub weight: u64,
}

impl Plan {
    /// Reads the plan of a folder; `None` if there is none.
    pub fn read(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(NAME);
        let text = match reading::read(&path, LONGEST) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        };
        let plan: Self = serde_json::from_slice(&text).with_context(|| {
            format!("{} is damaged; remove it, and give --force once", path.display())
        })?;
        if plan.schema != SCHEMA {
            let (schema, path) = (plan.schema, path.display());
            return Err(anyhow!(
                "{path} has the layout {schema}, which this version does not know; name another folder"
            ));
        }
        if let Some(wrong) = plan.flaw() {
            let path = path.display();
            return Err(anyhow!("{path} is damaged: {wrong}; remove it, and give --force once"));
        }
        Ok(Some(plan))
    }

    /// Returns the first value that no batch writes, because names become folders, and pieces take memory.
    fn flaw(&self) -> Option<String> {
        let mut names = HashSet::new();
        for Known { name, .. } in &self.inputs {
            if !(list::is_name(name) && names.insert(name)) {
                return Some(format!("the name `{name}` of an input"));
            }
        }
        let is_known = |write: &&String| outputs::of_batch().any(|(name, ..)| name == **write);
        if let Some(output) = self.write.iter().find(|write| !is_known(write)) {
            return Some(format!("the output `{output}`"));
        }
        self.check_number().err()
    }

    /// Returns the outputs of a piece: the name in `--write`, the output, and the file or folder in the
    /// folder of the piece.
    pub fn outputs(&self) -> impl Iterator<Item = (&'static str, &'static Output, &'static str)> {
        outputs::of_batch().filter(|(name, ..)| self.write.iter().any(|write| write == name))
    }

    /// Returns the files and folders in the folder of a piece.
    pub fn own_files(&self) -> Vec<&'static str> {
        self.outputs().map(|(_, _, path)| path).chain([STATISTICS, SETTINGS]).collect()
    }

    pub fn check_number(&self) -> Result<(), String> {
        let counts = self.inputs.iter().map(|input| self.count_of(input));
        match counts.fold(0, u64::saturating_add) {
            0..=MOST => Ok(()),
            count => Err(format!("its inputs make {count} pieces, and {MOST} is the most")),
        }
    }

    /// Returns the number of pieces of an input. The last one takes up to half a piece more, because the
    /// number of pairs is an estimate.
    fn count_of(&self, input: &Known) -> u64 {
        match input.pairs {
            Some(pairs) if self.piece > 0 => {
                (pairs.saturating_add(self.piece / 2) / self.piece).max(1)
            }
            _ => 1,
        }
    }

    /// Reads the plan of a folder, which must have one.
    pub fn of(folder: &Path) -> Result<Self, Error> {
        let none = || {
            Error::usage(format!("{} is no folder of a batch: it has no {NAME}", folder.display()))
        };
        Self::read(folder)?.ok_or_else(none)
    }

    pub fn settings_id(&self) -> String {
        let all = (&self.version, &self.settings, &self.write, self.run_in);
        let text = serde_json::to_string(&all).expect("plain values");
        blake3::hash(text.as_bytes()).to_hex()[..32].to_owned()
    }

    pub fn difference(&self, found: &Self) -> Option<String> {
        let differs = |what: &str, here: &str, there: &str| {
            (here != there).then(|| format!("{what} is {here}, but was {there}"))
        };
        let keys = self.settings.keys().chain(found.settings.keys());
        let settings = keys.map(|key| {
            let text =
                |plan: &Self| plan.settings.get(key).map_or("unset".to_owned(), Value::to_string);
            differs(key, &text(self), &text(found))
        });
        let names =
            |plan: &Self| plan.inputs.iter().map(|input| input.name.clone()).collect::<Vec<_>>();
        let (here, there) = (names(self), names(found));
        let other = here.iter().zip(&there).find(|(here, there)| here != there);
        let inputs = match other {
            Some((here, there)) => differs("an input", here, there),
            None => {
                differs("the number of inputs", &here.len().to_string(), &there.len().to_string())
            }
        };
        [differs("the version", &self.version, &found.version)]
            .into_iter()
            .chain(settings)
            .chain([
                differs("--write", &self.write.join(","), &found.write.join(",")),
                differs("--run-in", &self.run_in.to_string(), &found.run_in.to_string()),
                differs("--piece", &self.piece.to_string(), &found.piece.to_string()),
                inputs,
            ])
            .find_map(|difference| difference)
    }

    pub fn pieces(&self) -> Vec<Piece> {
        let usual = self.inputs.iter().filter_map(|input| input.pairs);
        let add = |(sum, count): (u64, u64), pairs| (sum.saturating_add(pairs), count + 1);
        let (sum, known) = usual.fold((0, 0), add);
        let usual = u64::checked_div(sum, known).unwrap_or(1).max(1);
        let mut pieces = Vec::new();
        for (number, input) in self.inputs.iter().enumerate() {
            let (length, count) = (self.piece, self.count_of(input));
            for k in 0..count {
                let first = k * length;
                let end = (k + 1 < count).then(|| first + length);
                let left = input.pairs.map_or(usual, |pairs| pairs.saturating_sub(first)).max(1);
                let name = format!("{}.{first:08}", input.name);
                let weight = end.map_or(left, |_| length);
                pieces.push(Piece { name, input: number, first, end, weight });
            }
        }
        pieces
    }
}

/// Returns the shard of each piece, counted from 0: neighbours stay together, and every shard gets about the
/// same number of pairs.
pub fn shards_of(pieces: &[Piece], count: u64) -> Vec<u64> {
    let total: u128 = pieces.iter().map(|piece| u128::from(piece.weight)).sum();
    let mut before = 0;
    let middle = |piece: &Piece| {
        let middle = 2 * before + u128::from(piece.weight);
        before += u128::from(piece.weight);
        (middle * u128::from(count) / (2 * total)) as u64
    };
    pieces.iter().map(middle).collect()
}

pub fn settings_of(
    loaded: &Loaded,
    topics: &[Option<String>; 2],
) -> Result<BTreeMap<String, Value>, Error> {
    let mut settings = BTreeMap::new();
    for section in ["matching", "source", "calibration", "mount", "obstacles", "output", "colour"] {
        let Some(values) = loaded.values().get(section).and_then(toml::Value::as_table) else {
            continue;
        };
        for (key, value) in values {
            if row(section, key).is_some_and(|row| row.in_batch == InBatch::Kept) {
                let value = serde_json::to_value(value).map_err(anyhow::Error::from)?;
                settings.insert(format!("{section}.{key}"), value);
            }
        }
    }
    // Otherwise the colours of a preview would restart with each piece.
    settings.insert("colour.range".into(), "fixed".into());
    let calibration = &loaded.settings.calibration;
    let mut files: Vec<PathBuf> = loaded.settings.obstacles.inputs().collect();
    for list in [&calibration.file, &calibration.align] {
        if list.is_empty() {
            continue;
        }
        files.extend(file_list(list)?);
    }
    for path in files {
        let name = || format!("cannot read {}", path.display());
        let (hash, _) = identity::of_file(&path, u64::MAX).with_context(name)?;
        settings.insert(format!("content of {}", path.display()), hash.into());
    }
    for (view, topic) in ["left", "right"].into_iter().zip(topics) {
        settings.extend(
            topic.as_ref().map(|topic| (format!("source.{view}_topic"), topic.clone().into())),
        );
    }
    Ok(settings)
}

pub fn of_name(input: &Input) -> Known {
    let (name, source) = (input.name.clone(), input.source.clone());
    Known { name, source, pairs: None, identity: None }
}

/// Measures an input. If it cannot be read, the shard that needs it reports the reason.
pub fn known(input: &Input, loaded: &Loaded, piece: u64, stop: &Switch) -> Result<Known, Error> {
    let settings = &loaded.settings;
    let identity = Identity::of(&input.spec.local_files());
    let identity = identity.inspect_err(|error| tracing::warn!("{}: {error}", input.name)).ok();
    let mut pairs = None;
    if piece > 0 && identity.is_some() {
        let options = settings.source.stream_options(&settings.camera, stop, &Keep::default());
        match source::open(&input.spec, DemoOptions::default(), &options) {
            Ok(source) if source.info().live => {
                return Err(Error::usage(format!(
                    "{} is live; a batch takes recordings",
                    input.name
                )));
            }
            Ok(source) => {
                // A pair has at least one byte; a damaged container may claim any number.
                let size = identity.as_ref().map_or(0, |identity| identity.size);
                pairs = source.info().pairs.filter(|pairs| *pairs <= size);
            }
            Err(error) => tracing::warn!("{}: {error:#}", input.name),
        }
    }
    Ok(Known { pairs, identity, ..of_name(input) })
}

/// Returns the plan of a folder: the existing one, or a new one with the inputs from `known`. The first
/// worker writes it, and others wait for it. `force` replaces it.
pub fn agree(
    folder: &Path,
    mut plan: Plan,
    force: bool,
    stop: &Switch,
    known: impl FnOnce(&mut Plan) -> Result<(), Error>,
) -> Result<Plan, Error> {
    let is_other = |found: &Plan| {
        let difference = plan.difference(found);
        difference.map(|difference| {
            Error::usage(format!(
                "{} has results of another batch: {difference}; name another folder, or give --force to replace \
                 what differs",
                folder.display()
            ))
        })
    };
    let mut claim = None;
    loop {
        if !force && let Some(found) = Plan::read(folder)? {
            let other = is_other(&found);
            return other.map_or(Ok(found), Err);
        }
        if claim.is_some() {
            break;
        }
        match Claim::on(&folder.join(NAME)) {
            // Another worker may have written it meanwhile.
            Ok(taken) => claim = Some(taken),
            Err(error) if error.is::<Taken>() => std::thread::sleep(crate::commands::TICK),
            Err(error) => return Err(error.into()),
        }
        if stop.is_set() {
            return Err(anyhow!("stopped before the batch began").into());
        }
    }
    known(&mut plan)?;
    let text = serde_json::to_string_pretty(&plan).map_err(anyhow::Error::from)? + "\n";
    write_once(&folder.join(NAME), text.as_bytes(), force)?;
    // On a file system without locks another worker's plan may have been the first.
    Plan::of(folder)
}

/// Removes the plan of a folder without results.
pub fn withdraw(folder: &Path) {
    let path = folder.join(NAME);
    if let Err(error) = fs::remove_file(&path) {
        tracing::warn!("cannot remove {}: {error}", path.display());
    }
}

/// Writes a file atomically; an existing one is only replaced if `replaces` is set.
fn write_once(path: &Path, content: &[u8], replaces: bool) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new();
    #[cfg(unix)]
    file.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let file = file.prefix(".run.json.stereod-").suffix(".part").tempfile_in(folder);
    let mut file = file.map_err(|error| explain(path, &error))?;
    let written = file.write_all(content).and_then(|()| file.as_file().sync_all());
    written.map_err(|error| explain(path, &error))?;
    let placed = match replaces {
        true => file.persist(path).map(drop),
        false => file.persist_noclobber(path).map(drop),
    };
    match placed {
        Err(refused) if refused.error.kind() != ErrorKind::AlreadyExists => {
            Err(explain(path, &refused.error))
        }
        _ => Ok(()),
    }
}

pub fn create_folder(folder: &Path) -> Result<PathBuf> {
    fs::create_dir_all(folder).map_err(|error| explain(folder, &error))?;
    folder.canonicalize().map_err(|error| explain(folder, &error))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plan(piece: u64, pairs: &[Option<u64>]) -> Plan {
        let inputs = pairs.iter().enumerate().map(|(number, &pairs)| Known {
            source: "a.mcap".into(),
            name: format!("i{number}"),
            pairs,
            identity: None,
        });
        Plan {
            schema: SCHEMA,
            version: "1".into(),
            settings: BTreeMap::from([("matching.p1".into(), 7.into())]),
            write: vec!["record".into()],
            run_in: 0,
            piece,
            shards: None,
            inputs: inputs.collect(),
        }
    }

    fn ranges(piece: u64, pairs: Option<u64>) -> Vec<(u64, Option<u64>)> {
        plan(piece, &[pairs]).pieces().into_iter().map(|piece| (piece.first, piece.end)).collect()
    }

    #[test]
    fn long_inputs_are_cut_and_the_rest_goes_to_the_last_piece() {
        assert_eq!(ranges(100, Some(250)), [(0, Some(100)), (100, Some(200)), (200, None)]);
        assert_eq!(ranges(100, Some(249)), [(0, Some(100)), (100, None)]);
        assert_eq!(ranges(100, Some(20)), [(0, None)]);
        assert_eq!(ranges(100, Some(0)), [(0, None)]);
        assert_eq!(ranges(0, Some(1000)), [(0, None)]);
        assert_eq!(ranges(100, None), [(0, None)]);
        assert_eq!(plan(100, &[Some(150)]).pieces()[1].name, "i0.00000100");
    }

    #[test]
    fn a_damaged_plan_is_refused() {
        let good = plan(10, &[Some(20), None]);
        let flaw = |change: &dyn Fn(&mut Plan)| {
            let mut changed = good.clone();
            change(&mut changed);
            changed.flaw().unwrap_or_default()
        };
        assert_eq!(flaw(&|_| ()), "");
        assert!(flaw(&|plan| plan.inputs[0].name = "../x".into()).contains("`../x`"));
        assert!(flaw(&|plan| plan.inputs[0].name = "i1".into()).contains("`i1`"), "twice");
        assert!(flaw(&|plan| plan.write = vec!["../x".into()]).contains("`../x`"));
        for pairs in [u64::MAX, 1 << 50] {
            let said = flaw(&|plan| plan.inputs.iter_mut().for_each(|i| i.pairs = Some(pairs)));
            assert!(said.contains("pieces"), "{said}");
        }
        let whole = Plan { piece: 0, ..plan(0, &[Some(u64::MAX), Some(u64::MAX)]) };
        assert!(whole.flaw().is_none() && whole.pieces().len() == 2);
    }

    #[test]
    fn other_settings_have_another_identity_and_are_named() {
        let one = plan(100, &[Some(20)]);
        let mut other = one.clone();
        other.settings.insert("matching.p1".into(), 9.into());
        assert_eq!(other.difference(&one).unwrap(), "matching.p1 is 9, but was 7");
        assert_ne!(other.settings_id(), one.settings_id());
        let more = plan(100, &[Some(20), None]);
        assert_eq!(more.difference(&one).unwrap(), "the number of inputs is 2, but was 1");
        assert_eq!(more.settings_id(), one.settings_id());
        assert_eq!(one.difference(&one.clone()), None);
    }

    #[test]
    fn the_first_plan_holds() {
        let folder = tempfile::tempdir().unwrap();
        let stop = Switch::default();
        let agreed =
            |plan: &Plan, force| agree(folder.path(), plan.clone(), force, &stop, |_| Ok(()));
        let one = plan(100, &[Some(20)]);
        assert_eq!(agreed(&one, false).unwrap(), one);
        let other = plan(50, &[Some(20)]);
        let error = agreed(&other, false).unwrap_err();
        assert!(error.exit_status() == 2 && error.to_string().contains("--piece is 50"), "{error}");
        assert_eq!(agreed(&other, true).unwrap(), other);
        write_once(&folder.path().join(NAME), b"x", false).unwrap();
        assert_eq!(Plan::of(folder.path()).unwrap(), other);
        fs::write(folder.path().join(NAME), "{").unwrap();
        assert!(agreed(&other, false).unwrap_err().to_string().contains("is damaged"));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn shards_share_all_pieces_in_their_order(
            pairs in prop::collection::vec(prop::option::of(0u64..5000), 1..40),
            piece in 0u64..700,
            count in 1u64..80,
        ) {
            let pieces = plan(piece, &pairs).pieces();
            let shards = shards_of(&pieces, count);
            prop_assert_eq!(shards.len(), pieces.len());
            prop_assert!(shards.iter().all(|&shard| shard < count));
            prop_assert!(shards.is_sorted());
            for input in 0..pairs.len() {
                let of_input: Vec<_> = pieces.iter().filter(|piece| piece.input == input).collect();
                prop_assert_eq!(of_input[0].first, 0);
                for pair in of_input.windows(2) {
                    prop_assert_eq!(pair[0].end, Some(pair[1].first));
                }
                prop_assert_eq!(of_input.last().unwrap().end, None);
            }
        }

        #[test]
        fn equal_pieces_are_shared_evenly(pieces in 1u64..60, count in 1u64..60) {
            let pieces = plan(10, &[Some(10 * pieces)]).pieces();
            let shards = shards_of(&pieces, count);
            let sizes: Vec<_> =
                (0..count).map(|shard| shards.iter().filter(|&&of| of == shard).count()).collect();
            prop_assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1, "{:?}", sizes);
        }
    }
}
