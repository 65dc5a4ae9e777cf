//! Memory budget of the process. Every large allocation is reserved first ([`Budget::reserve`]), so that a
//! demand that is too large ends in a message with numbers and not in a machine that swaps. Engines compute
//! their demand before they allocate ([`Estimate`]). An allocation that fails anyway returns [`Refused`].

mod free;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

pub use free::free;

/// Default limit: one half of the memory that is free at the start. The other half is for decoders,
/// encoders and drivers, whose memory is not counted, and for other programs.
const SHARE: u64 = 2;

/// Limit if the system does not tell how much memory is free.
const UNKNOWN: u64 = 2 << 30;

/// Memory demand of a computation in bytes, known before anything is allocated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Memory of the machine, pinned memory included.
    pub host: u64,
    /// Memory of a device.
    pub device: u64,
}

/// A limit and the reserved part of it. A clone shares both.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Account>);

#[derive(Debug)]
struct Account {
    limit: u64,
    /// Free memory from which the limit was derived, if it was.
    share_of: Option<u64>,
    taken: AtomicU64,
}

static PROCESS: OnceLock<Budget> = OnceLock::new();

impl Budget {
    /// Returns the budget of this process: the one of [`Budget::set_of_process`], or else a share of
    /// the memory that was free at the first call.
    pub fn of_process() -> &'static Budget {
        PROCESS.get_or_init(Budget::of_what_is_free)
    }

    /// Sets the budget in MiB (`None`: a share of the free memory); only the first call before use counts.
    pub fn set_of_process(mib: Option<u32>) {
        let budget = || mib.map_or_else(Self::of_what_is_free, |m| Self::of(u64::from(m) << 20));
        PROCESS.get_or_init(budget);
    }

    pub fn of(limit: u64) -> Self {
        Self(Arc::new(Account { limit, share_of: None, taken: AtomicU64::new(0) }))
    }

    /// Returns the user's limit in bytes, if there is one. It holds for GPU memory as well.
    pub fn given(&self) -> Option<u64> {
        (self.0.share_of.is_none() && self.0.limit != UNKNOWN).then_some(self.0.limit)
    }

    fn of_what_is_free() -> Self {
        let share_of = free();
        let limit = share_of.map_or(UNKNOWN, |free| free / SHARE);
        Self(Arc::new(Account { limit, share_of, taken: AtomicU64::new(0) }))
    }

    /// Returns the bytes that are not reserved.
    pub fn left(&self) -> u64 {
        self.0.limit.saturating_sub(self.0.taken.load(Ordering::Relaxed))
    }

    /// Reserves `bytes` until the returned value is dropped. A refusal begins with `what`, such as
    /// "matching 640x480 at 64 disparities", and ends with `cure`.
    pub fn reserve(
        &self,
        what: impl fmt::Display,
        bytes: u64,
        cure: &'static str,
    ) -> Result<Reserved, TooMuch> {
        let take = |taken: u64| taken.checked_add(bytes).filter(|&sum| sum <= self.0.limit);
        match self.0.taken.try_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            Ok(_) => Ok(Reserved { account: self.0.clone(), bytes }),
            Err(taken) => Err(self.too_much(what.to_string(), bytes, taken, cure)),
        }
    }

    fn too_much(&self, what: String, needed: u64, taken: u64, cure: &'static str) -> TooMuch {
        let Account { limit, share_of, .. } = *self.0;
        TooMuch { what, needed, limit, share_of, taken, cure }
    }

    /// Fails if `bytes` exceed the whole budget, whatever is reserved now.
    pub fn check_alone(
        &self,
        what: impl fmt::Display,
        bytes: u64,
        cure: &'static str,
    ) -> Result<(), TooMuch> {
        match bytes <= self.0.limit {
            true => Ok(()),
            false => Err(self.too_much(what.to_string(), bytes, 0, cure)),
        }
    }

    /// Fails if `bytes` do not fit. Reserves nothing: for short-lived memory.
    pub fn check(
        &self,
        what: impl fmt::Display,
        bytes: u64,
        cure: &'static str,
    ) -> Result<(), TooMuch> {
        self.reserve(what, bytes, cure).map(drop)
    }
}

/// A part of a [`Budget`], given back when dropped.
#[derive(Debug)]
pub struct Reserved {
    account: Arc<Account>,
    bytes: u64,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.account.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A demand that exceeds the rest of the budget.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{what} needs {}, the budget is {}{}: {cure}, or [engine] memory_mib",
    Size(*.needed), Size(*.limit), self.of_which()
)]
pub struct TooMuch {
    what: String,
    needed: u64,
    limit: u64,
    share_of: Option<u64>,
    taken: u64,
    cure: &'static str,
}

impl TooMuch {
    /// Describes the bytes needed and the bytes left.
    pub fn shortage(&self) -> (u64, u64) {
        (self.needed, self.limit.saturating_sub(self.taken))
    }

    /// Describes the origin of the limit and the reserved part.
    fn of_which(&self) -> String {
        let mut told = Vec::new();
        if let Some(free) = self.share_of {
            told.push(format!("half of the {} that were free", Size(free)));
        }
        if self.taken >> 20 > 0 {
            told.push(format!("{} of it are taken", Size(self.taken)));
        }
        if told.is_empty() { String::new() } else { format!(" ({})", told.join(", ")) }
    }
}

