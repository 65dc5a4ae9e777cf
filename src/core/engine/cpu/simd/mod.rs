//! Vector operations for the kernels, and their implementations.
//!
//! A kernel is a [`SimdKernel`]: generic over [`Vector`], with `#[inline(always)]` on every function it
//! calls, and started through [`Vector::vectorize`], the one function compiled with the instruction set
//! enabled. A function that is not inlined into it is correct but slow.

#[cfg(target_arch = "x86_64")]
pub mod avx2;
#[cfg(target_arch = "x86_64")]
pub mod avx512;
#[cfg(target_arch = "aarch64")]
pub mod neon;
mod plain;
pub mod portable;
mod vector;

use std::fmt;

pub use vector::{INTERPOLATED, SimdKernel, Taps, Vector, lane_of_pair};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SimdChoice {
    /// The best of the machine.
    #[default]
    Auto,
    /// 64 candidates at once: AVX-512 with BW, VBMI and BITALG (Ice Lake, Zen 4 and later).
    Avx512,
    /// 32 candidates at once.
    Avx2,
    /// 16 candidates at once: every 64-bit ARM processor.
    Neon,
    /// 16 candidates at once, with the baseline instructions of the architecture.
    Portable,
}

/// Vector instructions of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Simd {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "aarch64")]
    Neon,
    Portable,
}

impl SimdChoice {
    /// Every choice that this machine can run, the best first.
    pub fn available() -> Vec<SimdChoice> {
        let all = [SimdChoice::Avx512, SimdChoice::Avx2, SimdChoice::Neon, SimdChoice::Portable];
        all.into_iter().filter(|choice| choice.resolve().is_some()).collect()
    }

    /// Resolves the choice on this machine; `None` if it lacks the instructions.
    pub fn resolve(self) -> Option<Simd> {
        #[cfg(target_arch = "x86_64")]
        {
            let avx512 = std::is_x86_feature_detected!("avx512f")
                && std::is_x86_feature_detected!("avx512bw")
                && std::is_x86_feature_detected!("avx512vbmi")
                && std::is_x86_feature_detected!("avx512bitalg")
                && std::is_x86_feature_detected!("bmi1")
                && std::is_x86_feature_detected!("bmi2");
            let avx2 = std::is_x86_feature_detected!("avx2");
            match self {
                SimdChoice::Auto | SimdChoice::Avx512 if avx512 => Some(Simd::Avx512),
                SimdChoice::Auto | SimdChoice::Avx2 if avx2 => Some(Simd::Avx2),
                SimdChoice::Auto | SimdChoice::Portable => Some(Simd::Portable),
                SimdChoice::Avx512 | SimdChoice::Avx2 | SimdChoice::Neon => None,
            }
        }
        #[cfg(target_arch = "aarch64")]
        match self {
            SimdChoice::Auto | SimdChoice::Neon => Some(Simd::Neon),
            SimdChoice::Portable => Some(Simd::Portable),
            SimdChoice::Avx512 | SimdChoice::Avx2 => None,
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        match self {
            SimdChoice::Auto | SimdChoice::Portable => Some(Simd::Portable),
            SimdChoice::Avx512 | SimdChoice::Avx2 | SimdChoice::Neon => None,
        }
    }
}

impl Simd {
    /// Runs a kernel with these instructions.
    ///
    /// # Safety
    /// The simd was found on this machine; and the kernel's own conditions.
    pub unsafe fn vectorize<K: SimdKernel>(self, kernel: K) {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                #[cfg(target_arch = "x86_64")]
                Simd::Avx512 => avx512::Avx512::vectorize(kernel),
                #[cfg(target_arch = "x86_64")]
                Simd::Avx2 => avx2::Avx2::vectorize(kernel),
                #[cfg(target_arch = "aarch64")]
                Simd::Neon => neon::Neon::vectorize(kernel),
                Simd::Portable => portable::Portable::vectorize(kernel),
            }
        }
    }

    /// Returns the vectors for pixels of `count` candidates: narrower ones rather than half empty ones.
    pub fn for_candidates(self, count: usize) -> Simd {
        let narrower: Option<Simd> = match self {
            #[cfg(target_arch = "x86_64")]
            Simd::Avx512 => Some(Simd::Avx2),
            _ => None,
        };
        narrower.filter(|narrower| count <= narrower.lanes()).unwrap_or(self)
    }

    /// Number of candidates in a vector.
    pub fn lanes(self) -> usize {
        match self {
            #[cfg(target_arch = "x86_64")]
            Simd::Avx512 => avx512::Avx512::N,
            #[cfg(target_arch = "x86_64")]
            Simd::Avx2 => avx2::Avx2::N,
            #[cfg(target_arch = "aarch64")]
            Simd::Neon => neon::Neon::N,
            Simd::Portable => portable::Portable::N,
        }
    }
}

impl fmt::Display for Simd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            #[cfg(target_arch = "x86_64")]
            Simd::Avx512 => "AVX-512",
            #[cfg(target_arch = "x86_64")]
            Simd::Avx2 => "AVX2",
            #[cfg(target_arch = "aarch64")]
            Simd::Neon => "NEON",
            Simd::Portable => "portable vectors",
        })
    }
}

#[cfg(test)]
mod tests;
