//! The shape of a pixel's candidates: the type and number of their vectors.

use std::marker::PhantomData;

use super::simd::{SimdKernel, Vector};

/// A kernel compiled for a number of vectors per pixel.
pub trait ShapedKernel {
    /// Runs with at most `MAX` vectors per pixel, exactly `MAX` if `EXACT`.
    ///
    /// # Safety
    /// As [`Vector::splat`], and the kernel's own conditions.
    unsafe fn run<V: Vector, const MAX: usize, const EXACT: bool>(self);
}

/// A type of vectors and a number of them.
pub trait Shape {
    type V: Vector;

    /// Runs a kernel with such vectors.
    ///
    /// # Safety
    /// The machine has the instructions; and the kernel's own conditions.
    unsafe fn run<K: ShapedKernel>(kernel: K);
}

/// The shape of at most `MAX` vectors `V`, exactly `MAX` if `EXACT`.
pub struct Vectors<V, const MAX: usize, const EXACT: bool>(PhantomData<V>);

impl<V: Vector, const MAX: usize, const EXACT: bool> Shape for Vectors<V, MAX, EXACT> {
    type V = V;

    unsafe fn run<K: ShapedKernel>(kernel: K) {
        // SAFETY: the caller's promise.
        unsafe { V::vectorize(Shaped::<K, MAX, EXACT>(kernel)) }
    }
}

struct Shaped<K, const MAX: usize, const EXACT: bool>(K);

impl<K: ShapedKernel, const MAX: usize, const EXACT: bool> SimdKernel for Shaped<K, MAX, EXACT> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        // SAFETY: the caller's promise.
        unsafe { self.0.run::<V, MAX, EXACT>() }
    }
}
