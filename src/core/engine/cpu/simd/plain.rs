//! The most frequent operations of [`Vector`](super::Vector) on 16 bytes as loops over arrays.

use super::vector::zip;

type Bytes = [u8; 16];
type Numbers = [i16; 8];

macro_rules! lane_by_lane {
    ($array:ty; $($name:ident, $operation:expr;)*) => {$(
        #[inline(always)]
        pub fn $name(a: $array, b: $array) -> $array {
            zip(a, b, $operation)
        }
    )*};
}
lane_by_lane! {
    Bytes;
    min, u8::min;
    adds, u8::saturating_add;
    sub, u8::wrapping_sub;
    subs, u8::saturating_sub;
    or, |a, b| a | b;
    xor, |a, b| a ^ b;
}
lane_by_lane! {
    Numbers;
    add_wide, i16::wrapping_add;
    sub_wide, i16::wrapping_sub;
    mul_wide, i16::wrapping_mul;
    min_wide, i16::min;
    max_wide, i16::max;
    or_wide, |a, b| a | b;
}

#[inline(always)]
pub fn shift_up(a: Bytes) -> Bytes {
    std::array::from_fn(|i| if i == 0 { 255 } else { a[i - 1] })
}

#[inline(always)]
pub fn shift_down(a: Bytes) -> Bytes {
    std::array::from_fn(|i| if i == 15 { 255 } else { a[i + 1] })
}

#[inline(always)]
pub fn least(mut a: Bytes) -> Bytes {
    for step in [8, 4, 2, 1] {
        for i in 0..step {
            a[i] = a[i].min(a[i + step]);
        }
    }
    [a[0]; 16]
}

#[inline(always)]
pub fn pair_sum(a: Bytes, b: Bytes, scale: i16) -> [Numbers; 2] {
    [0, 8].map(|first| {
        std::array::from_fn(|i| i16::from(a[first + i]) + scale * i16::from(b[first + i]))
    })
}

#[inline(always)]
pub fn keep_smaller(best: (Numbers, Numbers), candidate: (Numbers, Numbers)) -> (Numbers, Numbers) {
    let mut kept = best;
    for i in 0..8 {
        let smaller = candidate.0[i] < best.0[i];
        kept.0[i] = if smaller { candidate.0[i] } else { best.0[i] };
        kept.1[i] = if smaller { candidate.1[i] } else { best.1[i] };
    }
    kept
}

#[inline(always)]
pub fn first_equal(pair: [Numbers; 2], value: i16) -> usize {
    let mut equal = 0u32;
    for i in 0..16 {
        equal |= u32::from(pair[i / 8][i % 8] == value) << i;
    }
    (equal | 1 << 16).trailing_zeros() as usize
}

#[inline(always)]
pub fn least_wide(a: Numbers) -> i16 {
    a.into_iter().fold(i16::MAX, i16::min)
}

#[inline(always)]
pub fn shift_pair_up([a, b]: [Numbers; 2], entering: Numbers) -> [Numbers; 2] {
    let moved = |a: Numbers, below: Numbers| -> Numbers {
        std::array::from_fn(|i| if i == 0 { below[7] } else { a[i - 1] })
    };
    [moved(a, entering), moved(b, a)]
}
