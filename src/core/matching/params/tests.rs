//! Limits of the parameters, and what follows from one another.

use super::*;
use crate::matching::CensusWindow;

fn with(cost: Cost, p2: u8) -> Result<(), ParamsError> {
    let speckle = Some(Speckle { size: u32::MAX, range_16: u16::MAX });
    let range = DisparityRange { min: 0, count: 16 };
    Params { speckle, ..Params::bare(range, cost, (1, p2)) }.check()
}

fn combined(weights: [u8; 3], truncations: [u8; 2]) -> Cost {
    Cost::Combined(CombinedWeights {
        census_weight: weights[0],
        gradient_weight: weights[1],
        intensity_weight: weights[2],
        gradient_truncation: truncations[0],
        intensity_truncation: truncations[1],
    })
}

#[test]
fn every_cost_has_its_largest_value_and_leaves_the_rest_to_p2() {
    let plain = |width, height| Cost::Census { window: CensusWindow::Plain { width, height } };
    let cases = [
        (Cost::Ad { truncation: 32, window: 3 }, 32),
        (plain(5, 5), 24),
        (plain(13, 5), 64),
        (Cost::Census { window: CensusWindow::Symmetric9x7 }, 31),
        (combined([14, 11, 8], [5, 6]), 27),
        (combined([127, 11, 8], [5, 6]), 197),
        (combined([0, 127, 0], [17, 255]), 135),
    ];
    for (cost, max) in cases {
        assert_eq!(cost.max(), max, "{cost:?}");
        assert_eq!(with(cost, (255 - max) as u8), Ok(()));
        if max > 0 {
            let error = with(cost, (256 - max) as u8).unwrap_err();
            assert!(matches!(error, ParamsError::PathCost { .. }), "{error}");
            let text = error.to_string();
            assert!(text.contains("`p2` or ") && text.contains("add up to 256"), "{text}");
        }
    }
}

/// The settings name the same defaults in another place.
#[test]
fn another_cost_brings_the_parameters_that_suit_it() {
    let of = |settings: &[(&str, &str)]| Params::of_settings(settings.iter().copied()).unwrap();
    for cost in COSTS.iter().map(|info| info.name) {
        let expected = of(&[("cost", cost)]);
        assert_eq!(Params::default().with_cost(expected.cost), expected, "{cost}");
        assert_eq!(expected.clone().with_cost(Params::DEFAULT.cost), Params::default(), "{cost}");
        assert_eq!(expected.check(), Ok(()));
    }
    let census = of(&[("cost", "census")]).cost;
    // A chosen value stays, even if it is the other cost's default, and in any order.
    let chosen = Params::default().with_p1(32).with_median(Median::Off).with_prior(None);
    let expected = of(&[("cost", "census"), ("p1", "32"), ("median", "0")]);
    assert_eq!(chosen.with_cost(census), expected);
    let chosen = of(&[("p1", "32"), ("median", "0"), ("cost_window", "3"), ("p2_slope", "9.5")]);
    let kept = chosen.clone().with_cost(census);
    let of_chosen = (chosen.window, chosen.p1, chosen.median, chosen.p2_mode);
    assert_eq!((kept.window, kept.p1, kept.median, kept.p2_mode), of_chosen);
    assert_eq!((kept.p2, kept.paths, kept.prior), (60, Paths::Eight, None));
    let kept = Params { p2: 90, ..Params::default() }.with_cost(census);
    assert_eq!((kept.p1, kept.p2), (20, 90));
    let bare = |cost| Params::bare(DisparityRange { min: 0, count: 16 }, cost, (12, 80));
    assert_eq!(bare(census).with_cost(Params::DEFAULT.cost), bare(Params::DEFAULT.cost));
}

#[test]
fn surfaces_are_smoothed_within_the_reach() {
    let smooth = |reach| Params::default().with_spatial(Some(Spatial { reach })).check();
    assert_eq!([1, SPATIAL_MAX].map(smooth), [Ok(()), Ok(())]);
    for reach in [0, SPATIAL_MAX + 1] {
        let error = smooth(reach).unwrap_err().to_string();
        assert!(error.contains(&format!("over {reach} px; it must be 1 to 16")), "{error}");
    }
}

