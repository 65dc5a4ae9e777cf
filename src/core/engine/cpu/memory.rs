//! Memory shared by the engine's threads without locks: aligned, zeroed, allocated once.

use std::alloc::{Layout, alloc, dealloc};
use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Mutex;

use crate::memory::{Refused, Result, filled, product};

/// Size of a cache line and of the widest vector.
const ALIGNMENT: usize = 64;
/// Blocks of at least this size use huge pages: checkpoints would miss the TLB at every row.
const HUGE: usize = 2 << 20;

/// A block of `len` elements, initially zero, accessed through raw pointers only; `schedule.rs` prevents
/// conflicts of threads.
pub struct Block<T> {
    start: NonNull<u8>,
    layout: Layout,
    element: PhantomData<T>,
}

// SAFETY: a block is plain memory of plain numbers; the users of its pointer access separate parts.
unsafe impl<T: Copy + Send> Send for Block<T> {}
// SAFETY: as above; the block itself only returns its address.
unsafe impl<T: Copy + Sync> Sync for Block<T> {}

impl<T: Copy> Block<T> {
    /// Allocates `len` zeroed elements; `T` is a plain number.
    pub fn new(len: u64) -> Result<Self> {
        let wanted = Self::bytes_of(len);
        let refused = || Refused(wanted);
        let bytes = usize::try_from(wanted).map_err(|_| refused())?;
        let alignment = if bytes >= HUGE { HUGE } else { ALIGNMENT };
        let layout = Layout::from_size_align(bytes, alignment).map_err(|_| refused())?;
        // SAFETY: the layout is not empty.
        let start = NonNull::new(unsafe { alloc(layout) }).ok_or_else(refused)?;
        // Before the first write, because that is when the kernel chooses the pages.
        #[cfg(target_os = "linux")]
        if bytes >= HUGE {
            // SAFETY: the range was just allocated; a refused hint changes nothing.
            unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
        }
        // SAFETY: as above.
        unsafe { start.as_ptr().write_bytes(0, bytes) };
        Ok(Self { start, layout, element: PhantomData })
    }

    fn dry() -> Self {
        let layout = Layout::new::<()>();
        Self { start: NonNull::<u64>::dangling().cast(), layout, element: PhantomData }
    }

    /// Bytes of a block of `len` elements: whole cache lines. Saturates; the largest is always refused.
    fn bytes_of(len: u64) -> u64 {
        let bytes = len.saturating_mul(size_of::<T>() as u64).max(1);
        bytes.checked_next_multiple_of(ALIGNMENT as u64).unwrap_or(u64::MAX)
    }

    /// Returns the first `len` elements.
    ///
    /// # Safety
    /// The block is as long, and no thread writes them during the borrow.
    pub unsafe fn all(&self, len: usize) -> &[T] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(self.ptr(), len) }
    }

    /// Returns the first `len` elements to change.
    ///
    /// # Safety
    /// The block is as long, and nobody else accesses them during the borrow.
    #[allow(clippy::mut_from_ref, reason = "the users of a block access separate parts")]
    pub unsafe fn all_mut(&self, len: usize) -> &mut [T] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.ptr(), len) }
    }

    pub fn ptr(&self) -> *mut T {
        self.start.as_ptr().cast()
    }

    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.layout.size()
    }
}

impl<T> Drop for Block<T> {
    fn drop(&mut self) {
        if self.layout.size() > 0 {
            // SAFETY: allocated with this layout.
            unsafe { dealloc(self.start.as_ptr(), self.layout) }
        }
    }
}

/// Allocates the memory of an engine and counts its bytes. A dry arena only counts, for estimates.
pub struct Arena {
    bytes: Cell<u64>,
    is_dry: bool,
}

impl Arena {
    pub fn new() -> Self {
        Self { bytes: Cell::new(0), is_dry: false }
    }

    /// An arena that only counts; its blocks must not be accessed.
    pub fn dry() -> Self {
        Self { bytes: Cell::new(0), is_dry: true }
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// Counts bytes that are allocated elsewhere or later.
    pub fn count(&self, bytes: u64) {
        self.bytes.set(self.bytes.get().saturating_add(bytes));
    }

    pub fn block<T: Copy>(&self, len: u64) -> Result<Block<T>> {
        self.count(Block::<T>::bytes_of(len));
        if self.is_dry { Ok(Block::dry()) } else { Block::new(len) }
    }

    pub fn block_with<T: Copy>(&self, len: usize, fill: impl FnOnce(&mut [T])) -> Result<Block<T>> {
        let block = self.block(len as u64)?;
        if !self.is_dry {
            // SAFETY: the block has this length, and its pointer is not shared yet.
            fill(unsafe { block.all_mut(len) });
        }
        Ok(block)
    }

    /// Allocates `len` times `value`; nothing if dry.
    pub fn filled<T: Copy>(&self, len: usize, value: T) -> Result<Vec<T>> {
        self.count(product([len, size_of::<T>()]));
        filled(if self.is_dry { 0 } else { len }, value)
    }

    /// Makes `len` uncounted elements; none if dry.
    pub fn uncounted<T>(&self, len: usize, make: impl FnMut() -> T) -> Vec<T> {
        std::iter::repeat_with(make).take(if self.is_dry { 0 } else { len }).collect()
    }

    pub fn per_thread<T>(
        &self,
        threads: usize,
        mut make: impl FnMut() -> Result<T>,
    ) -> Result<Vec<Mutex<T>>> {
        (0..threads).map(|_| Ok(Mutex::new(make()?))).collect()
    }
}

/// Values per pixel; the threads write different ones.
pub struct Plane<T>(pub *mut T);

// SAFETY: see above.
unsafe impl<T> Sync for Plane<T> {}

impl<T> Plane<T> {
    /// Returns the address of value `index`.
    ///
    /// # Safety
    /// The index is in range.
    pub unsafe fn at(&self, index: usize) -> *mut T {
        // SAFETY: the caller's promise.
        unsafe { self.0.add(index) }
    }

    /// Returns some of the values.
    ///
    /// # Safety
    /// The range is valid, and no other thread accesses it during the borrow.
    #[allow(clippy::mut_from_ref, reason = "each thread has numbers of its own")]
    pub unsafe fn part(&self, part: Range<usize>) -> &mut [T] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(part.start), part.len()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_holds_what_was_asked_for() {
        let block = Block::<u16>::new(33).unwrap();
        assert_eq!((block.bytes() as u64, Block::<u16>::bytes_of(33)), (128, 128));
        assert_eq!(block.ptr() as usize % ALIGNMENT, 0);
        // SAFETY: the block has this length and is not shared.
        assert_eq!(unsafe { std::slice::from_raw_parts(block.ptr(), 33) }, [0; 33]);
        assert_eq!(Block::<u32>::new(0).unwrap().bytes(), ALIGNMENT);
    }

    #[test]
    fn sizes_that_no_memory_holds_are_refused() {
        // The number of bytes exceeds every integer, the address space, or any machine.
        for len in [u64::MAX, u64::MAX / 4 + 1, u64::MAX - 63, 1 << 62, 1 << 55] {
            assert!(Block::<u32>::new(len).is_err(), "{len}");
        }
        assert_eq!(Block::<u32>::new(u64::MAX).err(), Some(Refused(u64::MAX)));
    }
}
