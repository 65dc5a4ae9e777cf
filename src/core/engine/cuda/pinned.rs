//! Reused pinned memory, for maps held by outputs and for images written by sources.

use std::marker::PhantomData;
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};

use super::driver::{Context, PinnedMemory, Result};
use crate::pool::{Lent, Memory};

/// Largest number of idle buffers of a pool; further ones are freed.
const IDLE: usize = 64;

/// Pinned buffers of one size, as slices of `T`, a plain integer.
#[derive(Clone)]
pub(super) struct PinnedPool<T> {
    context: Arc<Context>,
    len: usize,
    back: Sender<PinnedMemory>,
    idle: Receiver<PinnedMemory>,
    element: PhantomData<fn() -> T>,
}

impl<T: Plain> PinnedPool<T> {
    /// A pool of buffers of `len` elements, `ready` of them allocated now.
    pub fn new(context: &Arc<Context>, len: usize, ready: usize) -> Result<Self> {
        let (back, idle) = crossbeam_channel::bounded(IDLE);
        let pool = Self { context: context.clone(), len, back, idle, element: PhantomData };
        for _ in 0..ready.min(IDLE) {
            let _ = pool.back.try_send(pool.make()?);
        }
        Ok(pool)
    }

    /// The same, if the buffers are needed.
    pub fn if_needed(
        needed: bool,
        context: &Arc<Context>,
        len: usize,
        ready: usize,
    ) -> Result<Option<Self>> {
        needed.then(|| Self::new(context, len, ready)).transpose()
    }

    fn make(&self) -> Result<PinnedMemory> {
        PinnedMemory::zeroed(&self.context, self.len * size_of::<T>())
    }

    /// Returns an idle buffer, or a new one if all are in use.
    pub fn take(&self) -> Result<PinnedMemory> {
        self.idle.try_recv().or_else(|_| self.make())
    }

    /// Lends the elements of memory from [`PinnedPool::take`]. No copy of the device may still access it.
    pub fn lend(&self, memory: PinnedMemory) -> Box<dyn Lent<T>> {
        Box::new(Slice { memory: Some(memory), home: self.back.clone(), element: PhantomData })
    }
}

impl<T: Plain> Memory<T> for PinnedPool<T> {
    fn lend(&self, len: usize) -> Option<Box<dyn Lent<T>>> {
        if len != self.len {
            return None;
        }
        // On a lost device this fails, and the heap is used.
        self.take().ok().map(|memory| PinnedPool::lend(self, memory))
    }
}

/// The pools of both views, whose images may differ in size.
impl<T: Plain> Memory<T> for [PinnedPool<T>; 2] {
    fn lend(&self, len: usize) -> Option<Box<dyn Lent<T>>> {
        Memory::lend(&self[usize::from(len != self[0].len)], len)
    }
}

/// Integers: all bit patterns are valid, and a page is sufficiently aligned.
pub(super) trait Plain: Copy + 'static {}
impl Plain for u8 {}
impl Plain for u16 {}
impl Plain for i32 {}
impl Plain for i16 {}

/// Elements in pinned memory, which returns to its pool on drop.
struct Slice<T> {
    /// Present until dropped.
    memory: Option<PinnedMemory>,
    home: Sender<PinnedMemory>,
    element: PhantomData<fn() -> T>,
}

impl<T: Plain> Lent<T> for Slice<T> {
    fn elements(&self) -> &[T] {
        match &self.memory {
            // SAFETY: page-aligned and initialised, any bytes are a `T`, and the device at most reads it.
            Some(memory) => unsafe {
                let len = memory.bytes() / size_of::<T>();
                std::slice::from_raw_parts(memory.address().as_ptr().cast(), len)
            },
            None => &[],
        }
    }

    fn elements_mut(&mut self) -> &mut [T] {
        match &self.memory {
            // SAFETY: as above; and with exclusive access, no frame in flight uses the buffer.
            Some(memory) => unsafe {
                let len = memory.bytes() / size_of::<T>();
                std::slice::from_raw_parts_mut(memory.address().as_ptr().cast(), len)
            },
            None => &mut [],
        }
    }

    fn is_pinned(&self) -> bool {
        true
    }
}

impl<T> Drop for Slice<T> {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            // If the pool is full or gone, the memory is freed.
            let _ = self.home.try_send(memory);
        }
    }
}
