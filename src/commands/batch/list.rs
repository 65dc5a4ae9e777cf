//! The inputs of a batch: the lines of a text file, or the recordings in a folder.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::cli::batch::BatchArgs;
use stereod_core::files::extension;
use stereod_core::reading;
use stereod_io::source::recording::{is_recording, partners};
use stereod_io::source::spec::{SourceSpec, StreamSpec, VIDEOS};

/// Largest size of a list in bytes.
const LIST_MAX: u64 = 256 << 20;

/// Longest name of an input, in bytes; names of files end at 255.
const NAME_MAX: usize = 120;

/// Arrangement of the views in single videos.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Both {
    /// A single video is an error.
    None,
    /// The left view is the left half.
    SideBySide,
    /// The left view is the upper half.
    TopBottom,
}

impl Both {
    pub fn of(args: &BatchArgs) -> Self {
        match (args.side_by_side, args.top_bottom) {
            (true, _) => Self::SideBySide,
            (_, true) => Self::TopBottom,
            _ => Self::None,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    pub name: String,
    /// Its line in the list, or its name in the folder; a tab separates the views.
    pub source: String,
    pub spec: SourceSpec,
    pub arguments: Vec<OsString>,
}

pub fn inputs(path: &Path, both: Both, topics: &[Option<String>; 2]) -> Result<Vec<Input>> {
    let shown = path.display();
    let named: Vec<Views> = if path.is_dir() {
        in_folder(path, both)?
    } else {
        let text = reading::read(path, LIST_MAX).with_context(|| {
            format!("cannot read {shown}, a list of inputs or a folder of recordings")
        })?;
        let text = String::from_utf8(text)
            .ok()
            .with_context(|| format!("{shown} is no list: it is no text in UTF-8"))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        // Some editors begin a text with a byte order mark.
        let lines = text.trim_start_matches('\u{feff}').lines();
        let lines = (1..).zip(lines).map(|(number, line)| (number, line.trim()));
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let parsed = lines
            .map(|(number, line)| views(line, folder).with_context(|| format!("{shown}:{number}")));
        parsed.collect::<Result<_>>()?
    };
    ensure!(!named.is_empty(), "{shown} names no input");
    let names = unique(named.iter().map(Views::name).collect(), &named);
    let inputs = named.into_iter().zip(names);
    inputs.map(|(views, name)| views.input(name, both, topics)).collect()
}

/// Paths of an input: one, or left and right. The text names them for messages and names.
struct Views {
    texts: Vec<String>,
    paths: Vec<PathBuf>,
}

fn views(line: &str, folder: &Path) -> Result<Views> {
    let words: Vec<&str> = match line.split_once('\t') {
        Some((left, right)) => vec![left.trim(), right.trim()],
        None if folder.join(line).exists() => vec![line],
        None => line.split_whitespace().collect(),
    };
    ensure!(
        words.len() <= 2,
        "`{line}` names more than two files; write a tab between left and right if names have spaces"
    );
    for word in &words {
        let is_local = !word.contains("://") && !word.contains('!') && !word.starts_with("/dev/");
        ensure!(is_local, "`{word}` is no file; a batch takes recordings in files");
    }
    let paths = words.iter().map(|word| folder.join(word)).collect();
    Ok(Views { texts: words.into_iter().map(str::to_owned).collect(), paths })
}

fn in_folder(folder: &Path, both: Both) -> Result<Vec<Views>> {
    let single = |path: &Path, text: &str| Views {
        texts: vec![text.to_owned()],
        paths: vec![path.to_owned()],
    };
    if is_recording(folder) && !holds_recordings(folder) {
        let name = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let name = name.file_name().unwrap_or_default().to_string_lossy().into_owned();
        return Ok(vec![single(folder, &name)]);
    }
    let paths = entries(folder)?;
    let is_video = |path: &Path| path.is_file() && VIDEOS.contains(&&*extension(path));
    let videos: HashMap<String, &String> = paths
        .iter()
        .filter(|(_, path)| is_video(path))
        .map(|(name, _)| (name.to_lowercase(), name))
        .collect();
    let (mut found, mut rights) = (Vec::new(), Vec::new());
    let mut left_out = Vec::new();
    for (name, path) in &paths {
        let is_single = both != Both::None;
        if is_recording(path) || is_single && is_video(path) {
            found.push(single(path, name));
        } else if is_video(path) {
            match partners(name).find_map(|right| videos.get(&right)) {
                Some(right) => {
                    rights.push(*right);
                    let texts = vec![name.clone(), (*right).clone()];
                    found.push(Views { paths: vec![path.clone(), paths[*right].clone()], texts });
                }
                None => left_out.push(name),
            }
        }
    }
    left_out.retain(|name| !rights.contains(name));
    if let [first, ..] = left_out[..] {
        tracing::warn!(
            "{} of the videos in {} have no partner by their names and are left out, among them {first}; a list \
             names pairs, and --side-by-side says that a video holds both views",
            left_out.len(),
            folder.display()
        );
    }
    ensure!(
        !found.is_empty(),
        "{} holds no recording of messages and no two videos whose names differ in left and right; a text \
         file can list the inputs",
        folder.display()
    );
    Ok(found)
}

/// Returns the paths in a folder by name, without hidden ones.
fn entries(folder: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut paths = BTreeMap::new();
    for entry in entries {
        let entry = entry.with_context(|| folder.display().to_string())?;
        let Ok(name) = entry.file_name().into_string() else {
            bail!("{} is not named in UTF-8; rename it", entry.path().display());
        };
        if !name.starts_with('.') {
            paths.insert(name, entry.path());
        }
    }
    Ok(paths)
}

/// Reports whether a folder contains single recordings. In a folder of rosbag2, its metadata describes files
/// that belong together.
fn holds_recordings(folder: &Path) -> bool {
    let mut entries = fs::read_dir(folder).into_iter().flatten().flatten();
    !folder.join("metadata.yaml").exists()
        && entries.any(|entry| entry.path().is_file() && is_recording(&entry.path()))
}

impl Views {
    /// Returns a name for files, from the common part of both views' names.
    fn name(&self) -> String {
        let stem = |text: &str| {
            let path = Path::new(text);
            path.with_extension("").to_string_lossy().into_owned()
        };
        let left = stem(&self.texts[0]);
        let common = self.texts.get(1).map(|right| {
            let right = stem(right);
            let same = left.chars().zip(right.chars()).take_while(|(a, b)| a == b);
            same.map(|(c, _)| c).collect::<String>()
        });
        let plain = |text: &str| {
            let kept = |c: char| if c.is_alphanumeric() || "-_".contains(c) { c } else { '-' };
            let text: String = text.chars().map(kept).collect();
            let text = text.trim_matches(['-', '_']).to_owned();
            // The end distinguishes inputs better than the folders at the beginning.
            text[text.ceil_char_boundary(text.len().saturating_sub(NAME_MAX))..].to_owned()
        };
        let names = common.iter().map(|common| plain(common)).chain([plain(&left)]);
        names.into_iter().find(|name| !name.is_empty()).unwrap_or_else(|| "input".to_owned())
    }

    fn input(self, name: String, both: Both, topics: &[Option<String>; 2]) -> Result<Input> {
        let argument = |flag: &str, path: &Path| {
            let mut argument = OsString::from(flag);
            argument.push("=");
            argument.push(path);
            argument
        };
        let is_pattern = |path: &Path| matches!(StreamSpec::parse(path), StreamSpec::Pictures(_));
        let (spec, arguments) = match &self.paths[..] {
            [left, right] => (
                SourceSpec::two(left, right),
                vec![argument("--left", left), argument("--right", right)],
            ),
            [path] if both != Both::None && !is_recording(path) => match both {
                Both::TopBottom => {
                    (SourceSpec::top_bottom(path), vec![argument("--top-bottom", path)])
                }
                _ => (SourceSpec::side_by_side(path), vec![argument("--side-by-side", path)]),
            },
            [path] if is_pattern(path) || path.exists() && !is_recording(path) => bail!(
                "{} is no recording of messages; a line names left and right, or --side-by-side or --top-bottom \
                 says that a video holds both",
                self.texts[0]
            ),
            [path] => {
                let mut arguments = Vec::new();
                for (flag, topic) in ["--left-topic", "--right-topic"].into_iter().zip(topics) {
                    arguments.extend(topic.as_ref().map(|topic| format!("{flag}={topic}").into()));
                }
                arguments.extend(["--".into(), path.clone().into()]);
                (SourceSpec::recording(path, topics.clone()), arguments)
            }
            _ => bail!("an input has one or two files"),
        };
        spec.check(false)?;
        Ok(Input { name, source: self.texts.join("\t"), spec, arguments })
    }
}

/// Reports whether an input may have this name, which is also a folder's.
pub fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || "-_".contains(c);
    !name.is_empty() && name.len() < 2 * NAME_MAX && name.chars().all(is_plain)
}

/// Makes equal names unique by hashes of their texts, so that a name does not depend on the order.
fn unique(names: Vec<String>, views: &[Views]) -> Vec<String> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for name in &names {
        *counts.entry(name.clone()).or_default() += 1;
    }
    let mut seen = HashMap::new();
    let named = names.into_iter().zip(views).map(|(name, views)| match counts[&name] {
        1 => name,
        _ => {
            let hash = blake3::hash(views.texts.join("\t").as_bytes()).to_hex();
            format!("{name}-{}", &hash[..8])
        }
    });
    // A duplicate line.
    let numbered = named.map(|name| {
        let times: &mut usize = seen.entry(name.clone()).or_default();
        *times += 1;
        if *times == 1 { name } else { format!("{name}-{times}") }
    });
    numbered.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(folder: &Path, text: &str) -> Result<Vec<String>> {
        let list = folder.join("list.txt");
        fs::write(&list, text).unwrap();
        let inputs = inputs(&list, Both::None, &[None, None])?;
        Ok(inputs.into_iter().map(|input| input.name).collect())
    }

