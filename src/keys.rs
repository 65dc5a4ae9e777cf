//! The keys of the window and of the live page. Both act by this table, list it as their help, and
//! docs/window.md has it as a table.

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    NextView,
    Both,
    Disparity,
    Points,
    Left,
    Blend,
    Confidence,
    Right,
    Rows,
    NextColours,
    DepthColours,
    Nearer,
    Farther,
    Whole,
    ArrowLeft,
    ArrowRight,
    ArrowUp,
    ArrowDown,
    Measure,
    Obstacles,
    Path,
    Status,
    Overlay,
    FullScreen,
    Devices,
    Help,
    Quit,
    /// Leaves the full screen, else quits.
    Leave,
    Pause,
    Forwards,
    Backwards,
    Begin,
    End,
    MarkBegin,
    MarkEnd,
    Repeat,
    Slower,
    Faster,
    Tune,
    Compare,
    WriteSettings,
    Record,
    Snapshot,
    PointCloud,
    Undo,
}

/// Viewers that have a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    Both,
    Window,
    Page,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Group {
    Views,
    Playback,
    Tuning,
    Files,
}

/// Keys with one meaning together. Keys have the names of browsers, such as `Escape`.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub group: Group,
    pub on: On,
    pub keys: &'static [(&'static str, Action)],
    pub meaning: &'static str,
}

impl Row {
    /// Returns the keys as people read them.
    pub fn names(&self) -> Vec<&'static str> {
        let all = self.keys.iter().map(|(key, _)| match *key {
            " " => "Space",
            "Escape" => "Esc",
            "ArrowLeft" => "arrows",
            key => key,
        });
        all.filter(|name| !name.starts_with("Arrow")).collect()
    }
}

const fn row(
    group: Group,
    on: On,
    keys: &'static [(&'static str, Action)],
    meaning: &'static str,
) -> Row {
    Row { group, on, keys, meaning }
}

use Group::{Files, Playback, Tuning, Views};

pub const KEYS: [Row; 34] = [
    row(Views, On::Both, &[("l", Action::NextView)], "next view"),
    row(
        Views,
        On::Both,
        &[("1", Action::Both), ("2", Action::Disparity)],
        "left image and disparity, disparity",
    ),
    row(Views, On::Both, &[("3", Action::Points)], "points in 3-D; again: from the left camera"),
    row(Views, On::Both, &[("4", Action::Left), ("7", Action::Right)], "left image, right image"),
    row(Views, On::Page, &[("5", Action::Blend)], "disparity over the left image"),
    row(Views, On::Both, &[("6", Action::Confidence)], "confidence"),
    row(Views, On::Window, &[("e", Action::Rows)], "both images, lines along rows"),
    row(Views, On::Both, &[("c", Action::NextColours)], "next colours"),
    row(Views, On::Both, &[("d", Action::DepthColours)], "3-D in colours of the depth, the image"),
    row(
        Views,
        On::Both,
        &[("+", Action::Nearer), ("=", Action::Nearer), ("-", Action::Farther)],
        "nearer, farther",
    ),
    row(Views, On::Both, &[("0", Action::Whole)], "whole image, start position in 3-D"),
    row(
        Views,
        On::Both,
        &[
            ("ArrowLeft", Action::ArrowLeft),
            ("ArrowRight", Action::ArrowRight),
            ("ArrowUp", Action::ArrowUp),
            ("ArrowDown", Action::ArrowDown),
        ],
        "move the probe, turn the points",
    ),
    row(Views, On::Both, &[("m", Action::Measure)], "measure between two points"),
    row(Views, On::Both, &[("n", Action::Obstacles)], "obstacles and zones on, off"),
    row(Views, On::Both, &[("k", Action::Path)], "path of the vehicle from above on, off"),
    row(
        Views,
        On::Both,
        &[("g", Action::Status), ("i", Action::Status)],
        "all figures; in the window histograms",
    ),
    row(Views, On::Window, &[("o", Action::Overlay)], "bar and figures on, off"),
    row(Views, On::Both, &[("f", Action::FullScreen)], "full screen"),
    row(Views, On::Window, &[("v", Action::Devices)], "devices of this machine"),
    row(Views, On::Both, &[("h", Action::Help), ("?", Action::Help)], "this help"),
    row(Views, On::Window, &[("q", Action::Quit), ("Escape", Action::Leave)], "quit"),
    row(Playback, On::Both, &[(" ", Action::Pause)], "pause, play"),
    row(
        Playback,
        On::Both,
        &[(".", Action::Forwards), (",", Action::Backwards)],
        "next pair, pair before",
    ),
    row(
        Playback,
        On::Both,
        &[("Home", Action::Begin), ("End", Action::End)],
        "first pair, last pair",
    ),
    row(
        Playback,
        On::Both,
        &[("[", Action::MarkBegin), ("]", Action::MarkEnd)],
        "mark begin, end of a part",
    ),
    row(Playback, On::Both, &[("a", Action::Repeat)], "repeat the part"),
    row(Playback, On::Both, &[("<", Action::Slower), (">", Action::Faster)], "slower, faster"),
    row(Tuning, On::Both, &[("t", Action::Tune)], "panel of settings"),
    row(Tuning, On::Window, &[("b", Action::Compare)], "compare with this map"),
    row(Tuning, On::Both, &[("w", Action::WriteSettings)], "write settings to a file (asks)"),
    row(Files, On::Both, &[("r", Action::Record)], "start, stop recording (asks)"),
    row(Files, On::Both, &[("s", Action::Snapshot)], "snapshot"),
    row(Files, On::Both, &[("p", Action::PointCloud)], "point cloud"),
    row(Files, On::Window, &[("u", Action::Undo)], "delete the files saved last"),
];