#[test]
fn what_is_wrong_with_a_cost_is_said_with_its_flag() {
    let plain = |width, height| Cost::Census { window: CensusWindow::Plain { width, height } };
    for (cost, flag) in [
        (Cost::Ad { truncation: 0, window: 1 }, "`ad_truncation`"),
        (Cost::Ad { truncation: 9, window: 2 }, "`ad_window`"),
        (plain(1, 1), "`census_window`"),
        (plain(0, 9), "`census_window`"),
        (plain(4, 5), "`census_window`"),
        (plain(9, 9), "`census_window`"),
        (plain(255, 255), "`census_window`"),
        (combined([128, 0, 0], [5, 6]), "`census_weight`"),
        (combined([1, 128, 0], [5, 6]), "`gradient_weight`"),
        (combined([1, 0, 255], [5, 6]), "`intensity_weight`"),
        (combined([0, 1, 1], [3, 4]), "`census_weight`"), // (3 + 4 + 8) / 16 = 0.
        (combined([127, 127, 0], [255, 0]), "`gradient_truncation`"),
    ] {
        let error = with(cost, 1).unwrap_err().to_string();
        assert!(error.contains(flag), "{cost:?}: {error}");
    }
}

#[test]
fn coarser_levels_have_half_the_candidates_until_there_are_no_more() {
    let range = |min, count| DisparityRange { min, count };
    let params = Params::bare(range(0, 64), Cost::Ad { truncation: 20, window: 1 }, (1, 2));
    assert_eq!(params.coarser(), None);
    let params = Params {
        window: Some(Window { side: 5, by_texture: true }),
        prior: Some(Prior { levels: 2, strength: 8 }),
        ..params
    };
    let half = params.coarser().unwrap();
    assert_eq!(half.prior, Some(Prior { levels: 1, strength: 8 }));
    assert_eq!(half.window, Some(Window { side: 3, by_texture: true }));
    let quarter = half.coarser().unwrap();
    assert_eq!((quarter.range, quarter.prior), (range(0, 16), None));
    assert_eq!(quarter.check(), Ok(()));
}

#[test]
fn a_range_that_no_pixel_can_have_is_refused() {
    let check = |min, count| {
        let params = Params::default().with_range(DisparityRange { min, count });
        params.check_width(40).map_err(|error| error.to_string())
    };
    for (min, count) in [(39, 64), (-50, 12), (-200, 1024), (0, 1)] {
        assert_eq!(check(min, count), Ok(()), "{min} {count}");
    }
    for (min, count, range) in [(40, 64, "40 to 103"), (-50, 11, "-50 to -40")] {
        let error = check(min, count).unwrap_err();
        assert!(error.contains(range) && error.contains("40 pixels wide"), "{error}");
    }
}

#[test]
fn what_supports_the_cost_has_its_limits() {
    let with = |window, prior, cost, p2| {
        let range = DisparityRange { min: 0, count: 16 };
        Params { window, prior, ..Params::bare(range, cost, (1, p2)) }.check()
    };
    let (side, prior) = (
        |side| Some(Window { side, by_texture: false }),
        |levels, strength| Some(Prior { levels, strength }),
    );
    let ad = |truncation| Cost::Ad { truncation, window: 1 };
    assert_eq!(with(side(5), prior(3, 32), ad(95), 128), Ok(()));
    assert_eq!(with(None, None, ad(200), 55), Ok(()));
    for (result, flag) in [
        (with(side(7), None, ad(9), 1), "`cost_window`"),
        (with(None, prior(4, 1), ad(9), 1), "`prior`"),
        (with(None, prior(1, 33), ad(9), 1), "`prior_strength`"),
        (with(side(3), None, ad(128), 1), "`ad_truncation`"),
        (with(None, prior(1, 32), ad(96), 1), "`prior_strength`"),
        (with(None, prior(1, 32), ad(95), 129), "`p2`"),
    ] {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(flag), "{flag}: {error}");
    }
}