    #[test]
    fn a_list_has_recordings_and_pairs() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("with space.mcap"), b"\x89MCAP0\r\n").unwrap();
        let names = named(
            folder.path(),
            "\u{feff}# drives\n\nwith space.mcap\ncam_left.mp4 cam_right.mp4\na b/l.mkv\ta b/r.mkv\r\n/x/y.bag\n\
             l/%06d.png r/%06d.png\nü日本_left.mp4 ü日本_right.mp4\n",
        );
        assert_eq!(names.unwrap(), ["with-space", "cam", "a-b", "x-y", "l--06d", "ü日本"]);
        for (wrong, reason) in [
            ("a b c", "more than two"),
            ("rtsp://h/a rtsp://h/b", "is no file"),
            ("videotestsrc!x", "is no file"),
            ("list.txt", "no recording of messages"),
            ("# nothing", "names no input"),
        ] {
            let error = format!("{:#}", named(folder.path(), wrong).unwrap_err());
            assert!(error.contains(reason), "{wrong}: {error}");
        }
        fs::write(at("binary"), [0xff, 0xfe]).unwrap();
        assert!(inputs(&at("binary"), Both::None, &[None, None]).is_err());
    }

    #[test]
    fn names_are_unique_and_do_not_depend_on_the_order() {
        let folder = tempfile::tempdir().unwrap();
        let names = named(folder.path(), "a/b.bag\na-b.bag\nc.bag\nc.bag\n").unwrap();
        let turned = named(folder.path(), "a-b.bag\na/b.bag\n").unwrap();
        assert_eq!(names.iter().collect::<std::collections::HashSet<_>>().len(), 4, "{names:?}");
        assert_eq!([&names[1], &names[0]], [&turned[0], &turned[1]]);
        assert!(names.iter().all(|name| is_name(name)));
        assert!(["", "..", "../x", "a/b", "a.b", "/x", "a\n"].iter().all(|name| !is_name(name)));
        let long = "日".repeat(300);
        assert!(named(folder.path(), &format!("{long}.bag")).unwrap()[0].len() <= NAME_MAX);
    }

    #[test]
    fn a_folder_has_pairs_by_their_names() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a_left.mp4", "A_right.MP4", "b-cam0.mkv", "b-cam1.mkv", "c.mkv", "d.txt"] {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        fs::write(folder.path().join("e.mcap"), b"\x89MCAP0\r\n").unwrap();
        let names = |both| {
            let inputs = inputs(folder.path(), both, &[None, None]).unwrap();
            inputs.into_iter().map(|input| input.name).collect::<Vec<_>>()
        };
        assert_eq!(names(Both::None), ["a_left", "b-cam", "e"]);
        assert_eq!(names(Both::SideBySide).len(), 6);
        fs::create_dir(folder.path().join("empty")).unwrap();
        assert!(inputs(&folder.path().join("empty"), Both::None, &[None, None]).is_err());
    }
}
