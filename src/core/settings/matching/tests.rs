use toml::Value;

use super::rows::NAMES;
use super::*;
use crate::settings::test_support::{refused, settings};
use crate::settings::{Layers, Library, schema};

fn of_cost(cost: &str) -> Matching {
    settings(&[&format!("matching.cost={cost}")]).matching
}

#[test]
fn defaults_are_those_of_the_matcher() {
    let params = Matching::default().params().unwrap();
    assert_eq!(params, Params::default());
    assert_eq!(params.range, DisparityRange { min: 0, count: 64 });
    assert_eq!(params.paths, Paths::Four);
    // (24 * 22 + 5 * 19 + 10 * 7 + 8) / 16, and the strength of the prior.
    assert_eq!((params.cost.max(), params.cost_max()), (43, 48));
    assert_eq!(params.window, Some(Window { side: 5, by_texture: true }));
    assert_eq!(params.prior, Some(Prior { levels: 2, strength: 5 }));
    assert_eq!((params.p1, params.p2), (32, 155));
    assert_eq!(params.p2_mode, P2Mode::Linear { min: 25, slope_16: 152 });
    assert_eq!(params.p2_guide, Guide::Smoothed);
    assert_eq!(params.median, Median::Three);
    assert_eq!(params.speckle, Some(Speckle { size: 40, range_16: 32 }));
    assert_eq!((params.left_right, params.confidence), (Some(1), None));
}

#[test]
fn every_cost_has_defaults_of_its_own() {
    let params = of_cost("ad").params().unwrap();
    assert_eq!((params.window, params.prior), (None, None));
    assert_eq!(params.cost, Cost::Ad { truncation: 32, window: 3 });
    assert_eq!((params.p1, params.p2), (12, 80));
    assert_eq!(params.p2_mode, P2Mode::Linear { min: 3, slope_16: 32 });
    assert_eq!((params.median, params.speckle), (Median::Five, None));
    let params = of_cost("census").params().unwrap();
    assert_eq!(params.cost, Cost::Census { window: CensusWindow::Symmetric9x7 });
    for cost in NAMES {
        assert_eq!(of_cost(cost).params().unwrap().cost.name(), cost);
    }
}

/// Without paths nothing supports the cost, unless it was asked for: then the words say what to change.
#[test]
fn without_paths_what_supports_the_cost_is_off_by_itself() {
    let params = |given: &[&str]| settings(given).matching.params();
    let local = params(&["matching.paths=0"]).unwrap();
    assert_eq!((local.paths, local.window, local.prior), (Paths::None, None, None));
    assert_eq!(local.sum_window, BlockWindow { width: 9, height: 9 });
    assert!(params(&["matching.paths=4"]).unwrap().is_supported());
    let ad =
        params(&["matching.paths=0", "matching.cost=ad", "matching.block_window=5x3"]).unwrap();
    assert_eq!(ad.cost, Cost::Ad { truncation: 32, window: 1 });
    assert_eq!(ad.sum_window, BlockWindow { width: 5, height: 3 });
    let block = params(&["matching.cost=zssd", "matching.block_window=11"]).unwrap();
    let window = BlockWindow { width: 11, height: 11 };
    let measure = BlockMeasure::ZeroMeanSsd;
    assert_eq!(block.cost, Cost::Block { measure, window, truncation: 64 });
    assert_eq!(block.paths, Paths::None);
    for (given, named) in [
        (&["matching.paths=0", "matching.prior=2"][..], "`prior`"),
        (&["matching.paths=0", "matching.cost_window=3"], "`cost_window`"),
        (&["matching.cost=sad", "matching.paths=8", "matching.prior=1"], "`prior`"),
        (&["matching.cost=zsad", "matching.block_window=1"], "`block_window`"),
        (&["matching.cost=ssd", "matching.paths=8", "matching.block_truncation=200"], "`block_"),
    ] {
        let mut layers = Layers::<Library>::new();
        given.iter().for_each(|given| layers.assignment(given));
        let error = layers.finish().unwrap_err().to_string();
        assert!(error.contains(named), "{given:?}: {error}");
    }
}

#[test]
fn resolved_says_what_is_computed_and_what_was_given_wins() {
    for cost in NAMES {
        let mut layers = Layers::<Library>::new();
        layers.assignment(&format!("matching.cost={cost}"));
        let loaded = layers.clone().finish().unwrap();
        for (key, value) in loaded.values()["matching"].as_table().unwrap() {
            assert_ne!(*value, Value::from("auto"), "{key}");
            let auto = *loaded.given("matching", key) == Value::from("auto");
            assert_eq!(
                auto,
                schema::row::<Library>("matching", key).unwrap().by_cost.is_some(),
                "{key}"
            );
        }
        for given in [
            "p1=5",
            "p2=51",
            "p2_min=7",
            "p2_slope=0.5",
            "median=0",
            "speckle_size=9",
            "speckle_range=0.75",
        ] {
            layers.assignment(&format!("matching.{given}"));
        }
        let params = layers.finish().unwrap().params;
        assert_eq!((params.p1, params.p2), (5, 51));
        assert_eq!(params.p2_mode, P2Mode::Linear { min: 7, slope_16: 8 });
        assert_eq!(params.median, Median::Off);
        assert_eq!(params.speckle, Some(Speckle { size: 9, range_16: 12 }));
    }
}

