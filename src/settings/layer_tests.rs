//! The layers, with the sections of the program.

use proptest::prelude::*;

use std::path::Path;

use stereod_core::engine::Choice;
use stereod_core::matching::Cost;
use stereod_core::settings::{FILE_MAX, MISTAKES_MAX, PRESETS, variable};
use toml::Value;

use super::*;

fn with_file(text: &str) -> Layers {
    let mut layers = Layers::new();
    layers.file_text(Path::new("config.toml"), text);
    layers
}

fn with_variables(variables: &[(&str, &str)]) -> Layers {
    let mut layers = Layers::new();
    layers.environment(variables.iter().map(|(name, value)| (name.into(), value.into())));
    layers
}

fn mistakes(layers: Layers) -> Vec<String> {
    layers.finish().unwrap_err().mistakes().to_vec()
}

#[test]
fn true_and_false_stand_for_names_where_a_switch_became_a_choice() {
    for (text, name) in [("true", "corrected"), ("false", "off"), ("\"parabola\"", "parabola")] {
        let mut file = Layers::new();
        file.file_text(Path::new("rig.toml"), &format!("[matching]\nsubpixel = {text}\n"));
        let mut assigned = Layers::new();
        assigned.assignment(&format!("matching.subpixel={text}"));
        for layers in [file, assigned] {
            let loaded = layers.finish().unwrap();
            assert_eq!(loaded.values()["matching"]["subpixel"].as_str(), Some(name));
        }
    }
}

#[test]
fn nothing_said_is_the_defaults() {
    let loaded = Layers::new().finish().unwrap();
    let defaults = Settings::default();
    assert_eq!(loaded.settings, defaults);
    assert_eq!(loaded.params, defaults.matching.params().unwrap());
    assert_eq!(*loaded.origin("matching", "disparities"), Origin::Default);
    assert_eq!(loaded.origin("matching", "p1").to_string(), "default for combined");
}

#[test]
fn the_window_of_ad_follows_the_engine_unless_it_is_given() {
    let window = |assignments: &[&str]| {
        let mut layers = Layers::new();
        assignments.iter().for_each(|assignment| layers.assignment(assignment));
        let loaded = layers.finish().unwrap();
        let Cost::Ad { window, .. } = loaded.params.cost else { panic!("{assignments:?}") };
        assert_eq!(loaded.settings.matching.ad_window, window);
        (window, loaded.origin("matching", "ad_window").to_string())
    };
    let (ad, wgpu) = ("matching.cost=ad", "engine.kind=wgpu");
    assert_eq!(window(&[ad]), (3, "default".into()));
    assert_eq!(window(&[ad, wgpu]), (1, "default for wgpu".into()));
    // The engine refuses it.
    let given = "matching.ad_window=3";
    assert_eq!(window(&[ad, wgpu, given]), (3, format!("--set {given}")));
}

#[test]
fn the_cost_of_any_layer_brings_its_defaults_and_any_layer_overrides_them() {
    let mut layers = with_file("[matching]\ncost = \"census\"\np2 = 90\n");
    layers.assignment("matching.cost=ad");
    layers.flag("matching", "p1", "--p1", Value::from(9));
    let loaded = layers.finish().unwrap();
    let matching = &loaded.settings.matching;
    assert_eq!((matching.p1, matching.p2), (9, 90));
    assert_eq!((matching.p2_min, matching.median), (3, 5));
    assert_eq!(loaded.origin("matching", "p1").to_string(), "--p1");
    assert_eq!(loaded.origin("matching", "p2").to_string(), "config.toml:3");
    assert_eq!(loaded.origin("matching", "p2_min").to_string(), "default for ad");

    // `auto` undoes the value of a lower layer.
    let mut layers = with_file("[matching]\np2 = 90\n");
    layers.environment([("STEREOD_MATCHING_P2".into(), "auto".into())]);
    let loaded = layers.finish().unwrap();
    assert_eq!(loaded.settings.matching.p2, 155);
    assert_eq!(loaded.origin("matching", "p2").to_string(), "STEREOD_MATCHING_P2");
}

