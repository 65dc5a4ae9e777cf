//! Pairs that a network guides, for engines that run it themselves.

use stereod_core::engine::HalvedNetwork;
use stereod_core::frame::{Image, StereoPair};
use stereod_core::matching::learned::prior_map;
use stereod_core::matching::pyramid::half;
use stereod_core::{DisparityMap, Median, Params, Prior, Window};

use super::parity::usual;

/// Gives a pair the prior map that the definition of the network predicts.
pub fn guided(network: &HalvedNetwork, params: &Params, pair: StereoPair) -> StereoPair {
    let halved = |image: &Image| (0..network.halvings).fold(image.copy(), |image, _| half(&image));
    let mut predicted = network.network.run(&halved(&pair.left), &halved(&pair.right));
    predicted.step = network.step();
    let size = (pair.left.width().div_ceil(2), pair.left.height().div_ceil(2));
    let map = DisparityMap::of_values(size.0, params.range, prior_map(&predicted, size));
    StereoPair { prior: Some(Box::new(map)), ..pair }
}

/// Parameters by which the prior map shows.
pub fn weak() -> Params {
    usual()
        .with_window(Some(Window { side: 5, by_texture: true }))
        .with_prior(Some(Prior { levels: 1, strength: 32 }))
        .with_prior_map(true)
        .with_uniqueness(0)
        .with_left_right(None)
        .with_median(Median::Off)
}
