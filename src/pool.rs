//! Buffers that are used again: the steady state allocates no picture-sized memory.
//!
//! A [`Pool`] hands out [`Pooled`] buffers; dropping one gives its memory back to the pool it came
//! from, whichever thread it was dropped on.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

use crossbeam_channel::{Receiver, Sender};

use crate::memory::{self, Refused};

/// How many idle buffers a pool keeps; what comes back beyond that is freed.
const IDLE_BUFFERS: usize = 64;

/// A store of buffers of one element type. A clone shares the buffers.
#[derive(Clone)]
pub struct Pool<T> {
    back: Sender<Vec<T>>,
    idle: Receiver<Vec<T>>,
    memory: Arc<OnceLock<Arc<dyn Memory<T>>>>,
}

/// Where a pool may take memory from instead of the heap.
pub trait Memory<T>: Send + Sync {
    /// A buffer of `len` elements whose content is unspecified, or `None` where it has none of this
    /// size.
    fn lend(&self, len: usize) -> Option<Box<dyn Lent<T>>>;
}

impl<T: Copy + Default> Pool<T> {
    /// An empty pool; buffers are made when first asked for.
    pub fn new() -> Self {
        let (back, idle) = crossbeam_channel::bounded(IDLE_BUFFERS);
        Self { back, idle, memory: Arc::default() }
    }

    /// From now on memory comes from here where it has some; only the first call counts.
    pub fn take_from(&self, memory: Arc<dyn Memory<T>>) {
        let _ = self.memory.set(memory);
    }

    /// A buffer of `len` elements whose content is unspecified (what its last user left).
    ///
    /// # Panics
    /// Where there is no memory for it: [`Pool::try_take`] is for what may be large.
    pub fn take(&self, len: usize) -> Pooled<T> {
        self.try_take(len).unwrap_or_else(|refused| panic!("{refused}"))
    }

    /// A buffer of `len` elements whose content is unspecified (what its last user left).
    pub fn try_take(&self, len: usize) -> Result<Pooled<T>, Refused> {
        if let Some(lent) = self.memory.get().and_then(|memory| memory.lend(len)) {
            return Ok(Pooled::lent(lent));
        }
        let mut data = self.idle.try_recv().unwrap_or_default();
        memory::grow(&mut data, len, T::default())?;
        Ok(Pooled(Storage::Own { data, home: Some(self.back.clone()) }))
    }
}

impl<T> fmt::Debug for Pool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool[{} idle]", self.idle.len())
    }
}

impl<T: Copy + Default> Default for Pool<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Memory that is no `Vec`, such as what a device copies into by itself. Dropping it gives it back to
/// whoever lent it.
pub trait Lent<T>: Send + Sync {
    /// The elements.
    fn elements(&self) -> &[T];
    /// The elements, to be changed.
    fn elements_mut(&mut self) -> &mut [T];
    /// Whether the device copies from and to it by itself.
    fn is_pinned(&self) -> bool {
        false
    }
}

/// A buffer that returns to its [`Pool`], or to who lent it, when dropped.
pub struct Pooled<T>(Storage<T>);

enum Storage<T> {
    Own { data: Vec<T>, home: Option<Sender<Vec<T>>> },
    Lent(Box<dyn Lent<T>>),
}

impl<T> Pooled<T> {
    /// A buffer that belongs to no pool.
    pub fn unpooled(data: Vec<T>) -> Self {
        Self(Storage::Own { data, home: None })
    }

    /// A buffer in memory of another kind.
    pub fn lent(memory: Box<dyn Lent<T>>) -> Self {
        Self(Storage::Lent(memory))
    }

    /// Whether a device copies from and to it by itself.
    pub fn is_pinned(&self) -> bool {
        match &self.0 {
            Storage::Own { .. } => false,
            Storage::Lent(memory) => memory.is_pinned(),
        }
    }
}

/// A copy belongs to no pool.
impl<T: Clone> Clone for Pooled<T> {
    fn clone(&self) -> Self {
        Self::unpooled(self.to_vec())
    }
}

impl<T> Drop for Pooled<T> {
    fn drop(&mut self) {
        if let Storage::Own { data, home: Some(home) } = &mut self.0 {
            // A full pool frees the buffer.
            let _ = home.try_send(std::mem::take(data));
        }
    }
}

impl<T> Deref for Pooled<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        match &self.0 {
            Storage::Own { data, .. } => data,
            Storage::Lent(memory) => memory.elements(),
        }
    }
}

impl<T> DerefMut for Pooled<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.0 {
            Storage::Own { data, .. } => data,
            Storage::Lent(memory) => memory.elements_mut(),
        }
    }
}

impl<T> fmt::Debug for Pooled<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pooled[{}]", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_buffer_is_handed_out_again() {
        let pool = Pool::<u8>::new();
        let mut first = pool.take(100);
        first[3] = 7;
        let address = first.as_ptr();
        drop(first);
        let second = pool.take(90);
        assert_eq!(second.len(), 90);
        assert_eq!(second.as_ptr(), address);
        assert_ne!(pool.take(90).as_ptr(), address);
    }

    #[test]
    fn memory_that_is_refused_is_an_error() {
        let pool = Pool::<i16>::new();
        assert!(pool.try_take(usize::MAX).is_err());
        assert_eq!(pool.try_take(3).unwrap().len(), 3);
    }

    #[test]
    fn lent_memory_goes_back_to_its_owner() {
        struct Array(Box<[i16; 3]>, Sender<i16>);
        impl Lent<i16> for Array {
            fn elements(&self) -> &[i16] {
                &self.0[..]
            }
            fn elements_mut(&mut self) -> &mut [i16] {
                &mut self.0[..]
            }
        }
        impl Drop for Array {
            fn drop(&mut self) {
                self.1.send(self.0[1]).unwrap();
            }
        }
        let (back, returned) = crossbeam_channel::unbounded();
        let mut buffer = Pooled::lent(Box::new(Array(Box::new([1, 2, 3]), back)));
        buffer[1] = 9;
        let copy = buffer.clone();
        drop(buffer);
        assert_eq!(returned.try_recv(), Ok(9));
        assert_eq!(&copy[..], [1, 9, 3]);
        drop(copy);
        assert!(returned.try_recv().is_err());
    }

    #[test]
    fn a_pool_takes_memory_from_where_it_is_told() {
        struct Boxed(Box<[u8]>);
        impl Lent<u8> for Boxed {
            fn elements(&self) -> &[u8] {
                &self.0
            }
            fn elements_mut(&mut self) -> &mut [u8] {
                &mut self.0
            }
            fn is_pinned(&self) -> bool {
                true
            }
        }
        struct Fours;
        impl Memory<u8> for Fours {
            fn lend(&self, len: usize) -> Option<Box<dyn Lent<u8>>> {
                (len == 4).then(|| Box::new(Boxed([7; 4].into())) as Box<dyn Lent<u8>>)
            }
        }
        let pool = Pool::<u8>::new();
        let clone = pool.clone();
        assert!(!clone.take(4).is_pinned());
        pool.take_from(Arc::new(Fours));
        assert!(clone.take(4).is_pinned());
        assert_eq!(&clone.take(4)[..], [7; 4]);
        let other = clone.take(5);
        assert_eq!((other.len(), other.is_pinned()), (5, false));
    }

    #[test]
    fn a_buffer_may_outlive_its_pool() {
        let pool = Pool::<i16>::new();
        let buffer = pool.take(4);
        drop(pool);
        assert_eq!(buffer.len(), 4);
    }
}
