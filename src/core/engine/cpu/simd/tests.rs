//! Every implementation compared with plain arithmetic.

use super::vector::lane_of_pair;
use super::{SimdChoice, SimdKernel, Taps, Vector};

/// Compares all operations of `V` with their definitions.
struct Check;

impl SimdKernel for Check {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let n = V::N;
        let mut state = 12345u32;
        let mut random = || {
            state = state.wrapping_mul(1664525).wrapping_add(1013904223);
            (state >> 24) as u8
        };
        for _ in 0..200 {
            let a: Vec<u8> = (0..n).map(|_| random()).collect();
            let b: Vec<u8> = (0..n).map(|_| random()).collect();
            let wide: Vec<i16> = (0..n).map(|_| i16::from(random() % 40)).collect();
            let other: Vec<i16> = (0..n).map(|_| i16::from(random() % 40)).collect();
            // SAFETY: the dispatcher found the instructions; every vector has n elements.
            unsafe {
                let (va, vb) = (V::load(a.as_ptr()), V::load(b.as_ptr()));
                let bytes = |v: V| {
                    let mut out = vec![0u8; n];
                    v.store(out.as_mut_ptr());
                    out
                };
                let zip = |f: fn(u8, u8) -> u8| -> Vec<u8> {
                    a.iter().zip(&b).map(|(&a, &b)| f(a, b)).collect()
                };
                assert_eq!(bytes(va.min(vb)), zip(u8::min));
                assert_eq!(bytes(va.adds(vb)), zip(u8::saturating_add));
                assert_eq!(bytes(va.subs(vb)), zip(u8::saturating_sub));
                assert_eq!(bytes(va.sub(vb)), zip(u8::wrapping_sub));
                assert_eq!(bytes(va.or(vb)), zip(|a, b| a | b));
                assert_eq!(bytes(va.xor(vb)), zip(|a, b| a ^ b));
                assert_eq!(bytes(va.abs_diff(vb)), zip(u8::abs_diff));
                let less = zip(|a, b| if a < b { 32 } else { 0 });
                assert_eq!(bytes(va.where_less(vb, V::splat(32))), less);
                assert_eq!(bytes(va.where_less(va, V::splat(32))), vec![0; n]);
                let table: Vec<u8> = (0..256).map(|_| random()).collect();
                let found: Vec<u8> = a.iter().map(|&v| table[usize::from(v)]).collect();
                assert_eq!(bytes(va.look_up(table.as_ptr())), found);
                let highest = a.iter().rev().fold(0, |bits, v| bits << 1 | u64::from(v >> 7));
                assert_eq!(va.highest_bits(), highest);
                assert_eq!(bytes(va.count_ones()), zip(|a, _| a.count_ones() as u8));
                // Parts from 0 to 7 and 127 * 3 * 7 + 8 <= 16 * 255 + 15.
                let eighth = |from: &[u8]| from.iter().map(|&v| v / 32).collect::<Vec<u8>>();
                let parts = [eighth(&a), eighth(&b), a.iter().map(|&v| v % 8).collect()];
                let weights = [random() % 128, random() % 128, random() % 128];
                let weighed = V::weigh(parts.each_ref().map(|p| V::load(p.as_ptr())), weights);
                let expected: Vec<u8> = (0..n)
                    .map(|i| {
                        let sum: u32 =
                            (0..3).map(|p| u32::from(parts[p][i]) * u32::from(weights[p])).sum();
                        ((sum + 8) / 16) as u8
                    })
                    .collect();
                assert_eq!(bytes(weighed), expected);
                assert_eq!(bytes(V::splat(200)), vec![200; n]);
                assert_eq!(bytes(va.shift_up()), [&[255], &a[..n - 1]].concat());
                assert_eq!(bytes(va.shift_down()), [&a[1..], &[255]].concat());
                assert_eq!(bytes(va.least()), vec![*a.iter().min().unwrap(); n]);
                let both = [&a[..], &b[..]].concat();
                for count in [1, 2] {
                    let least = *both[..count * n].iter().min().unwrap();
                    assert_eq!(bytes(V::least_of(both.as_ptr(), count)), vec![least; n]);
                }

                // A whole byte of one part alone.
                let alone = V::weigh([va, V::splat(0), V::splat(0)], [16, 127, 127]);
                assert_eq!(bytes(alone), a);

                let wides = |[low, high]: [V::Wide; 2]| {
                    let mut out = vec![0i16; n];
                    V::store_wide(low, out.as_mut_ptr());
                    V::store_wide(high, out.as_mut_ptr().add(n / 2));
                    out
                };
                let sums: Vec<i16> =
                    a.iter().zip(&b).map(|(&a, &b)| i16::from(a) + 8 * i16::from(b)).collect();
                // Values of a pair, in the order of the bytes.
                let of_pair = |pair: [V::Wide; 2]| {
                    let pair = wides(pair);
                    (0..n).map(|lane| pair[lane_of_pair(lane, n)]).collect::<Vec<i16>>()
                };
                assert_eq!(of_pair(V::pair_sum(va, vb, 8)), sums);

                let pair = |from: &[i16]| {
                    [V::load_wide(from.as_ptr()), V::load_wide(from.as_ptr().add(n / 2))]
                };
                let ([w0, w1], [o0, o1]) = (pair(&wide), pair(&other));
                let least = *wide.iter().min().unwrap();
                assert_eq!(V::least_wide(V::min_wide(w0, w1)), least);
                let first = wide.iter().position(|&v| v == least).unwrap();
                assert_eq!(of_pair(V::in_pair([w0, w1])), wide);
                assert_eq!(V::first_equal(V::in_pair([w0, w1]), least), first);
                assert_eq!(V::first_equal([w0, w1], 99), n);
                assert_eq!([w0, w1].map(V::last_wide), [wide[n / 2 - 1], wide[n - 1]]);
                let shifted = V::shift_pair_up(V::in_pair([w0, w1]), V::splat_wide(77));
                assert_eq!(of_pair(shifted), [&[77], &wide[..n - 1]].concat());
                let added: Vec<i16> = wide.iter().zip(&other).map(|(a, b)| a + b).collect();
                assert_eq!(wides([V::add_wide(w0, o0), V::add_wide(w1, o1)]), added);
                let taken: Vec<i16> = wide.iter().zip(&other).map(|(a, b)| a - b).collect();
                assert_eq!(wides([V::sub_wide(w0, o0), V::sub_wide(w1, o1)]), taken);
                let times: Vec<i16> =
                    sums.iter().zip(&wide).map(|(a, b)| a.wrapping_mul(*b)).collect();
                let [s0, s1] = pair(&sums);
                let products = [V::mul_wide(s0, w0), V::mul_wide(s1, w1)];
                assert_eq!(wides(products), times);
                assert_eq!(of_pair(va.widen()), a.iter().map(|&v| v.into()).collect::<Vec<i16>>());
                let narrowed: Vec<u8> = times.iter().map(|&v| (v as u16 / 512) as u8).collect();
                assert_eq!(bytes(V::narrow_512(V::in_pair(products))), narrowed);
                let ored: Vec<i16> = wide.iter().zip(&other).map(|(a, b)| a | b).collect();
                assert_eq!(wides([V::or_wide(w0, o0), V::or_wide(w1, o1)]), ored);

                let larger: Vec<i16> = wide.iter().zip(&other).map(|(&a, &b)| a.max(b)).collect();
                assert_eq!(wides([V::max_wide(w0, o0), V::max_wide(w1, o1)]), larger);
                let equal: Vec<i16> =
                    wide.iter().zip(&other).map(|(a, b)| i16::from(a == b)).collect();
                assert_eq!(wides([V::equal_wide(w0, o0), V::equal_wide(w1, o1)]), equal);
                let (seven, nine) = (V::splat_wide(7), V::splat_wide(9));
                let selected =
                    [(w0, o0), (w1, o1)].map(|(w, o)| V::select_equal(w, o, seven, nine));
                let chosen: Vec<i16> = equal.iter().map(|&e| 9 - 2 * e).collect();
                assert_eq!(wides(selected), chosen);

                let (one, two) = (V::splat_wide(1), V::splat_wide(2));
                let kept = V::keep_smaller((w0, one), (o0, two));
                let expected: Vec<i16> = (0..n / 2).map(|i| wide[i].min(other[i])).collect();
                assert_eq!(wides([kept.0, one])[..n / 2], expected);
                let expected: Vec<i16> =
                    (0..n / 2).map(|i| if other[i] < wide[i] { 2 } else { 1 }).collect();
                assert_eq!(wides([kept.1, one])[..n / 2], expected);
            }
        }
    }
}

#[test]
fn every_operation_is_what_its_name_says() {
    for choice in SimdChoice::available() {
        // SAFETY: the choice is available.
        unsafe {
            choice.resolve().unwrap().vectorize(Check);
        }
    }
}

#[test]
fn only_pictures_that_offsets_can_address_are_gathered_from() {
    // Zeroed memory that is never accessed.
    let large = vec![0u8; (1 << 30) + 1];
    assert!(Taps::of(&large, 1 << 15).is_none());
    assert!(Taps::of(&large[..1 << 30], 1 << 15).is_some());
    assert!(Taps::of(&large[..3], 1).is_none());
    assert!(Taps::of(&large[..4], 4).is_some());
    assert!(Taps::of(&large[..4], 5).is_none());
}
