//! Files, functions and types that the documents name exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::{assert_none, blocks, documents, root};

/// Folders with the program's text.
const FOLDERS: [&str; 6] = ["src", "kernels", "shaders", "tests", "scripts", "config"];

/// Ends of the names of source files.
const ENDS: [&str; 8] = [".rs", ".cu", ".cuh", ".wgsl", ".py", ".sh", ".js", ".c"];

/// Files and names of other programs.
const FOREIGN: [&str; 22] = [
    "VISO_TYPE",
    "EKF2_EV_CTRL",
    "PRX1_TYPE",
    "CP_DIST",
    "CP_GO_NO_DATA",
    "Y10",
    "Y12",
    "Y10P",
    "rtabmap.launch.py",
    "rs2::align",
    "creation_time",
    "StatisticalOutlierRemoval",
    "remove_statistical_outlier",
    "VoxelGrid",
    "voxel_down_sample",
    "left_cam",
    "Forwarded",
    "Via",
    "StereoCameraModel",
    "FASTDDS_DEFAULT_PROFILES_FILE",
    "SocketReceiveBufferSize",
    "static_transform_publisher",
];

/// Words of the source files' code, by their paths.
type Sources = BTreeMap<String, BTreeSet<String>>;

/// Returns the words of a file without its line comments, which may name what is gone.
fn words_of(path: &str, text: &str) -> BTreeSet<String> {
    let comment = if path.ends_with(".py") || path.ends_with(".sh") { "# " } else { "// " };
    let code = text.lines().map(|line| line.split(comment).next().unwrap_or_default());
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    code.flat_map(|line| line.split(|c| !is_part(c))).map(str::to_owned).collect()
}

fn sources() -> Sources {
    let mut sources = Sources::new();
    for folder in FOLDERS {
        let pattern = root().join(folder).join("**/*.*");
        for path in glob::glob(pattern.to_str().unwrap()).unwrap().flatten() {
            let Ok(text) = fs::read_to_string(&path) else { continue };
            let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
            let mut words = words_of(&name, &text);
            // Modules and tests are called like their files.
            words.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
            sources.insert(name, words);
        }
    }
    // This file lists names of others.
    sources.retain(|path, _| !path.ends_with("docs/names.rs"));
    sources.insert("tests/docs/names.rs".into(), BTreeSet::new());
    sources
}

/// Returns the words of the source files that a span names by the end of their paths; `None` if it names no file.
fn files<'a>(span: &str, sources: &'a Sources) -> Option<Vec<&'a BTreeSet<String>>> {
    let is_path = |c: char| c.is_ascii_alphanumeric() || "._-/*".contains(c);
    let is_file =
        ENDS.iter().any(|end| span.strip_suffix(end).is_some_and(|stem| !stem.is_empty()));
    if !is_file || !span.chars().all(is_path) {
        return None;
    }
    // Crates may lie deeper than the documents say.
    let end = span.strip_prefix("src/").unwrap_or(span).replace("NAME", "*");
    let pattern = glob::Pattern::new(&format!("**/{end}")).unwrap();
    let found = sources.iter().filter(|(path, _)| pattern.matches(path));
    Some(found.map(|(_, words)| words).collect())
}

/// Returns the parts of a name of code: `a_b`, `AbCd`, `ABC`, `A::b` or `a_b()`.
fn parts(span: &str) -> Option<Vec<&str>> {
    let name = span.strip_suffix("()").unwrap_or(span);
    let parts: Vec<&str> = name.split("::").collect();
    let is_name = |part: &&str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic())
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let begins_upper = name.starts_with(|c: char| c.is_ascii_uppercase());
    let is_code = begins_upper || name.contains('_') || parts.len() > 1;
    (is_code && name.len() > 2 && parts.iter().all(is_name)).then_some(parts)
}

/// In tables of the developers' documents, names stand in a file of their row.
#[test]
fn files_functions_and_types_in_the_documents_exist() {
    let sources = sources();
    let mut documents = documents();
    let contributing = "CONTRIBUTING.md";
    let text = fs::read_to_string(root().join(contributing)).unwrap();
    documents.push((contributing.into(), text));
    let mut wrong = Vec::new();
    let mut foreign = BTreeSet::from(FOREIGN);
    for (document, text) in documents {
        let prose = blocks::split(&text).1;
        let lines: Vec<&str> = prose.lines().collect();
        let spans = blocks::spans(&prose);
        foreign.retain(|name| spans.iter().all(|(_, span)| span != name));
        let spans = spans.iter().filter(|(_, span)| !FOREIGN.contains(&&**span));
        let mut rows: BTreeMap<usize, Vec<&BTreeSet<String>>> = BTreeMap::new();
        for (line, span) in spans.clone() {
            let Some(found) = files(span, &sources) else { continue };
            if found.is_empty() {
                wrong.push(format!("{document}:{line}: no such file: `{span}`"));
            }
            let is_walk = document == "docs/design.md" || document == contributing;
            if is_walk && lines[line - 1].starts_with('|') {
                rows.entry(*line).or_default().extend(found);
            }
        }
        for (line, span) in spans {
            let Some(parts) = parts(span) else { continue };
            let has_all = |words: &BTreeSet<String>| parts.iter().all(|&part| words.contains(part));
            let is_there = match rows.get(line) {
                Some(files) => files.iter().any(|words| has_all(words)),
                None => sources.values().any(has_all),
            };
            if !is_there {
                wrong.push(format!("{document}:{line}: no such name: `{span}`"));
            }
        }
    }
    wrong.extend(
        foreign.iter().map(|name| format!("no document names {name}: take it off the list")),
    );
    assert_none(&wrong);
}