#[test]
fn higher_layers_win_and_leave_the_rest() {
    let mut layers = with_file("[matching]\np1 = 1\np2 = 81\nmedian = 0\n\n[demo]\nseed = 5\n");
    layers.environment([("STEREOD_MATCHING_P2".into(), "82".into()), ("HOME".into(), "/".into())]);
    layers.environment([("STEREOD_MATCHING_MEDIAN".into(), "5".into())]);
    layers.assignment("matching.median=0");
    layers.assignment("engine.kind=cpu");
    layers.assignment("matching.left_right = off");
    layers.flag("matching", "median", "--median", Value::from(3));
    let loaded = layers.finish().unwrap();

    let matching = &loaded.settings.matching;
    let given = [matching.p1, matching.p2, matching.median];
    assert_eq!(given, [1, 82, 3]);
    assert_eq!(matching.left_right, None);
    assert_eq!(loaded.settings.demo.seed, 5);
    assert_eq!(loaded.settings.engine.kind, Choice::Cpu);
    assert_eq!((loaded.params.p1, loaded.params.p2), (1, 82));
    let origin = |section, key| loaded.origin(section, key).to_string();
    assert_eq!(origin("matching", "p1"), "config.toml:2");
    assert_eq!(origin("matching", "p2"), "STEREOD_MATCHING_P2");
    assert_eq!(origin("matching", "median"), "--median");
    assert_eq!(origin("engine", "kind"), "--set engine.kind=cpu");
    assert_eq!(origin("demo", "seed"), "config.toml:7");
    assert_eq!(origin("demo", "width"), "default");
}

#[test]
fn every_mistake_of_a_file_has_its_line() {
    let found = mistakes(with_file(
        "# Comment.\n[matching]\ndisparites = 64\np1 = 300\n\n[engin]\nkind = 3\n\n[engine]\n\
         kind = \"gpu\"\nmedian = 3\n[matching.p2]\nx = 1\n",
    ));
    let starts = [
        "config.toml:3: unknown key `disparites` in [matching]; did you mean `disparities`? keys: ",
        "config.toml:4: wrong value 300 for `p1` in [matching]: expected `auto` or a whole number from 0 to 255",
        "config.toml:12: wrong value { x = 1 } for `p2` in [matching]: expected `auto` or a whole number",
        "config.toml:6: unknown section [engin]; did you mean [engine]? sections: ",
        "config.toml:10: wrong value \"gpu\" for `kind` in [engine]: expected `auto`, `cuda`",
        "config.toml:11: unknown key `median` in [engine]; did you mean [matching]? keys: ",
    ];
    assert_eq!(found.len(), starts.len(), "{found:#?}");
    for (mistake, start) in found.iter().zip(starts) {
        assert!(mistake.starts_with(start), "{mistake}");
    }
}

#[test]
fn keys_outside_sections() {
    assert_eq!(
        mistakes(with_file("p1 = 3\nmatching = 4\nspeed = 5")),
        [
            "config.toml:1: the key `p1` belongs below the line [matching]",
            "config.toml:2: `matching` is a section: write [matching] and its keys below",
            "config.toml:3: unknown key `speed` outside a section; sections: alignment, calibration, \
             camera, colour, demo, engine, log, map, matching, metrics, mount, obstacles, output, queue, ros2, \
             serve, source, window",
        ]
    );
    assert_eq!(with_file("matching.p1 = 3").finish().unwrap().params.p1, 3);
    assert!(mistakes(with_file("[[matching]]\np1 = 3"))[0].contains("is a section"));
}

#[test]
fn broken_toml_has_its_line() {
    for (text, line) in [
        ("[matching]\np1 = \n", 2),
        ("[matching]\np1 = 3\np1 = 4\n", 3),
        ("\n\n[matching\np1 = 3\n", 3),
        ("[matching]\np1 = 3\nnonsense\n", 3),
        ("[matching]\ncost = \"ad\n", 2),
    ] {
        let found = mistakes(with_file(text));
        assert!(found[0].starts_with(&format!("config.toml:{line}: ")), "{text:?}: {found:?}");
    }
}

