//! 16 byte lanes as arrays, with baseline instructions only: compilers vectorise most of the loops (`plain.rs`, and
//! here). For processors without AVX2, among them Intel's Atom and Celeron until 2021, and to compare with.

use super::plain;
use super::vector::{INTERPOLATED, SimdKernel, Taps, Vector, zip};
use crate::rectify::map;

/// 16 bytes.
#[derive(Clone, Copy)]
#[repr(align(16))]
pub struct Portable([u8; 16]);

/// Eight 16-bit lanes.
#[derive(Clone, Copy)]
#[repr(align(16))]
pub struct Wide([i16; 8]);

/// Functions of two vectors of `plain.rs`.
macro_rules! lane_by_lane {
    ($($name:ident),*; $($wide:ident),*) => {
        $(#[inline(always)]
        fn $name(self, other: Self) -> Self {
            Self(plain::$name(self.0, other.0))
        })*
        $(#[inline(always)]
        fn $wide(a: Wide, b: Wide) -> Wide {
            Wide(plain::$wide(a.0, b.0))
        })*
    };
}

impl Vector for Portable {
    const N: usize = 16;
    type Wide = Wide;

    unsafe fn vectorize<K: SimdKernel>(kernel: K) {
        // SAFETY: no instructions beyond the target's; the rest is the caller's promise.
        unsafe { kernel.run::<Portable>() }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: 16 readable bytes are the caller's promise.
        Self(unsafe { from.cast::<[u8; 16]>().read_unaligned() })
    }
    #[inline(always)]
    unsafe fn load_quarters(from: [*const u8; 4]) -> Self {
        // SAFETY: four readable bytes at each place are the caller's promise.
        let quarters = from.map(|from| unsafe { from.cast::<[u8; 4]>().read_unaligned() });
        Self(std::array::from_fn(|lane| quarters[lane / 4][lane % 4]))
    }
    #[inline(always)]
    unsafe fn splat(value: u8) -> Self {
        Self([value; 16])
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: 16 writable bytes are the caller's promise.
        unsafe { to.cast::<[u8; 16]>().write_unaligned(self.0) }
    }

    lane_by_lane! {
        min, adds, sub, subs, or, xor;
        add_wide, sub_wide, mul_wide, or_wide, min_wide, max_wide
    }

    #[inline(always)]
    fn abs_diff(self, other: Self) -> Self {
        self.subs(other).or(other.subs(self))
    }
    #[inline(always)]
    fn where_less(self, other: Self, bits: Self) -> Self {
        let mut chosen = bits;
        for i in 0..16 {
            chosen.0[i] = if self.0[i] < other.0[i] { bits.0[i] } else { 0 };
        }
        chosen
    }
    #[inline(always)]
    fn highest_bits(self) -> u64 {
        let mut bits = 0;
        for i in 0..16 {
            bits |= u64::from(self.0[i] >> 7) << i;
        }
        bits
    }
    #[inline(always)]
    fn count_ones(self) -> Self {
        Self(zip(self.0, self.0, |a, _| a.count_ones() as u8))
    }
    #[inline(always)]
    unsafe fn look_up(self, table: *const u8) -> Self {
        // SAFETY: the caller's promise.
        let table = unsafe { std::slice::from_raw_parts(table, 256) };
        Self(zip(self.0, self.0, |number, _| table[usize::from(number)]))
    }
    #[inline(always)]
    fn weigh([a, b, c]: [Self; 3], weights: [u8; 3]) -> Self {
        let [a_weight, b_weight, c_weight] = weights.map(u16::from);
        let mut sum = a;
        for i in 0..16 {
            let [a, b, c] = [a.0[i], b.0[i], c.0[i]].map(u16::from);
            sum.0[i] = ((a * a_weight + b * b_weight + c * c_weight + 8) >> 4) as u8;
        }
        sum
    }
    #[inline(always)]
    fn shift_up(self) -> Self {
        Self(plain::shift_up(self.0))
    }
    #[inline(always)]
    fn shift_down(self) -> Self {
        Self(plain::shift_down(self.0))
    }
    #[inline(always)]
    fn least(self) -> Self {
        Self(plain::least(self.0))
    }

    #[inline(always)]
    fn pair_sum(a: Self, b: Self, scale: i16) -> [Wide; 2] {
        plain::pair_sum(a.0, b.0, scale).map(Wide)
    }

    #[inline(always)]
    fn widen(self) -> [Wide; 2] {
        [0, 8].map(|first| Wide(std::array::from_fn(|i| i16::from(self.0[first + i]))))
    }
    #[inline(always)]
    fn narrow_512(pair: [Wide; 2]) -> Self {
        Self(std::array::from_fn(|i| (pair[i / 8].0[i % 8] as u16 / 512) as u8))
    }

    #[inline(always)]
    unsafe fn load_wide(from: *const i16) -> Wide {
        // SAFETY: 8 readable values are the caller's promise.
        Wide(unsafe { from.cast::<[i16; 8]>().read_unaligned() })
    }
    #[inline(always)]
    unsafe fn store_wide(wide: Wide, to: *mut i16) {
        // SAFETY: 8 writable values are the caller's promise.
        unsafe { to.cast::<[i16; 8]>().write_unaligned(wide.0) }
    }
    #[inline(always)]
    unsafe fn splat_wide(value: i16) -> Wide {
        Wide([value; 8])
    }
    #[inline(always)]
    fn equal_wide(a: Wide, b: Wide) -> Wide {
        Wide(zip(a.0, b.0, |a, b| i16::from(a == b)))
    }
    #[inline(always)]
    fn select_equal(a: Wide, b: Wide, yes: Wide, mut no: Wide) -> Wide {
        for i in 0..8 {
            no.0[i] = if a.0[i] == b.0[i] { yes.0[i] } else { no.0[i] };
        }
        no
    }
    #[inline(always)]
    fn least_wide(a: Wide) -> i16 {
        plain::least_wide(a.0)
    }
    #[inline(always)]
    fn last_wide(a: Wide) -> i16 {
        a.0[7]
    }
    #[inline(always)]
    fn first_equal(pair: [Wide; 2], value: i16) -> usize {
        plain::first_equal(pair.map(|wide| wide.0), value)
    }
    #[inline(always)]
    fn shift_pair_up([a, b]: [Wide; 2], entering: Wide) -> [Wide; 2] {
        plain::shift_pair_up([a.0, b.0], entering.0).map(Wide)
    }
    #[inline(always)]
    fn in_pair(numbers: [Wide; 2]) -> [Wide; 2] {
        numbers
    }
    #[inline(always)]
    fn keep_smaller(best: (Wide, Wide), candidate: (Wide, Wide)) -> (Wide, Wide) {
        let (sum, number) =
            plain::keep_smaller((best.0.0, best.1.0), (candidate.0.0, candidate.1.0));
        (Wide(sum), Wide(number))
    }

    #[inline(always)]
    unsafe fn interpolate(taps: Taps<'_>, offsets: *const u32, weights: *const u16, to: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe {
            let source = std::slice::from_raw_parts(taps.pixels, taps.len as usize);
            for i in 0..INTERPOLATED {
                let (offset, weights) = (*offsets.add(i), *weights.add(i));
                *to.add(i) = map::interpolate(source, taps.stride as usize, offset, weights);
            }
        }
    }
}