#[test]
fn slope_becomes_the_nearest_sixteenth() {
    for (slope, sixteenths) in [(0.0, 0), (0.03, 0), (0.04, 1), (2.6, 42), (255.0, 4080)] {
        let matching = Matching { p2_slope: slope, ..Matching::default() };
        assert!(!refused("matching", "p2_slope", slope));
        let P2Mode::Linear { slope_16, .. } = matching.params().unwrap().p2_mode else {
            panic!("the default mode is linear");
        };
        assert_eq!(slope_16, sixteenths, "{slope}");
    }
}

#[test]
fn every_switch_reaches_the_parameters() {
    let matching = Matching {
        cost: CostKind::Ad,
        p2_mode: P2Kind::Fixed,
        left_right: None,
        median: 0,
        speckle_size: 0,
        subpixel: Subpixel::Off,
        min_confidence: 9,
        uniqueness: 0,
        paths: 5,
        ad_window: 3,
        min_disparity: -9,
        fill: FillKind::Row,
        fill_max: 9,
        ..Matching::default()
    };
    let params = matching.params().unwrap();
    assert_eq!(params.p2_mode, P2Mode::Fixed);
    assert_eq!((params.left_right, params.confidence), (None, Some(23)));
    assert_eq!(params.median, Median::Off);
    assert_eq!(params.speckle, None);
    // Pixels that only their surroundings support have the confidence 1.
    assert_eq!(params.evidence, Some(Evidence { strict: true }));
    let evidence = |evidence, min_confidence| {
        Matching { evidence, min_confidence, ..Matching::default() }.params().unwrap().evidence
    };
    assert_eq!(evidence(EvidenceKind::On, 0), Some(Evidence { strict: false }));
    assert_eq!(evidence(EvidenceKind::Off, 9), None);
    assert_eq!((params.subpixel, params.uniqueness), (Subpixel::Off, 0));
    assert_eq!(params.paths, Paths::Five);
    assert_eq!(params.cost, Cost::Ad { truncation: 32, window: 3 });
    assert_eq!(params.range.min, -9);
    assert_eq!(params.fill, Some(Fill { rule: FillRule::Row, reach: 9 }));

    let window = CensusWindow::Plain { width: 7, height: 3 };
    let census = Matching { census_window: window, ..of_cost("census") };
    assert_eq!(census.params().unwrap().cost, Cost::Census { window });
    let combined = Matching {
        census_weight: 1,
        gradient_weight: 2,
        intensity_weight: 3,
        gradient_truncation: 4,
        intensity_truncation: 5,
        ..Matching::default()
    };
    assert_eq!(
        combined.params().unwrap().cost,
        Cost::Combined(CombinedWeights {
            census_weight: 1,
            gradient_weight: 2,
            intensity_weight: 3,
            gradient_truncation: 4,
            intensity_truncation: 5,
        })
    );
}

#[test]
fn what_no_engine_can_compute_is_refused() {
    let keys = |matching: Matching| {
        let error = matching.params().unwrap_err();
        (error.to_string(), keys_of(&error))
    };
    let (order, named) = keys(Matching { p1: 190, ..Matching::default() });
    assert!(order.contains("`p1`, `p2`"), "{order}");
    assert_eq!(named, ["cost", "p1", "p2"]);
    let (sum, named) = keys(Matching { ad_truncation: 200, ..of_cost("ad") });
    assert!(sum.contains("`p2` or `ad_truncation`"), "{sum}");
    assert_eq!(named, ["cost", "ad_truncation", "p2"]);
    let (sum, named) = keys(Matching { p2: 230, ..of_cost("census") });
    assert!(sum.contains("(31) and P2 (230)") && sum.contains("`census_window`"), "{sum}");
    assert_eq!(named, ["cost", "census_window", "p2"]);
    let (sum, named) = keys(Matching { census_weight: 127, ..Matching::default() });
    assert!(sum.contains("`census_weight`"), "{sum}");
    assert!(named.contains(&"census_weight") && named.contains(&"prior_strength"));
    assert!(Matching { paths: 6, ..Matching::default() }.params().is_err());
    // What the cost does not use is not looked at.
    assert!(Matching { ad_truncation: 200, ..Matching::default() }.params().is_ok());
}

#[test]
fn single_values_are_checked_with_their_key() {
    for (key, value) in [
        ("disparities", 0),
        ("min_disparity", -3000),
        ("ad_window", 2),
        ("census_weight", 128),
        ("gradient_weight", 128),
        ("intensity_weight", 128),
        ("p2_slope", -1),
        ("median", 4),
        ("uniqueness", 100),
    ] {
        assert!(refused("matching", key, value), "{key}");
    }
    assert!(refused("matching", "speckle_range", -0.5));
    assert!(refused("matching", "speckle_range", f64::NAN));
}