#[test]
fn files_that_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.toml");
    let binary = folder.path().join("binary.toml");
    std::fs::write(&binary, b"[matching]\np1 = 3\n# \xff\n").unwrap();
    for (path, expected) in
        [(missing.as_path(), "missing.toml cannot be read: "), (folder.path(), " cannot be read: ")]
    {
        let mut layers = Layers::new();
        layers.file(path);
        assert!(mistakes(layers)[0].contains(expected));
    }
    let mut layers = Layers::new();
    layers.file(&binary);
    assert!(mistakes(layers)[0].ends_with("binary.toml:3: not UTF-8 text"));
}

#[test]
fn mistakes_in_the_environment_name_the_variable() {
    let found = mistakes(with_variables(&[
        ("STEREOD_MATCHING_P1", "300"),
        ("STEREOD_MATCHING_PI", "7"),
        ("STEREOD_MATCHNG_P1", "7"),
        ("STEREOD_COLOUR", "turbo"),
        ("STEREOD_matching_p2", "7"),
        ("STEREOD_TEST_DATA", "/data"),
        ("PATH", "/bin"),
    ]));
    let starts = [
        "STEREOD_COLOUR: unknown variable;",
        "STEREOD_MATCHING_P1: wrong value 300 for `p1` in [matching]: expected `auto` or a whole number",
        "STEREOD_MATCHING_PI: unknown variable; did you mean STEREOD_MATCHING_P1? keys of [matching]: ",
        "STEREOD_MATCHNG_P1: unknown variable; did you mean STEREOD_MATCHING_P1? variables are named ",
        "STEREOD_matching_p2: unknown variable; did you mean STEREOD_MATCHING_P2? keys of [matching]",
    ];
    assert_eq!(found.len(), starts.len(), "{found:#?}");
    for (mistake, start) in found.iter().zip(starts) {
        assert!(mistake.starts_with(start), "{mistake}");
    }
}

