//! Settings that change during a run.

use std::path::Path;

use toml::Value;

use super::*;

fn loaded(text: &str) -> Loaded {
    let mut layers = Layers::new();
    layers.file_text(Path::new("rig.toml"), text);
    layers.finish().unwrap()
}

#[test]
fn auto_follows_a_cost_that_is_changed_later() {
    let before = loaded("[matching]\np2 = 90\n");
    let after = before.with_texts([("matching", "cost", "ad")]).unwrap();
    assert_eq!((before.params.p1, before.params.p2), (32, 90));
    assert_eq!((after.params.p1, after.params.p2), (12, 90));
    assert_eq!(after.origin("matching", "cost").to_string(), "a change while running");
    assert_eq!(after.origin("matching", "p1").to_string(), "default for ad");
    assert_eq!(after.given("matching", "p1"), &Value::from("auto"));
    let back = after.with_texts([("matching", "p2", "auto")]).unwrap();
    assert_eq!(back.settings.matching.p2, 80);
}

#[test]
fn a_preset_chosen_later_takes_back_what_was_tuned_of_it() {
    let before = loaded("[matching]\np1 = 9\n");
    let changes = [("matching", "fill", "row"), ("matching", "uniqueness", "9")];
    let tuned = before.with_texts(changes).unwrap();
    let dense = tuned.with_texts([("matching", "preset", "dense")]).unwrap();
    assert_eq!(dense.given("matching", "fill"), &Value::from("rays"));
    assert_eq!(dense.origin("matching", "fill").to_string(), "preset dense");
    // Values that no preset sets stay.
    assert_eq!((dense.params.p1, dense.params.uniqueness), (9, 9));
    let accurate = dense.with_texts([("matching", "preset", "accurate")]).unwrap();
    assert_eq!(accurate.given("matching", "fill"), &Value::from("off"));
    assert!(accurate.params.confidence.is_some());
    // A file states the preset, not its values.
    let text = to_file(&accurate);
    assert_eq!(text, "\n[matching]\npreset = \"accurate\"\np1 = 9\nuniqueness = 9\n");
    assert_eq!(loaded(&text).params, accurate.params);
    let back = accurate.with_texts([("matching", "preset", "balanced")]).unwrap();
    assert_eq!(back.differences(&before), [("matching".to_owned(), "uniqueness".to_owned())]);
}

#[test]
fn what_does_not_fit_is_said_as_at_the_start() {
    let before = loaded("");
    let error = before.with_texts([("matching", "p1", "300")]).unwrap_err().to_string();
    assert!(error.contains("wrong value 300 for `p1` in [matching]: expected `auto` or"));
    let error = before.with_texts([("matching", "p1", "200")]).unwrap_err().to_string();
    assert!(error.contains("matching.p1: a change while running"), "{error}");
}

#[test]
fn chosen_disparities_stay_chosen_while_auto_is_said() {
    let before = loaded("[matching]\ndisparities = 'auto'\n");
    assert!(before.awaits_choice());
    assert_eq!(before.params.range.count, 64, "the default stands in");
    assert!(to_toml(&before, false).contains("\ndisparities = \"auto\"\n"));
    let chosen = before.with_chosen(112).unwrap();
    assert!(!chosen.awaits_choice());
    assert_eq!(chosen.settings.matching.disparities, Some(112));
    let origin = chosen.origin("matching", "disparities").to_string();
    assert_eq!(origin, "chosen from the pictures (rig.toml:2)");
    assert_eq!(chosen.given("matching", "disparities"), &Value::from("auto"));
    assert_eq!(chosen.differences(&before), []);
    let tuned = chosen.with_texts([("matching", "p1", "9")]).unwrap();
    assert_eq!((tuned.params.range.count, tuned.params.p1), (112, 9));
    let given = tuned.with_texts([("matching", "disparities", "48")]).unwrap();
    assert_eq!(given.params.range.count, 48);
    let back = given.with_texts([("matching", "disparities", "auto")]).unwrap();
    assert_eq!(back.params.range.count, 112);
}

#[test]
fn differences_are_those_of_meaning() {
    let before = loaded("[demo]\nrate = 30\n[matching]\np1 = 9\n");
    let after = loaded("[matching]\np1 = 10\n[log]\nfilter = 'warn'\n");
    let keys = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(s, k)| ((*s).to_owned(), (*k).to_owned())).collect()
    };
    assert_eq!(before.differences(&after), keys(&[("log", "filter"), ("matching", "p1")]));
    let merged = before.with_those_of(&after, &keys(&[("matching", "p1")])).unwrap();
    assert_eq!((merged.params.p1, &*merged.settings.log.filter), (10, "info"));
    assert_eq!(merged.origin("matching", "p1").to_string(), "rig.toml:2");
}

#[test]
fn the_written_file_gives_the_same_settings() {
    let mut layers = Layers::new();
    let file = "[source]\nleft = 'l \"1\".mkv'\nright = 'r.mkv'\n[matching]\np1 = 9\n";
    layers.file_text(Path::new("rig.toml"), file);
    layers.assignment("matching.paths=4");
    layers.assignment("output.record=not-again.mkv");
    let before = layers.finish().unwrap();
    let tuned = before
        .with_texts([
            ("matching", "p1", "auto"),
            ("matching", "speckle_range", "3.5"),
            ("matching", "left_right", "off"),
            ("colour", "map", "grey"),
        ])
        .unwrap();
    let text = to_file(&tuned);
    assert_eq!(
        text,
        "\n[source]\nleft = 'l \"1\".mkv'\nright = \"r.mkv\"\n\n[matching]\npaths = 4\n\
         left_right = \"off\"\nspeckle_range = 3.5\n\n[colour]\nmap = \"grey\"\n"
    );
    let again = loaded(&text);
    assert_eq!(again.settings.matching, tuned.settings.matching);
    assert_eq!(again.settings.colour, tuned.settings.colour);
    assert_eq!(again.settings.source, tuned.settings.source);
    assert_eq!(again.settings.output, Settings::default().output);
}
