//! The knobs of the window for settings that can be tuned.

use toml::Value;

use crate::settings::{Loaded, OF_OBSTACLES, rows};
use crate::viewer::{Knob, KnobKind};
use stereod_core::settings::row::{Kind, Offers, Panel, Row};

const GROUPS: [&str; 11] = [
    "Preset",
    "Obstacles",
    "Mount",
    "Range",
    "Cost",
    "Weak texture",
    "Smoothness",
    "Checks",
    "Filters",
    "Earlier images",
    "Colours",
];

/// Returns the knobs for these settings, without those that have no effect with the others.
pub fn knobs(loaded: &Loaded) -> Vec<Knob> {
    let finds = loaded.settings.finds_obstacles();
    let means_something = |&(section, row): &(&str, &Row)| {
        (finds || !OF_OBSTACLES.contains(&section))
            && row.only.is_none_or(|(key, names)| {
                loaded.values()[section][key].as_str().is_some_and(|name| names.contains(&name))
            })
    };
    let panels = rows()
        .filter(means_something)
        .filter_map(|(section, row)| Some((section, row, row.panel?)));
    let mut panels: Vec<_> = panels.collect();
    // Parameters of single costs and modes follow those that always hold.
    panels.sort_by_key(|(_, row, panel)| {
        let group = GROUPS.iter().position(|group| *group == panel.group);
        (group, panel.is_rare, row.only.is_some())
    });
    panels.into_iter().map(|(section, row, panel)| knob(loaded, section, row, panel)).collect()
}

fn knob(loaded: &Loaded, section: &'static str, row: &Row, panel: Panel) -> Knob {
    let (Panel { group, name: label, is_rare }, hint) = (panel, row.help);
    let name = (section, row.key);
    let kind = match (row.offers, row.kind) {
        (Some(Offers::Slider { low, high, step }), _) => {
            let (whole, range) = match row.kind {
                Kind::Whole(_, range) => (true, range.map(|limit| limit as f64)),
                Kind::Real(range) => (false, range),
                _ => (true, [low, high]),
            };
            KnobKind::Number { low, high, step, range, whole, word: row.words.first().copied() }
        }
        (Some(Offers::Choice(names)), _) | (None, Kind::Names(names) | Kind::OneOf(_, names)) => {
            KnobKind::Choice(names)
        }
        _ => KnobKind::Switch,
    };
    let value = plain(loaded.given(section, row.key));
    let means = match name {
        ("colour", "min") => loaded.params.range.min.to_string(),
        ("colour", "max") => loaded.params.range.max().to_string(),
        _ => plain(&loaded.values()[section][row.key]),
    };
    let means = (value == "auto").then_some(means);
    let locked = crate::settings::why_fixed(loaded, section, row.key).map(str::to_owned);
    let is_open = match (row.kind, row.offers) {
        (Kind::Text(_), _) => true,
        // `auto` comes first among the offers.
        (Kind::Whole(_, [low, high]), Some(Offers::Choice(offered))) => {
            (offered.len() - row.words.len()) as i64 != high - low + 1
        }
        _ => false,
    };
    let flag = row.flag.map(|flag| flag.name);
    Knob { name, group, label, is_rare, flag, hint, kind, is_open, value, means, locked }
}

