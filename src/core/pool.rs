//! Reused buffers: in the steady state no image-sized memory is allocated. A dropped [`Pooled`] buffer
//! returns to the [`Pool`] it came from, whichever thread it was dropped on.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

use crossbeam_channel::{Receiver, Sender};

use crate::memory::{self, Refused};

/// Largest number of idle buffers of a pool; further ones are freed.
const IDLE_BUFFERS: usize = 64;

/// Buffers of one element type. A clone shares them.
#[derive(Clone)]
pub struct Pool<T> {
    back: Sender<Vec<T>>,
    idle: Receiver<Vec<T>>,
    memory: Arc<OnceLock<Arc<dyn Memory<T>>>>,
}

/// Source of memory other than the heap.
pub trait Memory<T>: Send + Sync {
    /// Returns a buffer of `len` elements with unspecified content, or `None` if it has none of this size.
    fn lend(&self, len: usize) -> Option<Box<dyn Lent<T>>>;
}

impl<T: Copy + Default> Pool<T> {
    /// Creates an empty pool. Buffers are allocated on demand.
    pub fn new() -> Self {
        let (back, idle) = crossbeam_channel::bounded(IDLE_BUFFERS);
        Self { back, idle, memory: Arc::default() }
    }

    /// Sets a source that is asked before the heap. Only the first call has an effect.
    pub fn take_from(&self, memory: Arc<dyn Memory<T>>) {
        let _ = self.memory.set(memory);
    }

    /// Returns a buffer of `len` elements with unspecified content.
    ///
    /// # Panics
    /// If the allocation fails. Large buffers come from [`Pool::try_take`].
    pub fn take(&self, len: usize) -> Pooled<T> {
        self.try_take(len).unwrap_or_else(|refused| panic!("{refused}"))
    }

    /// Returns a buffer of `len` elements with unspecified content, or fails.
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

/// Memory other than a `Vec`, such as pinned memory. Dropping it returns it to its source.
pub trait Lent<T>: Send + Sync {
    fn elements(&self) -> &[T];
    fn elements_mut(&mut self) -> &mut [T];
    /// Reports whether the device can copy from and to it directly.
    fn is_pinned(&self) -> bool {
        false
    }
}

/// A buffer that returns to its [`Pool`] or source when dropped.
pub struct Pooled<T>(Storage<T>);

enum Storage<T> {
    Own { data: Vec<T>, home: Option<Sender<Vec<T>>> },
    Lent(Box<dyn Lent<T>>),
}

impl<T> Pooled<T> {
    /// Wraps a buffer that belongs to no pool.
    pub fn unpooled(data: Vec<T>) -> Self {
        Self(Storage::Own { data, home: None })
    }

    /// Wraps memory of another source.
    pub fn lent(memory: Box<dyn Lent<T>>) -> Self {
        Self(Storage::Lent(memory))
    }

    /// Reports whether a device can copy from and to it directly.
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
