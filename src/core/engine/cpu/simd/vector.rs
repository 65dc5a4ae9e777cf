//! The operations of a vector, and kernels written with them.

use std::marker::PhantomData;

/// A computation written in [`Vector`]; `run` must be `#[inline(always)]`.
pub trait SimdKernel {
    /// Computes with the vectors `V`.
    ///
    /// # Safety
    /// The machine has the instructions of `V`; and the kernel's own conditions.
    unsafe fn run<V: Vector>(self);
}

/// Number of values of a rectified image per [`Vector::interpolate`].
pub const INTERPOLATED: usize = 16;

/// An image for gather instructions, which read four bytes at offsets of 31 bits.
#[derive(Clone, Copy)]
pub struct Taps<'a> {
    /// First pixel; rows are packed.
    pub(super) pixels: *const u8,
    /// Pixels per row.
    pub(super) stride: u32,
    pub(super) len: u32,
    picture: PhantomData<&'a [u8]>,
}

impl<'a> Taps<'a> {
    /// Largest number of pixels. The offset of the pixel below any of them then fits 32 bits, and clamped to
    /// the last four pixels it fits 31, so that no gather reads outside.
    const LEN_MAX: usize = 1 << 30;

    /// The pixels of an image with rows of `stride`; `None` for fewer than four or over [`Taps::LEN_MAX`].
    pub fn of(picture: &'a [u8], stride: usize) -> Option<Self> {
        let fits = (4..=Self::LEN_MAX).contains(&picture.len()) && stride <= picture.len();
        let (stride, len) = (u32::try_from(stride).ok()?, u32::try_from(picture.len()).ok()?);
        fits.then_some(Self { pixels: picture.as_ptr(), stride, len, picture: PhantomData })
    }
}

/// Returns the place of a byte's lane in a pair of vectors of `lanes` bytes, counted through both vectors.
pub const fn lane_of_pair(lane: usize, lanes: usize) -> usize {
    let (block, within) = (lane / 16, lane % 16);
    within / 8 * (lanes / 2) + block * 8 + within % 8
}

