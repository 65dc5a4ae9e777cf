//! The settings that can be tuned in the window, as its knobs.

use toml::{Table, Value};

use super::changeable::why_fixed;
use crate::settings::{CostKind, Loaded, P2Kind, RangeMode};
use crate::sink::window::{Knob, KnobKind};

/// A number that may also be `auto`.
const fn auto(low: f64, high: f64, step: f64) -> KnobKind {
    KnobKind::Number { low, high, step, word: Some("auto") }
}

const fn number(low: f64, high: f64, step: f64) -> KnobKind {
    KnobKind::Number { low, high, step, word: None }
}

/// Group, key, label, hint, what it takes.
type Row = (&'static str, &'static str, &'static str, &'static str, KnobKind);

const MATCHING: [Row; 23] = [
    (
        "Cost",
        "cost",
        "cost",
        "How well two pixels agree. What is auto follows it.",
        KnobKind::Choice(&["combined", "census", "ad"]),
    ),
    (
        "Cost",
        "census_weight",
        "census",
        "What each of the 24 bits of a 5x5 census counts, in sixteenths.",
        number(0.0, 127.0, 1.0),
    ),
    (
        "Cost",
        "gradient_weight",
        "gradient",
        "What a grey level of difference in gradient counts, in sixteenths.",
        number(0.0, 127.0, 1.0),
    ),
    (
        "Cost",
        "intensity_weight",
        "intensity",
        "What a grey level of difference in intensity counts, in sixteenths.",
        number(0.0, 127.0, 1.0),
    ),
    (
        "Cost",
        "gradient_truncation",
        "gradient up to",
        "Larger differences in gradient count as this many grey levels.",
        number(0.0, 64.0, 1.0),
    ),
    (
        "Cost",
        "intensity_truncation",
        "intensity up to",
        "Larger differences in intensity count as this many grey levels.",
        number(0.0, 64.0, 1.0),
    ),
    (
        "Cost",
        "census_window",
        "window",
        "What is compared with what.",
        KnobKind::Choice(&["9x7-symmetric", "3x3", "5x5", "7x7", "9x7"]),
    ),
    (
        "Cost",
        "ad_truncation",
        "up to",
        "Larger differences count as this many grey levels.",
        number(1.0, 128.0, 1.0),
    ),
    (
        "Cost",
        "ad_window",
        "window",
        "Side of the square over which the difference is averaged.",
        KnobKind::Choice(&["1", "3", "5", "7"]),
    ),
    (
        "Range",
        "min_disparity",
        "smallest",
        "The smallest candidate disparity, in pixels.",
        number(-64.0, 128.0, 1.0),
    ),
    (
        "Range",
        "disparities",
        "number",
        "How many candidate disparities there are; auto: what the first pairs needed.",
        auto(8.0, 256.0, 8.0),
    ),
    (
        "Smoothness",
        "p1",
        "P1",
        "Penalty for a step of one pixel between neighbours: slanted surfaces.",
        auto(0.0, 255.0, 1.0),
    ),
    (
        "Smoothness",
        "p2",
        "P2",
        "Penalty for a larger step: edges of objects.",
        auto(0.0, 255.0, 1.0),
    ),
    (
        "Smoothness",
        "p2_mode",
        "P2 by picture",
        "How P2 follows the steps in brightness.",
        KnobKind::Choice(&["linear", "inverse-gradient", "fixed"]),
    ),
    ("Smoothness", "p2_min", "P2 at least", "The smallest P2.", auto(0.0, 255.0, 1.0)),
    (
        "Smoothness",
        "p2_slope",
        "P2 slope",
        "What P2 loses for every grey level of the step in brightness.",
        auto(0.0, 16.0, 0.25),
    ),
    (
        "Smoothness",
        "paths",
        "paths",
        "Directions along which costs are summed.",
        KnobKind::Choice(&["4", "5", "8"]),
    ),
    (
        "Checks",
        "uniqueness",
        "uniqueness",
        "Invalid where another disparity is nearly as good, within this many percent.",
        number(0.0, 50.0, 1.0),
    ),
    (
        "Checks",
        "left_right",
        "left-right",
        "Invalid where the eyes' disparities differ by more than this many pixels.",
        KnobKind::Number { low: 0.0, high: 8.0, step: 1.0, word: Some("off") },
    ),
    (
        "Checks",
        "subpixel",
        "subpixel",
        "Sixteenths of a pixel instead of whole pixels.",
        KnobKind::Switch,
    ),
    (
        "Filters",
        "median",
        "median",
        "Side of the median filter's window; 0: off.",
        KnobKind::Choice(&["auto", "0", "3", "5"]),
    ),
    (
        "Filters",
        "speckle_size",
        "speckles below",
        "Connected regions of fewer pixels are invalid; 0: none.",
        auto(0.0, 1000.0, 10.0),
    ),
    (
        "Filters",
        "speckle_range",
        "connected within",
        "Neighbours of a region differ by no more than this many pixels.",
        number(0.0, 16.0, 0.25),
    ),
];

