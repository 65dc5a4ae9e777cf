use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use proptest::prelude::*;

use super::*;
use crate::source::pairing::PairBy;
use stereod_core::frame::Image;

const PERIOD: u64 = 50;

/// A message: its view, its stamp in ms, and the number of its image.
type Sent = (Eye, u64, u8);

fn unordered(begin: u64) -> Unordered {
    let period = Some(Duration::from_millis(PERIOD));
    let pairing = Pairing {
        by: PairBy::Time,
        left_period: period,
        right_period: period,
        ..Pairing::default()
    };
    Unordered::new(pairing, Unordered::REACH, Duration::from_millis(begin))
}

/// Returns the numbers of the images of each pair, and the pairer at the end.
fn run(messages: &[Sent]) -> (Vec<[u8; 2]>, Unordered) {
    let begin = messages.iter().map(|(_, stamp, _)| *stamp).min().unwrap_or_default();
    let mut pairer = unordered(begin);
    let mut pairs = Vec::new();
    let mut numbers = [0; 2];
    for &(eye, stamp, image) in messages {
        let timestamp = Some(Duration::from_millis(stamp));
        let index = numbers[eye.index()];
        numbers[eye.index()] += 1;
        let frame = EyeFrame {
            image: Image::from_vec(1, 1, vec![image]),
            timestamp,
            index,
            arrived: Instant::now(),
        };
        pairer.push(eye, frame, u64::from(image));
        pairs.extend(std::iter::from_fn(|| pairer.pop()));
        let waiting = pairer.views.iter().map(|view| view.shelf.len()).max().unwrap();
        assert!(waiting <= 2 * Unordered::REACH + 1 && pairer.ready.len() <= Unordered::REACH + 1);
    }
    Eye::BOTH.into_iter().for_each(|eye| pairer.finish(eye));
    pairs.extend(std::iter::from_fn(|| pairer.pop()));
    for eye in Eye::BOTH {
        let counted = pairer.pairer().pairs() + pairer.pairer().unpaired(eye);
        assert_eq!(counted, numbers[eye.index()], "{eye}");
    }
    let image = |image: &Image| image.pixels()[0];
    (pairs.iter().map(|pair| [image(&pair.left), image(&pair.right)]).collect(), pairer)
}

/// Both views of images in this order, with these stamps; the right one comes `late` messages later.
fn both(stamps: &[u64], late: usize) -> Vec<Sent> {
    let mut messages = Vec::new();
    for i in 0..stamps.len() + late {
        messages.extend(stamps.get(i).map(|&stamp| (Eye::Left, stamp, i as u8)));
        let right = i.checked_sub(late).and_then(|i| Some((Eye::Right, *stamps.get(i)?, i as u8)));
        messages.extend(right);
    }
    messages
}

fn same(images: impl IntoIterator<Item = u8>) -> Vec<[u8; 2]> {
    images.into_iter().map(|image| [image; 2]).collect()
}

fn steady(frames: std::ops::Range<u64>) -> Vec<u64> {
    frames.map(|frame| 1000 + frame * PERIOD).collect()
}

#[test]
fn disorder_costs_no_pair_and_is_put_in_order() {
    let mut swapped = steady(0..12);
    swapped.swap(4, 5);
    let mut mixed = steady(0..50);
    mixed.chunks_mut(5).for_each(|five| five.rotate_left(3));
    for stamps in [swapped, mixed] {
        for late in [0, 1, 3] {
            let (pairs, pairer) = run(&both(&stamps, late));
            let mut order: Vec<u8> = (0..stamps.len() as u8).collect();
            order.sort_by_key(|&i| stamps[usize::from(i)]);
            assert_eq!(pairs, same(order), "{late} messages late");
            assert_eq!(Eye::BOTH.map(|eye| pairer.pairer().unpaired(eye)), [0, 0]);
        }
    }
    // One view alone.
    let mut right = steady(0..12);
    right.swap(4, 5);
    let left = steady(0..12).into_iter().zip(0..).map(|(stamp, i)| (Eye::Left, stamp, i));
    let right = right.into_iter().map(|stamp| (Eye::Right, stamp, ((stamp - 1000) / PERIOD) as u8));
    let messages: Vec<_> = left.zip(right).flat_map(|(left, right)| [left, right]).collect();
    assert_eq!(run(&messages).0, same(0..12));
}

#[test]
fn stamps_that_run_backwards_or_begin_again_cost_no_pair() {
    let backwards: Vec<_> = steady(0..100).into_iter().rev().collect();
    let again = [steady(0..60), steady(0..70)].concat();
    let parts = [steady(8..16), steady(0..8), steady(16..24)].concat();
    for stamps in [backwards, again, parts] {
        for late in [0, 1, 5] {
            let (pairs, _) = run(&both(&stamps, late));
            let mut found: Vec<_> = pairs.clone();
            found.sort_unstable();
            assert_eq!(found, same(0..stamps.len() as u8), "{late} messages late: {pairs:?}");
        }
    }
}

#[test]
fn a_pair_is_never_of_two_drives() {
    // The partners of the last frames of the first drive are lost.
    let mut messages = both(&steady(0..40), 0);
    messages.retain(|&(eye, _, image)| eye == Eye::Left || image < 37);
    let second = both(&steady(0..60), 0).into_iter();
    messages.extend(second.map(|(eye, stamp, image)| (eye, stamp, image + 100)));
    let (pairs, pairer) = run(&messages);
    assert_eq!(pairs, same((0..37).chain(100..160)));
    assert_eq!(Eye::BOTH.map(|eye| pairer.alike(eye)), [0, 0]);
}