/// Returns a value without quotation marks.
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
    use stereod_core::matching::cost::COSTS;

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

    #[test]
    fn every_key_has_a_knob_below_a_heading() {
        for (section, row) in rows().filter(|row| ["matching", "colour"].contains(&row.0)) {
            // Outputs of the path begin with the run.
            if row.key == "odometry" {
                continue;
            }
            let panel = row.panel.unwrap_or_else(|| panic!("no knob for {section}.{}", row.key));
            assert!(GROUPS.contains(&panel.group), "{section}.{}", row.key);
        }
    }

    /// Headings with nothing but a fold below would hide what they are for, and two knobs of a name could
    /// not be told apart.
    #[test]
    fn a_heading_shows_some_of_its_knobs_and_each_has_a_name() {
        for cost in COSTS {
            let text = format!("[matching]\ncost = '{}'\n[obstacles]\nfind = true\n", cost.name);
            let all = knobs(&loaded(&text));
            for group in GROUPS {
                let own = || all.iter().filter(|knob| knob.group == group);
                assert!(own().any(|knob| !knob.is_rare), "{group}");
                let mut names: Vec<_> = own().map(|knob| knob.label).collect();
                names.sort_unstable();
                assert!(names.windows(2).all(|two| two[0] != two[1]), "{names:?}");
                assert!(own().is_sorted_by_key(|knob| knob.is_rare), "{group}: folded ones last");
            }
        }
    }

    #[test]
    fn auto_shows_what_it_comes_to() {
        let of_ad = knobs(&loaded(
            "[matching]\ncost = 'ad'\np2 = 90\ndisparities = 48\n[colour]\nrange = 'fixed'\n",
        ));
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

    /// Knobs show the values in effect: asking for them changes nothing.
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

    /// They describe the limits of the settings, not those of the sliders.
    #[test]
    fn knobs_know_what_their_settings_take() {
        let mut open = Vec::new();
        for cost in ["combined", "census", "ad"] {
            for knob in knobs(&loaded(&format!("[matching]\ncost = '{cost}'\n"))) {
                let key = knob.name.1;
                let (_, row) =
                    rows().find(|(section, row)| (*section, row.key) == knob.name).unwrap();
                if knob.is_open && !open.contains(&key) {
                    open.push(key);
                }
                let KnobKind::Number { low, high, range: [least, most], whole, .. } = knob.kind
                else {
                    continue;
                };
                assert!(least <= low && high <= most, "{key}");
                let takes = |number: f64| match whole {
                    true => row.check(&Value::Integer(number as i64)).is_ok(),
                    false => row.check(&Value::Float(number)).is_ok(),
                };
                let beyond = [least - 1.0, most + 1.0];
                assert!(takes(least) && takes(most) && !beyond.into_iter().any(takes), "{key}");
            }
        }
        assert_eq!(open, ["block_window", "census_window"]);
    }

    #[test]
    fn obstacles_can_be_tuned_where_they_are_found() {
        let of_obstacles = |text| {
            let loaded = loaded(text);
            let all = knobs(&loaded).into_iter();
            let own = all.filter(|knob| crate::settings::OF_OBSTACLES.contains(&knob.name.0));
            (own.collect::<Vec<_>>(), crate::settings::why_fixed(&loaded, "mount", "z_m"))
        };
        assert_eq!(of_obstacles(""), (Vec::new(), Some("this run finds no obstacles")));
        let (own, why) = of_obstacles("[obstacles]\nfind = true\n");
        let switches = own.iter().filter(|knob| knob.kind == KnobKind::Switch);
        assert_eq!(switches.map(|knob| knob.name.1).collect::<Vec<_>>(), ["overhangs"]);
        assert_eq!((own.len(), why), (15, None));
        assert!(own.iter().all(|knob| GROUPS.contains(&knob.group)));
    }

    #[test]
    fn the_range_is_locked_by_a_recording() {
        let locked = |text| {
            let all = knobs(&loaded(text));
            all.iter().filter(|knob| knob.locked.is_some()).map(|k| k.name.1).collect::<Vec<_>>()
        };
        assert_eq!(locked(""), [""; 0]);
        assert_eq!(locked("[output]\nrecord = 'a.mkv'\n"), ["disparities", "min_disparity"]);
        assert_eq!(locked("[output]\npreview = 'a.mp4'\n"), [""; 0]);
        assert!(
            locked("[output]\nfar_m = 9.0\n[calibration]\nfocal_px = 400.0\nbaseline_m = 0.1\n")
                .contains(&"range")
        );
    }
}
