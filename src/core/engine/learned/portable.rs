//! Sums of products that the compiler vectorises with the baseline instructions of the architecture.

use super::convolution::{BLOCK, FOUR, Products, Row, STEP, Sums, Tap, tiles};

struct Portable;

/// Computes a row.
///
/// # Safety
/// As `Instructions::row`.
pub(super) unsafe fn row(row: &Row<'_>) {
    // SAFETY: the caller's promise.
    unsafe {
        match row.blocks {
            1 => tiles::<Portable, 2, 1>(row),
            2 => tiles::<Portable, 2, 2>(row),
            3 => tiles::<Portable, 2, 3>(row),
            _ => tiles::<Portable, 2, 4>(row),
        }
    }
}

impl Products for Portable {
    #[inline(always)]
    unsafe fn sums<const P: usize, const Q: usize>(
        taps: &[Tap],
        x: usize,
        mut weights: *const i8,
        biases: *const i32,
    ) -> [[Sums; Q]; P] {
        // Hidden from the compiler, which would unroll a loop of known length instead of vectorising it.
        let lanes = std::hint::black_box(Q * BLOCK);
        // SAFETY: the caller's promise.
        unsafe {
            let mut sums = [biases.cast::<[Sums; Q]>().read(); P];
            for tap in taps {
                let mut from = tap.first.add(x * tap.pixel);
                for _ in 0..tap.fours {
                    let factors = [0, 1, 2, 3]
                        .map(|k| std::slice::from_raw_parts(weights.add(k * Q * BLOCK), lanes));
                    weights = weights.add(Q * STEP);
                    for (p, sums) in sums.iter_mut().enumerate() {
                        let four = from.add(p * tap.pixel).cast::<[u8; FOUR]>().read();
                        add_products(&mut sums.as_flattened_mut()[..lanes], factors, four);
                    }
                    from = from.add(FOUR);
                }
            }
            sums
        }
    }
}

/// Adds the products of four activations and their weights to the sums. Two products fit in 16 bits, because they
/// are at most 127 * 127.
#[inline(always)]
fn add_products(sums: &mut [i32], factors: [&[i8]; FOUR], four: [u8; FOUR]) {
    let [a, b, c, d] = four.map(i16::from);
    let factors = (factors[0].iter().zip(factors[1])).zip(factors[2].iter().zip(factors[3]));
    for (sum, ((&i, &j), (&k, &l))) in sums.iter_mut().zip(factors) {
        let [i, j, k, l] = [i, j, k, l].map(i16::from);
        *sum += i32::from(a * i + b * j) + i32::from(c * k + d * l);
    }
}