#[test]
fn copies_are_left_out_and_equal_stamps_pair_in_their_order() {
    let twice: Vec<_> = both(&steady(0..8), 0).into_iter().flat_map(|sent| [sent; 2]).collect();
    let (pairs, pairer) = run(&twice);
    assert_eq!(pairs, same(0..8));
    assert_eq!(Eye::BOTH.map(|eye| (pairer.copies(eye), pairer.alike(eye))), [(8, 0); 2]);
    let (pairs, pairer) = run(&both(&[7; 40], 2));
    assert_eq!(pairs, same(0..40));
    assert_eq!(Eye::BOTH.map(|eye| (pairer.copies(eye), pairer.alike(eye))), [(0, 39); 2]);
}

#[test]
fn a_wrong_stamp_costs_one_image() {
    const HOUR: u64 = 3_600_000;
    for (wrong, apart) in [(HOUR, 0), (HOUR, 15), (0, 0)] {
        for eye in Eye::BOTH {
            let mut messages = both(&steady(0..80), 1);
            for (view, stamp, image) in &mut messages {
                *stamp += HOUR;
                *stamp += if *view == Eye::Right { apart } else { 0 };
                if *view == eye && *image == 10 {
                    *stamp += wrong;
                    *stamp -= HOUR - wrong;
                }
            }
            let (pairs, mut pairer) = run(&messages);
            assert_eq!(pairs, same((0..10).chain(11..80)), "{eye}, {wrong}, {apart}");
            assert_eq!((pairer.mistimed(eye), pairer.mistimed(opposite(eye))), (1, 0));
            let Astray { eye: view, index, ahead_ns, .. } = pairer.take_astray().unwrap();
            assert_eq!((view, index), (eye, 10));
            assert!(ahead_ns.abs_diff(0) > 3_590_000_000_000, "{ahead_ns} ns");
            assert_eq!(pairer.take_astray(), None);
        }
    }
}

#[test]
fn frames_without_an_equal_partner_find_the_nearest() {
    let mut mixed = steady(0..60);
    mixed.chunks_mut(4).for_each(|four| four.reverse());
    for apart in [-24, -20, 7, 20, 24] {
        let messages: Vec<_> = both(&mixed, 1)
            .into_iter()
            .map(|(eye, stamp, image)| match eye {
                Eye::Left => (eye, stamp, image),
                Eye::Right => (eye, stamp.checked_add_signed(apart).unwrap(), image),
            })
            .collect();
        let (mut pairs, _) = run(&messages);
        pairs.sort_unstable();
        assert_eq!(pairs, same(0..60), "{apart} ms");
    }
}

proptest! {
    /// The oracle knows nothing of order: a stamp that both views have is a pair.
    #[test]
    fn all_partners_of_equal_stamps_are_found(
        gaps in prop::collection::vec(1u64..3, 1..120),
        group in 1usize..9,
        shuffle in prop::collection::vec(any::<prop::sample::Index>(), 240),
        lost in prop::collection::btree_set((0usize..120, any::<bool>()), 0..20),
        late in 0usize..6,
        reverse in any::<bool>(),
    ) {
        let mut stamps: Vec<u64> = gaps
            .iter()
            .scan(0, |now, gap| { *now += gap * PERIOD; Some(*now) })
            .collect();
        if reverse {
            stamps.reverse();
        }
        // Each view has an order of its own within groups.
        let mut random = shuffle.iter();
        let mut view = |eye: Eye| -> Vec<Sent> {
            let mut all: Vec<_> = stamps.iter().zip(0..).map(|(&stamp, i)| (eye, stamp, i)).collect();
            for group in all.chunks_mut(group) {
                for at in 0..group.len() {
                    group.swap(at, random.next().unwrap().index(group.len()));
                }
            }
            let is_lost = |i: u8| lost.contains(&(usize::from(i), eye == Eye::Left));
            all.retain(|&(.., i)| !is_lost(i));
            all
        };
        let (left, right) = (view(Eye::Left), view(Eye::Right));
        let of = |view: &[Sent]| view.iter().map(|&(_, stamp, i)| (stamp, i)).collect::<BTreeMap<_, _>>();
        let (by_left, by_right) = (of(&left), of(&right));
        let due: BTreeSet<[u8; 2]> = by_left
            .iter()
            .filter_map(|(stamp, &l)| Some([l, *by_right.get(stamp)?]))
            .collect();
        let mut messages = Vec::new();
        for i in 0..left.len().max(right.len() + late) {
            messages.extend(left.get(i).copied());
            messages.extend(i.checked_sub(late).and_then(|i| right.get(i)).copied());
        }
        let (pairs, _) = run(&messages);
        let found: BTreeSet<[u8; 2]> = pairs.iter().copied().collect();
        prop_assert_eq!(found, due);
        if !reverse {
            prop_assert!(pairs.is_sorted(), "{pairs:?}");
        }
    }

    /// Any stamps: nothing panics, every frame is counted, and no frame is used twice.
    #[test]
    fn any_messages_are_counted(
        messages in prop::collection::vec((any::<bool>(), prop_oneof![0u64..3000, any::<u64>()]), 0..250),
    ) {
        let eye = |is_left| if is_left { Eye::Left } else { Eye::Right };
        let messages: Vec<Sent> = messages
            .into_iter()
            .zip(0..)
            .map(|((is_left, stamp), i)| (eye(is_left), stamp / 2, i))
            .collect();
        let (pairs, _) = run(&messages);
        for eye in 0..2 {
            let used: BTreeSet<u8> = pairs.iter().map(|pair| pair[eye]).collect();
            prop_assert_eq!(used.len(), pairs.len());
        }
    }
}