/// A vector of bytes, one lane per candidate disparity; and pairs of vectors of 16-bit sums.
///
/// A *pair* has a lane for each byte, in the order of unpack instructions: of every 16 bytes, the first eight
/// are in the first vector, the others in the second one ([`lane_of_pair`]).
///
/// The constructors are unsafe; all other functions may rely on the instructions, because a vector exists.
pub trait Vector: Copy + 'static {
    /// Number of byte lanes.
    const N: usize;
    /// N / 2 lanes of 16 bits, signed; sums are never negative.
    type Wide: Copy;

    /// Runs a kernel with the instruction set enabled.
    ///
    /// # Safety
    /// The machine has the instructions; and the kernel's own conditions.
    unsafe fn vectorize<K: SimdKernel>(kernel: K);

    /// N bytes from memory of any alignment.
    ///
    /// # Safety
    /// The machine has the instructions, and N bytes are readable.
    unsafe fn load(from: *const u8) -> Self;
    /// Quarters of a vector, of N / 4 bytes each, from four places.
    ///
    /// # Safety
    /// The machine has the instructions, and N / 4 bytes are readable at each place.
    unsafe fn load_quarters(from: [*const u8; 4]) -> Self;
    /// The same byte in every lane.
    ///
    /// # Safety
    /// The machine has the instructions.
    unsafe fn splat(value: u8) -> Self;
    /// N bytes to memory of any alignment.
    ///
    /// # Safety
    /// N bytes are writable.
    unsafe fn store(self, to: *mut u8);

    /// The smaller value, lane by lane.
    fn min(self, other: Self) -> Self;
    /// Saturating sum.
    fn adds(self, other: Self) -> Self;
    /// Difference, modulo 256.
    fn sub(self, other: Self) -> Self;
    /// Saturating difference.
    fn subs(self, other: Self) -> Self;
    /// Bitwise or.
    fn or(self, other: Self) -> Self;
    /// Bitwise exclusive or.
    fn xor(self, other: Self) -> Self;
    fn abs_diff(self, other: Self) -> Self;
    /// `bits` in lanes smaller than those of `other`, else 0.
    fn where_less(self, other: Self, bits: Self) -> Self;
    /// The highest bit of every lane; lane i gives bit i.
    fn highest_bits(self) -> u64;
    /// Number of set bits, lane by lane.
    fn count_ones(self) -> Self;
    /// The byte of a table, indexed by each lane.
    ///
    /// # Safety
    /// 256 bytes are readable.
    unsafe fn look_up(self, table: *const u8) -> Self;
    /// The parts times their weights, plus 8, divided by 16 and rounded down; a weight is at most
    /// 127 and the result at most 255.
    fn weigh(parts: [Self; 3], weights: [u8; 3]) -> Self;
    /// Lane i takes lane i - 1; lane 0 takes 255.
    fn shift_up(self) -> Self;
    /// Lane i takes lane i + 1; the last lane takes 255.
    fn shift_down(self) -> Self;
    /// The smallest of all lanes, in every lane.
    fn least(self) -> Self;
    /// The smallest byte of `count` consecutive vectors, at least one, in every lane.
    ///
    /// # Safety
    /// As [`Vector::load`], for all of them.
    #[inline(always)]
    unsafe fn least_of(from: *const u8, count: usize) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            let mut least = Self::load(from);
            for i in 1..count {
                least = least.min(Self::load(from.add(i * Self::N)));
            }
            least.least()
        }
    }

    /// `a + scale * b` in 16 bits; `scale` is at most 127.
    fn pair_sum(a: Self, b: Self, scale: i16) -> [Self::Wide; 2];
    /// The bytes, extended to 16 bits.
    fn widen(self) -> [Self::Wide; 2];
    /// 1/512 of each lane of the pair, unsigned and rounded down, which fits a byte.
    fn narrow_512(pair: [Self::Wide; 2]) -> Self;
    /// A pair from N numbers in the order of the bytes.
    fn in_pair(numbers: [Self::Wide; 2]) -> [Self::Wide; 2];

    /// N / 2 values from memory of any alignment.
    ///
    /// # Safety
    /// The machine has the instructions, and N / 2 values are readable.
    unsafe fn load_wide(from: *const i16) -> Self::Wide;
    /// N / 2 values to memory of any alignment.
    ///
    /// # Safety
    /// N / 2 values are writable.
    unsafe fn store_wide(wide: Self::Wide, to: *mut i16);
    /// The same value in every lane.
    ///
    /// # Safety
    /// The machine has the instructions.
    unsafe fn splat_wide(value: i16) -> Self::Wide;
    /// Sum, lane by lane.
    fn add_wide(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    /// Difference, lane by lane.
    fn sub_wide(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    /// The lower 16 bits of the product, lane by lane.
    fn mul_wide(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    /// Bitwise or.
    fn or_wide(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    /// The smaller value, lane by lane.
    fn min_wide(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    /// The larger value, lane by lane.
    fn max_wide(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    /// 1 in equal lanes, else 0.
    fn equal_wide(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    /// `yes` in lanes with equal `a` and `b`, else `no`.
    fn select_equal(a: Self::Wide, b: Self::Wide, yes: Self::Wide, no: Self::Wide) -> Self::Wide;
    /// The smallest of all lanes.
    fn least_wide(a: Self::Wide) -> i16;
    /// The last lane.
    fn last_wide(a: Self::Wide) -> i16;
    /// The first byte's lane, from 0 to N - 1, with `value` in the pair; N without one.
    fn first_equal(pair: [Self::Wide; 2], value: i16) -> usize;
    /// The pair shifted up by one byte lane; lane 0 takes `entering`, which has one value in all lanes.
    fn shift_pair_up(pair: [Self::Wide; 2], entering: Self::Wide) -> [Self::Wide; 2];
    /// (sum, index) in lanes where `sum` is strictly smaller than `best_sum`, the best ones elsewhere.
    fn keep_smaller(
        best: (Self::Wide, Self::Wide),
        candidate: (Self::Wide, Self::Wide),
    ) -> (Self::Wide, Self::Wide);

    /// [`INTERPOLATED`] values at the positions of a map (`rectify/map.rs`).
    ///
    /// # Safety
    /// The machine has the instructions; [`INTERPOLATED`] offsets and weights are readable and as many values
    /// writable; every offset lies in the image or marks an unseen pixel.
    unsafe fn interpolate(taps: Taps<'_>, offsets: *const u32, weights: *const u16, to: *mut u8);
}

/// Writes the operations of bytes, and those of 16-bit lanes, that are one instruction each.
macro_rules! lane_by_lane {
    ($($name:ident: $instruction:ident),*; $($wide:ident: $wide_instruction:ident),*) => {
        $(#[inline(always)]
        fn $name(self, other: Self) -> Self {
            unsafe { Self($instruction(self.0, other.0)) }
        })*
        $(#[inline(always)]
        fn $wide(a: Self::Wide, b: Self::Wide) -> Self::Wide {
            unsafe { $wide_instruction(a, b) }
        })*
    };
}
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) use lane_by_lane;

/// Combines the lanes of two vectors.
#[inline(always)]
pub(super) fn zip<T: Copy, const N: usize>(
    mut a: [T; N],
    b: [T; N],
    f: impl Fn(T, T) -> T,
) -> [T; N] {
    for i in 0..N {
        a[i] = f(a[i], b[i]);
    }
    a
}
