//! The operations of a vector, and computations written in them.

use std::marker::PhantomData;

/// A computation written in [`Vector`]; `run` must be `#[inline(always)]`.
pub trait SimdKernel {
    /// Computes with the vectors `V`.
    ///
    /// # Safety
    /// The machine has the instructions of `V`; and what the kernel itself asks for.
    unsafe fn run<V: Vector>(self);
}

/// Values of a rectified image that [`Vector::interpolate`] makes at once.
pub const INTERPOLATED: usize = 16;

/// An image that vector units can gather from: they take four bytes at a time, at offsets of 31
/// bits.
#[derive(Clone, Copy)]
pub struct Taps<'a> {
    /// Its first pixel; rows are packed.
    pub(super) pixels: *const u8,
    /// Pixels of a row.
    pub(super) stride: u32,
    /// Number of its pixels.
    pub(super) len: u32,
    picture: PhantomData<&'a [u8]>,
}

impl<'a> Taps<'a> {
    /// Most pixels. The offset of the pixel below any of them then fits 32 bits, and what is left
    /// of it when it is held to the last four pixels fits 31: no gather goes astray.
    const LEN_MAX: usize = 1 << 30;

    /// The pixels of an image with rows of `stride`; `None` if there are fewer than four, or
    /// more than [`Taps::LEN_MAX`].
    pub fn of(picture: &'a [u8], stride: usize) -> Option<Self> {
        let fits = (4..=Self::LEN_MAX).contains(&picture.len()) && stride <= picture.len();
        let (stride, len) = (u32::try_from(stride).ok()?, u32::try_from(picture.len()).ok()?);
        fits.then_some(Self { pixels: picture.as_ptr(), stride, len, picture: PhantomData })
    }
}

/// Returns the place of a byte's lane in a pair of vectors of `lanes` bytes, the second vector
/// behind the first.
pub const fn lane_of_pair(lane: usize, lanes: usize) -> usize {
    let (block, within) = (lane / 16, lane % 16);
    within / 8 * (lanes / 2) + block * 8 + within % 8
}

/// A vector of bytes, one lane a candidate disparity; and pairs of vectors of 16-bit sums.
///
/// A *pair* has a lane for each byte, in the order in which vector units unpack bytes: of every 16
/// the first eight lie in the first vector, the others in the second ([`lane_of_pair`]).
///
/// The creating functions are unsafe; all others may rely on the machine having the instructions,
/// because a vector exists.
pub trait Vector: Copy + 'static {
    /// Number of byte lanes.
    const N: usize;
    /// N / 2 lanes of 16 bits, signed; sums are never negative.
    type Wide: Copy;

    /// Runs a kernel with the instruction set switched on.
    ///
    /// # Safety
    /// The machine has the instructions; and what the kernel asks for.
    unsafe fn vectorize<K: SimdKernel>(kernel: K);

    /// N bytes from memory of any alignment.
    ///
    /// # Safety
    /// The machine has the instructions, and N bytes are readable.
    unsafe fn load(from: *const u8) -> Self;
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
    /// Sum that stops at 255.
    fn adds(self, other: Self) -> Self;
    /// Difference, modulo 256.
    fn sub(self, other: Self) -> Self;
    /// Difference that stops at 0.
    fn subs(self, other: Self) -> Self;
    /// Bitwise or.
    fn or(self, other: Self) -> Self;
    /// Bitwise exclusive or.
    fn xor(self, other: Self) -> Self;
    /// Absolute difference.
    fn abs_diff(self, other: Self) -> Self;
    /// `bits` where the lane is smaller than that of `other`, elsewhere 0.
    fn where_less(self, other: Self, bits: Self) -> Self;
    /// The highest bit of every lane, that of lane i as bit i.
    fn highest_bits(self) -> u64;
    /// Number of bits that are 1, lane by lane.
    fn count_ones(self) -> Self;
    /// The byte of a table that each lane is the number of.
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
    /// The smallest byte of `count` vectors behind each other, in every lane; at least one.
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
    /// The bytes in 16 bits.
    fn widen(self) -> [Self::Wide; 2];
    /// 1/512 of each lane of the pair, unsigned and rounded down, which fits a byte.
    fn narrow_512(pair: [Self::Wide; 2]) -> Self;
    /// A pair of N numbers that stand in the order of the bytes.
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
    /// 1 where the lanes are equal, elsewhere 0.
    fn equal_wide(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    /// `yes` where the lanes of `a` and `b` are equal, elsewhere `no`.
    fn select_equal(a: Self::Wide, b: Self::Wide, yes: Self::Wide, no: Self::Wide) -> Self::Wide;
    /// The smallest of all lanes.
    fn least_wide(a: Self::Wide) -> i16;
    /// The last lane.
    fn last_wide(a: Self::Wide) -> i16;
    /// The first byte's lane, from 0 to N - 1, for which the pair holds `value`; N where there is
    /// none.
    fn first_equal(pair: [Self::Wide; 2], value: i16) -> usize;
    /// The pair in which byte lane i takes what lane i - 1 has; lane 0 takes what `entering` has in
    /// every lane.
    fn shift_pair_up(pair: [Self::Wide; 2], entering: Self::Wide) -> [Self::Wide; 2];
    /// Returns (sum, index) in lanes whose `sum` is strictly smaller than `best_sum`, and (best_sum,
    /// best_index) in the others.
    fn keep_smaller(
        best: (Self::Wide, Self::Wide),
        candidate: (Self::Wide, Self::Wide),
    ) -> (Self::Wide, Self::Wide);

    /// [`INTERPOLATED`] values at the positions of a map (`calibration/map.rs`).
    ///
    /// # Safety
    /// The machine has the instructions; as many offsets and weights are readable and values
    /// writable; every offset lies in the image or is that of an unseen pixel.
    unsafe fn interpolate(taps: Taps<'_>, offsets: *const u32, weights: *const u16, to: *mut u8);
}
