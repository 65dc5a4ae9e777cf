//! The table of settings, with the sections of the program.

use toml::Value;

use super::*;

fn misfit(section: &str, key: &str, value: impl Into<Value>) -> String {
    schema::check_value::<Settings>(section, key, value.into()).unwrap_err()
}

#[test]
fn unknown_names_get_the_nearest_and_all() {
    assert_eq!(
        schema::check_section::<Settings>("matchng").unwrap_err(),
        "unknown section [matchng]; did you mean [matching]? sections: alignment, \
         calibration, camera, colour, demo, engine, log, map, matching, metrics, mount, obstacles, output, queue, ros2, \
         serve, source, window"
    );
    let key = schema::check_key::<Settings>("matching", "disparites").err().unwrap();
    assert!(key.starts_with(
        "unknown key `disparites` in [matching]; did you mean `disparities`? keys: ad_truncation, "
    ));
    let other = schema::check_key::<Settings>("engine", "median").err().unwrap();
    assert!(
        other.contains("in [engine]; did you mean [matching]? keys: check, cores, "),
        "{other}"
    );
    let flag = schema::check_key::<Settings>("source", "frames").err().unwrap();
    assert!(flag.contains("by the flag `--frames` only; `start_s`"), "{flag}");
    let strange = schema::check_key::<Settings>("log", "resolution").err().unwrap();
    assert_eq!(strange, "unknown key `resolution` in [log]; keys: filter, format, time");
}

#[test]
fn wrong_values_get_what_is_right() {
    assert_eq!(
        misfit("matching", "p1", 300),
        "wrong value 300 for `p1` in [matching]: expected `auto` or a whole number from 0 to 255"
    );
    for (section, key, value, expected) in [
        ("matching", "p1", Value::from("7"), "`auto` or a whole number from 0 to 255"),
        ("matching", "p1", Value::from(-1), "`auto` or a whole number from 0 to 255"),
        ("matching", "p1", Value::from(7.5), "`auto` or a whole number from 0 to 255"),
        ("matching", "census_weight", Value::from("7"), "a whole number from 0 to 127"),
        ("matching", "steady", Value::from("x"), "`off` or a whole number from 1 to 60"),
        ("matching", "census_weight", Value::from(128), "a number from 0 to 127"),
        ("matching", "census_window", Value::from(5), "a text in quotation marks"),
        (
            "matching",
            "census_window",
            Value::from("9x9"),
            "`9x7-symmetric`, or an odd width and height such as `5x5` with at most 65 pixels",
        ),
        (
            "matching",
            "speckle_size",
            Value::from(-1),
            "`auto` or a whole number from 0 to 4294967295",
        ),
        ("matching", "median", Value::from(4), "0, 3 or 5"),
        ("matching", "disparities", Value::from(0), "`auto` or a number from 1 to 1024"),
        ("matching", "disparities", Value::from(-4), "`auto` or a whole number, 0 or more"),
        ("matching", "min_disparity", Value::from("x"), "a whole number"),
        ("matching", "min_disparity", Value::from(i64::MAX), "a whole number"),
        ("matching", "paths", Value::from(6), "0, 4, 5, 8 or 16"),
        ("matching", "left_right", Value::from("none"), "`off` or a whole number from 0 to 65535"),
        ("matching", "p2_slope", Value::from(f64::NAN), "a number from 0 to 255"),
        ("matching", "p2_slope", Value::from(true), "`auto` or a number"),
        ("matching", "speckle_range", Value::from(true), "a number"),
        (
            "matching",
            "subpixel",
            Value::from(1),
            "one of `off`, `parabola`, `equiangular`, `corrected`",
        ),
        ("output", "depth", Value::from(1), "true or false"),
        ("matching", "p2_guide", Value::from("x"), "`smoothed` or `picture`"),
        ("source", "tolerance_ms", Value::from("half"), "`auto` or a number"),
        ("source", "tolerance_ms", Value::from(f64::NAN), "`auto` or milliseconds from 0 to 60000"),
        ("output", "record", Value::from(1), "a text in quotation marks"),
        (
            "engine",
            "simd",
            Value::from(Vec::<Value>::new()),
            "one of `auto`, `avx512`, `avx2`, `neon`, `portable`",
        ),
    ] {
        let message = misfit(section, key, value.clone());
        assert!(message.ends_with(&format!("expected {expected}")), "{key} = {value}: {message}");
    }
    for window in ["census_window", "block_window"] {
        let message = misfit("matching", window, "zzz");
        assert_eq!(message.matches("expected").count(), 1, "{message}");
    }
    assert_eq!(
        misfit("engine", "kind", "cude"),
        "wrong value \"cude\" for `kind` in [engine]: expected `auto`, `cuda`, `wgpu`, `cpu` or `onnx:FILE`; \
         did you mean `cuda`?"
    );
}

#[test]
fn the_key_decides_what_a_text_means() {
    let value = |section, key, text| schema::value_of_text::<Settings>(section, key, text).unwrap();
    assert_eq!(value("matching", "p1", "7"), Value::from(7));
    assert_eq!(value("output", "record", "7"), Value::from("7"));
    assert_eq!(value("output", "record", "true"), Value::from("true"));
    assert_eq!(value("output", "record", "'a b'"), Value::from("a b"));
    assert_eq!(value("output", "record", "C:\\x = [1"), Value::from("C:\\x = [1"));
    assert_eq!(value("output", "record", ""), Value::from(""));
    assert_eq!(value("matching", "left_right", "off"), Value::from("off"));
    assert_eq!(value("matching", "left_right", "2"), Value::from(2));
    assert_eq!(value("matching", "p1", "auto"), Value::from("auto"));
    assert_eq!(value("matching", "census_window", "5x5"), Value::from("5x5"));
    assert_eq!(value("demo", "rate", "25"), Value::from(25));
    assert_eq!(value("log", "filter", "stereod=debug"), Value::from("stereod=debug"));
    for text in ["", "seven", "7\np2 = 3", "{ a = 1 }", "7 # seven", "300"] {
        let result = schema::value_of_text::<Settings>("matching", "p1", text);
        assert!(result.is_err(), "{text:?}: {result:?}");
    }
}