pub type Result<T, E = Refused> = std::result::Result<T, E>;

/// The system has refused an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("out of memory: the system refuses {}; a smaller picture needs less", Size(*.0))]
pub struct Refused(pub u64);

/// Allocates `len` copies of `value`, or fails.
pub fn filled<T: Copy>(len: usize, value: T) -> Result<Vec<T>> {
    let mut all = Vec::new();
    grow(&mut all, len, value)?;
    Ok(all)
}

/// Resizes `vec` to `len`, with `value` as new elements, or fails.
pub fn grow<T: Copy>(vec: &mut Vec<T>, len: usize, value: T) -> Result<()> {
    let more = len.saturating_sub(vec.len());
    vec.try_reserve_exact(more).map_err(|_| refused::<T>(len))?;
    vec.resize(len, value);
    Ok(())
}

/// Creates the error of a failed allocation of `len` elements of `T`.
pub fn refused<T>(len: usize) -> Refused {
    Refused((len as u64).saturating_mul(size_of::<T>() as u64))
}

/// Multiplies sizes in bytes or pixels. An overflow saturates, which exceeds every budget.
pub fn product(factors: impl IntoIterator<Item = usize>) -> u64 {
    factors.into_iter().fold(1, |product: u64, factor| product.saturating_mul(factor as u64))
}

/// Formats a number of bytes for people.
#[derive(Clone, Copy, Debug)]
pub struct Size(pub u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = self.0 as f64 / f64::from(1 << 20);
        match mib {
            _ if mib >= 10240.0 => write!(f, "{:.0} GiB", mib / 1024.0),
            _ if mib >= 1024.0 => write!(f, "{:.1} GiB", mib / 1024.0),
            _ if mib >= 10.0 => write!(f, "{mib:.0} MiB"),
            _ => write!(f, "{mib:.1} MiB"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reserved_is_given_back() {
        let budget = Budget::of(100 << 20);
        let first = budget.reserve("one", 60 << 20, "less").unwrap();
        let error = budget.reserve("another", 60 << 20, "a smaller picture").unwrap_err();
        assert_eq!(
            error.to_string(),
            "another needs 60 MiB, the budget is 100 MiB (60 MiB of it are taken): a smaller \
             picture, or [engine] memory_mib"
        );
        assert_eq!(budget.left(), 40 << 20);
        budget.check("a third", 40 << 20, "less").unwrap();
        budget.check_alone("a later one", 100 << 20, "less").unwrap();
        let error = budget.check_alone("a large one", 101 << 20, "less").unwrap_err().to_string();
        assert!(error.starts_with("a large one needs 101 MiB, the budget is 100 MiB: "), "{error}");
        drop(first);
        let all = budget.clone().reserve("all", 100 << 20, "less").unwrap();
        assert_eq!(budget.left(), 0);
        budget.check("nothing", 0, "less").unwrap();
        drop(all);
        assert_eq!(budget.left(), 100 << 20);
    }

    #[test]
    fn no_sum_is_too_large_to_be_refused() {
        let budget = Budget::of(u64::MAX - 1);
        let _half = budget.reserve("much", 1 << 63, "less").unwrap();
        assert!(budget.check("more", 1 << 63, "less").is_err());
        assert_eq!(product([usize::MAX, 2, 0]), 0);
        assert_eq!(product([usize::MAX, 2, 8]), u64::MAX);
        assert!(budget.check("all", product([usize::MAX, 16384]), "less").is_err());
    }

    #[test]
    fn the_share_names_what_was_free() {
        let account = Account { limit: 11 << 30, share_of: Some(22 << 30), taken: 0.into() };
        let error = Budget(Arc::new(account)).check(
            "matching 16384x16384 at 1024 disparities",
            41 << 30,
            "fewer --disparities, a smaller picture",
        );
        assert_eq!(
            error.unwrap_err().to_string(),
            "matching 16384x16384 at 1024 disparities needs 41 GiB, the budget is 11 GiB (half of \
             the 22 GiB that were free): fewer --disparities, a smaller picture, or [engine] \
             memory_mib"
        );
    }

    #[test]
    fn memory_that_is_refused_is_an_error() {
        assert_eq!(filled(3, 7u8).unwrap(), [7; 3]);
        assert_eq!(filled(usize::MAX, 0u16), Err(Refused(u64::MAX)));
        let mut some = vec![1u32, 2];
        assert!(grow(&mut some, usize::MAX / 8, 0).is_err());
        assert_eq!(some, [1, 2]);
        grow(&mut some, 1, 0).unwrap();
        assert_eq!(some, [1]);
        assert!(Refused(3 << 40).to_string().contains("3072 GiB"), "{}", Refused(3 << 40));
    }

    #[test]
    fn sizes() {
        for (bytes, text) in
            [(0, "0.0 MiB"), (1 << 20, "1.0 MiB"), (312 << 20, "312 MiB"), (3 << 29, "1.5 GiB")]
        {
            assert_eq!(Size(bytes).to_string(), text);
        }
        assert_eq!(Size(139 << 30).to_string(), "139 GiB");
    }
}
