//! Comparison with the definition.

use std::time::Instant;

use proptest::prelude::*;

use super::device::{Place, Schedule, Work};
use super::*;
use crate::matching::learned::tests::golden_pairs;
use crate::matching::learned::tests::networks::{Dice, random_network, shapes};
use crate::matching::learned::{Cells, prior_map};

#[test]
fn the_own_networks_give_the_same_on_all_instructions() {
    let networks = [Cells::Fine, Cells::Coarse].map(|cells| Network::own(cells, (0, 0)));
    for ([left, right], network) in golden_pairs().into_iter().zip(networks) {
        let (size, expected) = ((left.width(), left.height()), network.run(&left, &right));
        let map = prior_map(&expected, (size.0.div_ceil(2), size.1.div_ceil(2)));
        for instructions in Instructions::available() {
            let mut fast =
                LearnedPrior::with_team(network.clone(), size, Team::new(2).unwrap(), instructions);
            assert_eq!(fast.run(&left, &right), &expected, "{instructions:?}");
            assert_eq!(fast.predict(&left, &right), map, "{instructions:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_networks_give_the_same_as_the_definition(
        shape in shapes(),
        seed: u64,
        size in (1..70usize, 1..50usize),
        threads in 1..4usize,
    ) {
        let dice = &mut Dice(seed);
        let network = random_network(&shape, dice);
        let pairs = [(); 2].map(|()| [dice.image(size), dice.image(size)]);
        let expected = pairs.each_ref().map(|[left, right]| network.run(left, right));
        for instructions in Instructions::available() {
            let mut fast = LearnedPrior::with_team(network.clone(), size, Team::new(threads).unwrap(), instructions);
            // Twice, because memory is used again.
            for ([left, right], expected) in pairs.iter().zip(&expected) {
                prop_assert_eq!(fast.run(left, right), expected, "{:?}", instructions);
            }
        }
    }
}

#[test]
fn values_stay_in_the_memory_of_a_device_until_they_are_read() {
    for images in [(640, 480), (1280, 720)] {
        let network = Network::own(Cells::Auto, images);
        let schedule = Schedule::new(&network, images);
        let room = |place: &Place| place.offset..place.offset + place.views * place.view_bytes();
        let mut stored: Vec<usize> = (0..network.values.len()).collect();
        let mut kept = vec![(0, room(&schedule.planes))];
        let (mut steps, mut apart) = (schedule.steps.iter(), kept[0].1.len());
        for layer in network.view.iter().chain(&network.pair) {
            if matches!(layer.operation, Operation::Double) {
                stored[layer.output] = stored[layer.inputs[0]];
                continue;
            }
            let step = steps.next().unwrap();
            let written = room(&step.output);
            apart += written.len();
            kept.retain(|(_, other)| other.end <= written.start || written.end <= other.start);
            let mut read: Vec<_> = layer.inputs.iter().copied().zip(&step.inputs).collect();
            if let (Operation::Convolution(layer), Work::Convolution(convolution)) =
                (&layer.operation, &step.work)
            {
                read.extend(layer.add.zip(convolution.add.as_ref()));
            }
            for (value, place) in read {
                assert!(kept.contains(&(stored[value], room(place))), "{value} at {place:?}");
            }
            kept.push((layer.output, written));
        }
        assert!(kept.contains(&(network.head, room(&schedule.head))));
        assert!(2 * schedule.bytes < apart, "{} of {apart} bytes", schedule.bytes);
    }
}

/// Prints the times of a network at 1280x720, and those of its layers: of the file `STEREOD_PRIOR`, or the own one.
#[test]
#[ignore = "prints times, on an idle machine"]
fn times() {
    let dice = &mut Dice(1);
    let (left, right) = (dice.image((1280, 720)), dice.image((1280, 720)));
    let read = |file| Network::read(&std::fs::read(file).unwrap()).unwrap();
    let network =
        std::env::var_os("STEREOD_PRIOR").map_or_else(|| Network::own(Cells::Coarse, (0, 0)), read);
    for threads in [1, 2] {
        for instructions in Instructions::available() {
            let mut fast = LearnedPrior::with_team(
                network.clone(),
                (1280, 720),
                Team::new(threads).unwrap(),
                instructions,
            );
            let time = |fast: &mut LearnedPrior| {
                let start = Instant::now();
                fast.predict(&left, &right);
                start.elapsed().as_secs_f64() * 1e3
            };
            let mut times: Vec<f64> = (0..15).map(|_| time(&mut fast)).collect();
            times.sort_by(f64::total_cmp);
            println!(
                "{threads} threads, {instructions:?}: {:.1} ms, at best {:.1}",
                times[7], times[0]
            );
            let network = Arc::clone(&fast.network);
            let mut parts = Vec::new();
            for layer in network.view.iter().chain(&network.pair) {
                let mut of_layer = || {
                    let start = Instant::now();
                    fast.run_layer(layer);
                    start.elapsed().as_secs_f64() * 1e3
                };
                let best = (0..5).map(|_| of_layer()).fold(f64::MAX, f64::min);
                parts.push(format!("{best:.2}"));
            }
            println!("  layers: {}", parts.join(" "));
        }
    }
}