const COLOUR: [Row; 4] = [
    (
        "Colours",
        "map",
        "map",
        "The colours of the disparity.",
        KnobKind::Choice(&["turbo", "viridis", "grey"]),
    ),
    (
        "Colours",
        "range",
        "span",
        "fixed: from first to last; adaptive: what is seen, followed slowly.",
        KnobKind::Choice(&["fixed", "adaptive"]),
    ),
    (
        "Colours",
        "min",
        "first",
        "Disparity of the first colour; auto: the smallest candidate.",
        auto(-64.0, 256.0, 1.0),
    ),
    (
        "Colours",
        "max",
        "last",
        "Disparity of the last colour; auto: the largest candidate.",
        auto(-64.0, 256.0, 1.0),
    ),
];

/// The knobs for these settings; those that mean nothing beside the others are left out.
pub fn knobs(loaded: &Loaded) -> Vec<Knob> {
    let in_effect = Table::try_from(&loaded.settings).expect("settings are plain values");
    let of = |section: &'static str, rows: &[Row]| -> Vec<Knob> {
        let meant = rows.iter().filter(|row| is_used(loaded, section, row.1));
        let knob = |(group, key, label, hint, kind): &Row| {
            let value = plain(loaded.laid(section, key));
            let means = plain(&in_effect[section][*key]);
            let means = match (section, *key) {
                ("colour", "min") => loaded.params.range.min.to_string(),
                ("colour", "max") => loaded.params.range.max().to_string(),
                _ => means,
            };
            let locked = why_fixed(section, key, loaded).map(str::to_owned);
            let means = (value == "auto").then_some(means);
            let name = (section, *key);
            Knob { name, group, label, hint, kind: kind.clone(), value, means, locked }
        };
        meant.map(knob).collect()
    };
    [of("matching", &MATCHING), of("colour", &COLOUR)].concat()
}

/// Whether a key matters beside the others.
fn is_used(loaded: &Loaded, section: &str, key: &str) -> bool {
    let matching = &loaded.settings.matching;
    match (section, key) {
        ("matching", "census_window") => matching.cost == CostKind::Census,
        ("matching", "ad_truncation" | "ad_window") => matching.cost == CostKind::Ad,
        ("matching", key) if key.ends_with("_weight") || key.ends_with("_truncation") => {
            matching.cost == CostKind::Combined
        }
        ("matching", "p2_min" | "p2_slope") => matching.p2_mode == P2Kind::Linear,
        ("colour", "min" | "max") => loaded.settings.colour.range == RangeMode::Fixed,
        _ => true,
    }
}

/// A value without quotation marks.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Float(number) => number.to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::settings::Layers;

    fn loaded(text: &str) -> Loaded {
        let mut layers = Layers::new();
        layers.file_text(Path::new("rig.toml"), text);
        layers.finish().unwrap()
    }

    fn value(knobs: &[Knob], key: &str) -> (String, Option<String>) {
        let knob = knobs.iter().find(|knob| knob.name.1 == key);
        let knob = knob.unwrap_or_else(|| panic!("no {key}"));
        (knob.value.clone(), knob.means.clone())
    }

    /// The keys of the two sections, each of which has its knob beside some cost.
    #[test]
    fn every_key_has_a_knob() {
        let keys: Vec<_> = MATCHING.iter().chain(&COLOUR).map(|row| row.1).collect();
        let all = Table::try_from(crate::settings::Settings::default()).unwrap();
        for section in ["matching", "colour"] {
            for key in all[section].as_table().unwrap().keys() {
                assert!(keys.contains(&key.as_str()), "no knob for {section}.{key}");
            }
        }
    }

    #[test]
    fn auto_shows_what_it_comes_to() {
        let of_ad = knobs(&loaded("[matching]\ncost = 'ad'\np2 = 90\ndisparities = 48\n"));
        assert_eq!(value(&of_ad, "p1"), ("auto".into(), Some("12".into())));
        assert_eq!(value(&of_ad, "p2"), ("90".into(), None));
        assert_eq!(value(&of_ad, "median"), ("auto".into(), Some("5".into())));
        assert_eq!(value(&of_ad, "max"), ("auto".into(), Some("47".into())));
        assert_eq!(value(&of_ad, "speckle_range").0, "2");
        let has = |knobs: &[Knob], key| knobs.iter().any(|knob| knob.name.1 == key);
        assert!(has(&of_ad, "ad_window") && !has(&of_ad, "census_weight"));
        let of_census = knobs(&loaded("[matching]\ncost = 'census'\np2_mode = 'fixed'\n"));
        assert!(has(&of_census, "census_window") && !has(&of_census, "p2_slope"));
    }

    /// What the knobs say is what is in effect: asking for it changes nothing.
    #[test]
    fn values_of_knobs_are_values_of_settings() {
        for cost in ["combined", "census", "ad"] {
            let before = loaded(&format!("[matching]\ncost = '{cost}'\np2_slope = 1.5\n"));
            let all = knobs(&before);
            let texts = all.iter().map(|knob| (knob.name.0, knob.name.1, knob.value.as_str()));
            let after = before.with_texts(texts).unwrap();
            assert_eq!(before.differences(&after), []);
        }
    }

    #[test]
    fn the_range_is_locked_by_a_recording() {
        let locked = |text| {
            let all = knobs(&loaded(text));
            all.iter().filter(|knob| knob.locked.is_some()).map(|k| k.name.1).collect::<Vec<_>>()
        };
        assert_eq!(locked(""), [""; 0]);
        assert_eq!(locked("[output]\nrecord = 'a.mkv'\n"), ["min_disparity", "disparities"]);
        assert_eq!(locked("[output]\npreview = 'a.mp4'\n"), [""; 0]);
    }
}