#[test]
fn every_key_has_a_variable_of_its_own() {
    let mut names: Vec<String> =
        schema::all::<Settings>().map(|(section, key)| variable(section, key)).collect();
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn mistakes_in_assignments_name_the_argument() {
    let mut layers = Layers::new();
    for argument in ["matching.p1", "p1=7", "matching.pl=7", "matching.p1=x", "=", "nonsense"] {
        layers.assignment(argument);
    }
    let found = mistakes(layers);
    let parts = [
        "--set matching.p1: expected section.name=value",
        "--set p1=7: expected section.name=value, for example matching.p1=7; did you mean matching.p1?",
        "--set matching.pl=7: unknown key `pl` in [matching]; did you mean `p1`?",
        "--set matching.p1=x: wrong value \"x\" for `p1` in [matching]: expected `auto` or a whole number",
        "--set =: expected section.name=value",
        "--set nonsense: expected section.name=value",
    ];
    assert_eq!(found.len(), parts.len(), "{found:#?}");
    for (mistake, part) in found.iter().zip(parts) {
        assert!(mistake.starts_with(part), "{mistake}");
    }
}

#[test]
fn values_that_do_not_fit_together_say_where_they_were_set() {
    let mut layers = with_file("[matching]\np1 = 50\n");
    layers.flag("matching", "p2", "--p2", Value::from(20));
    let message = layers.finish().unwrap_err().to_string();
    assert_eq!(
        message,
        "P2 is 20 and P1 is 50; P2 must be at least P1 (--p1, --p2) \
         (matching.p1: config.toml:2, matching.p2: --p2)"
    );

    let message = with_file("[colour]\nmin = 9\nmax = 3").finish().unwrap_err().to_string();
    assert_eq!(
        message,
        "config.toml:3: wrong value for `max` in [colour]: expected more than colour.min, which is 9"
    );
}

#[test]
fn several_mistakes_are_listed() {
    let message = with_file("[log]\na = 1\nb = 2").finish().unwrap_err().to_string();
    assert_eq!(
        message,
        "2 mistakes in the settings:\n  config.toml:2: unknown key `a` in [log]; keys: filter, format, \
         time\n  config.toml:3: unknown key `b` in [log]; keys: filter, format, time"
    );
}

#[test]
fn a_file_without_end_is_refused_and_not_all_its_mistakes_are_told() {
    let keys: String = (0..20_000).map(|n| format!("k{n} = 1\n")).collect();
    for (head, line) in [("", "config.toml:1: "), ("[log]\n", "config.toml:2: ")] {
        let told = mistakes(with_file(&format!("{head}{keys}")));
        assert!(told[0].starts_with(line), "{}", told[0]);
        assert_eq!(told.len(), MISTAKES_MAX + 1);
    }
    let told = mistakes(with_file(&"# words\n".repeat(FILE_MAX / 8 + 1)));
    assert_eq!(told.len(), 1);
    assert!(told[0].starts_with("config.toml: too large for a configuration"), "{}", told[0]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_settings_or_mistakes_with_their_place(
        head in prop::sample::select(vec!["", "[matching]\n", "[source]\nleft = ", "[engine]\nsimd = "]),
        text in prop_oneof!["\\PC{0,120}", "([a-z_]{1,12} = (\"[a-z0-9x]{0,6}\"|-?[0-9.e]{1,8})\n){0,4}"],
    ) {
        if let Err(error) = with_file(&format!("{head}{text}")).finish() {
            prop_assert!(!error.mistakes().is_empty());
        }
    }

    #[test]
    fn any_assignment_and_variable_is_a_setting_or_a_mistake(text in "\\PC{0,60}", value in "\\PC{0,20}") {
        let mut layers = Layers::new();
        layers.assignment(&text);
        for (section, key) in schema::all::<Settings>() {
            layers.assignment(&format!("{section}.{key}={value}"));
        }
        let _ = layers.finish();
    }
}

#[test]
fn a_preset_sets_what_nobody_set() {
    for preset in &PRESETS {
        let mut layers = with_file("[matching]\nfill = 'row'\n");
        layers.assignment(&format!("matching.preset={}", preset.name));
        let loaded = layers.finish().unwrap();
        for &(key, value) in preset.values {
            let value = Value::from(value);
            assert_eq!(
                schema::check_value::<Settings>("matching", key, value.clone()),
                Ok(value.clone())
            );
            let (expected, origin) = match key {
                "fill" => ("row".into(), "config.toml:2".into()),
                _ => (value, format!("preset {}", preset.name)),
            };
            assert_eq!(loaded.values()["matching"][key], expected, "{}", preset.name);
            assert_eq!(loaded.origin("matching", key).to_string(), origin);
        }
        assert_eq!(loaded.values()["matching"]["fill"], Value::from("row"));
    }
    // Values that follow the cost still do.
    let mut fast = with_variables(&[("STEREOD_MATCHING_PRESET", "fast")]);
    fast.flag("matching", "cost", "--cost", "census".into());
    let fast = fast.finish().unwrap();
    assert_eq!(fast.origin("matching", "paths").to_string(), "preset fast");
    assert_eq!(fast.origin("matching", "p1").to_string(), "default for census");
    // The library takes the same names.
    let mut library = Layers::new();
    library.parameter("preset", "dense");
    assert!(library.finish().unwrap().params.fill.is_some());
    let refusal = mistakes(with_file("[matching]\npreset = 'quick'\n")).concat();
    assert!(refusal.contains("fast") && refusal.contains("accurate"), "{refusal}");
}

#[test]
fn a_rig_lies_over_the_rest_of_the_file_and_below_the_other_layers() {
    let text = "[matching]\np1 = 1\np2 = 81\n[output]\nrecord = \"out/{rig}.mkv\"\n\n\
                [[rig]]\nname = \"front\"\nmatching.p1 = 2\nmatching.median = 5\n\n\
                [[rig]]\nname = \"rear\"\n[rig.output]\nframe_prefix = \"back_\"\n";
    let of_rig = |name: &str| {
        let mut layers = with_file(text);
        layers.rig(name);
        layers.environment([("STEREOD_MATCHING_MEDIAN".into(), "0".into())]);
        layers.finish().unwrap()
    };
    let front = of_rig("front");
    let Matching { p1, p2, median, .. } = front.settings.matching;
    assert_eq!((p1, p2, median), (2, 81, 0));
    assert_eq!(front.settings.output.record, "out/front.mkv");
    assert_eq!(front.settings.output.frame_prefix, "front_");
    assert_eq!(front.origin("matching", "p1").to_string(), "config.toml:9");
    assert_eq!(front.rigs().collect::<Vec<_>>(), ["front", "rear"]);
    // A change during the run leaves the rig's values.
    let changed = front.with_texts([("matching", "p2", "90")]);
    assert_eq!(changed.unwrap().settings.output.record, "out/front.mkv");
    let rear = of_rig("rear").settings;
    assert_eq!((rear.matching.p1, &*rear.output.frame_prefix), (1, "back_"));
    // Without a rig, none of their values hold.
    let none = with_file(text).finish().unwrap().settings;
    assert_eq!((none.matching.p1, &*none.output.record), (1, "out/{rig}.mkv"));
    assert_eq!(none.output.frame_prefix, "");
}

/// Rigs of one file, whose texts hold their names.
const RIGS: &str = "[ros2]\nnamespace = \"/robot/{rig}\"\n[output]\nrecord = \"{rig}.mkv\"\n\
                    [[rig]]\nname = \"front\"\n[[rig]]\nname = \"2-b\"\n";

#[test]
fn texts_hold_the_name_of_a_rig() {
    let loaded = with_file(RIGS).finish().unwrap();
    assert_eq!((loaded.rigs().collect::<Vec<_>>(), loaded.rig()), (vec!["front", "2-b"], None));
    let mut front = with_file(RIGS);
    front.rig("front");
    let front = front.finish().unwrap();
    assert_eq!(front.settings.ros2.namespace().as_deref(), Some("/robot/front"));
    assert_eq!((&*front.settings.output.record, front.rig()), ("front.mkv", Some("front")));
    // A name that ROS does not take, and none to put in its place.
    let mut second = with_file(RIGS);
    second.rig("2-b");
    let alone = with_file("[ros2]\n\nnamespace = \"/{rig}\"\n");
    let mut assigned = Layers::new();
    assigned.assignment("ros2.namespace=/{rig}");
    for (layers, value, place) in [
        (second, "\"/robot/2-b\"", "config.toml:2: "),
        (alone, "\"/{rig}\"", "config.toml:3: "),
        (assigned, "\"/{rig}\"", "--set ros2.namespace=/{rig}: "),
    ] {
        let expected = format!("{place}wrong value {value} for `namespace` in [ros2]: ");
        let mistakes = mistakes(layers);
        assert!(mistakes.len() == 1 && mistakes[0].starts_with(&expected), "{mistakes:?}");
    }
    // No word is a number, with or without a name.
    let mistakes =
        mistakes(with_file("[serve]\nlisten = \"{rig}\"\n[matching]\ncost = \"{rig}\"\n"));
    assert!(
        mistakes.len() == 2 && mistakes.iter().all(|it| it.contains("\"{rig}\"")),
        "{mistakes:?}"
    );
}

#[test]
fn a_rig_is_not_missed_where_its_file_cannot_be_read() {
    for text in
        ["[[rig]\nname = \"front\"\n", "[[rig]]\nname = \"a/b\"\n", "[matching]\np1 = \"x\"\n"]
    {
        let mut layers = with_file(text);
        layers.rig("front");
        let mistakes = mistakes(layers);
        assert!(mistakes.len() == 1 && !mistakes[0].contains("unknown rig"), "{mistakes:?}");
    }
    let mut layers = with_file("[[rig]]\nname = \"rear\"\n");
    layers.rig("front");
    assert_eq!(mistakes(layers), ["unknown rig `front`; rigs: rear"]);
}