/// Returns the action of a key of this viewer. Capitals count as small letters.
pub fn action(key: &str, on: On) -> Option<Action> {
    let key = if key.len() == 1 { &*key.to_lowercase() } else { key };
    let rows = KEYS.iter().filter(|row| row.on == On::Both || row.on == on);
    rows.flat_map(|row| row.keys).find(|(name, _)| *name == key).map(|(_, action)| *action)
}

/// Returns the table of the page as a module of its script.
#[cfg(feature = "serve")]
pub fn script() -> String {
    let rows = KEYS.iter().filter(|row| row.on != On::Window).map(|row| {
        let Row { group, keys, meaning, .. } = row;
        serde_json::json!({ "group": group, "keys": keys, "names": row.names(), "meaning": meaning })
    });
    format!("export const ROWS = {};\n", serde_json::Value::from_iter(rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_one_action() {
        for on in [On::Window, On::Page] {
            let rows = KEYS.iter().filter(|row| row.on == On::Both || row.on == on);
            let mut names: Vec<_> = rows.flat_map(|row| row.keys).map(|(key, _)| key).collect();
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "{on:?}");
        }
        assert_eq!(action("R", On::Page), Some(Action::Record));
        assert_eq!(action("r", On::Window), Some(Action::Record));
        assert_eq!(action("5", On::Window), None);
        assert_eq!(action("Escape", On::Page), None);
    }

    #[test]
    fn the_documentation_has_the_table() {
        let text = include_str!("../docs/window.md");
        let code = |name: &&str| match *name {
            "Space" | "Home" | "End" | "Esc" | "arrows" => (*name).to_owned(),
            key => format!("`{key}`"),
        };
        let lines: Vec<String> = KEYS
            .iter()
            .map(|row| {
                let names: Vec<_> = row.names().iter().map(code).collect();
                let on = match row.on {
                    On::Both => "",
                    On::Window => "window",
                    On::Page => "page",
                };
                format!("| {} | {} | {on} |\n", names.join(" "), row.meaning)
            })
            .collect();
        assert!(text.contains(&lines.concat()), "docs/window.md lacks\n{}", lines.concat());
    }
}
