//! Memory that the threads of the engine share without locks: aligned, zeroed, allocated once.

use std::alloc::{Layout, alloc, dealloc};
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;

use crate::memory::Refused;

/// Cache line, and the widest vector.
const ALIGNMENT: usize = 64;
/// From this size on, memory is asked for in huge pages: the checkpoints of a large picture would
/// otherwise miss the TLB at every row.
const HUGE: usize = 2 << 20;

/// A block of `len` elements, all zero at first, reached by raw pointers only: who may touch which
/// part when is the schedule's business (`schedule.rs`).
pub struct Block<T> {
    start: NonNull<u8>,
    layout: Layout,
    element: PhantomData<T>,
}

// SAFETY: a block is plain memory of plain numbers; the users of its pointer keep apart.
unsafe impl<T: Copy + Send> Send for Block<T> {}
// SAFETY: as above; the block itself only hands out its address.
unsafe impl<T: Copy + Sync> Sync for Block<T> {}

impl<T: Copy> Block<T> {
    /// A block of `len` elements whose bytes are all zero; `T` is a plain number.
    pub fn new(len: u64) -> Result<Self, Refused> {
        let wanted = Self::bytes_of(len);
        let refused = || Refused(wanted);
        let bytes = usize::try_from(wanted).map_err(|_| refused())?;
        let alignment = if bytes >= HUGE { HUGE } else { ALIGNMENT };
        let layout = Layout::from_size_align(bytes, alignment).map_err(|_| refused())?;
        // SAFETY: the layout is not empty.
        let start = NonNull::new(unsafe { alloc(layout) }).ok_or_else(refused)?;
        // Before the first byte is written, which is when the pages are chosen.
        #[cfg(target_os = "linux")]
        if bytes >= HUGE {
            // SAFETY: the range was just allocated; a refused hint changes nothing.
            unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
        }
        // SAFETY: as above.
        unsafe { start.as_ptr().write_bytes(0, bytes) };
        Ok(Self { start, layout, element: PhantomData })
    }

    /// Bytes of a block of `len` elements: whole cache lines. A size that no number holds is the
    /// largest there is, which is refused.
    pub fn bytes_of(len: u64) -> u64 {
        let bytes = len.saturating_mul(size_of::<T>() as u64).max(1);
        bytes.checked_next_multiple_of(ALIGNMENT as u64).unwrap_or(u64::MAX)
    }

    /// The first element.
    pub fn ptr(&self) -> *mut T {
        self.start.as_ptr().cast()
    }

    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        self.layout.size()
    }
}

impl<T> Drop for Block<T> {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

/// Numbers of a picture's pixels, of which the threads write different ones.
pub struct Plane<T>(pub *mut T);

// SAFETY: see above.
unsafe impl<T> Sync for Plane<T> {}

impl<T> Plane<T> {
    /// Where number `index` lies.
    ///
    /// # Safety
    /// There is such a number.
    pub unsafe fn at(&self, index: usize) -> *mut T {
        // SAFETY: the caller's promise.
        unsafe { self.0.add(index) }
    }

    /// Some of the numbers.
    ///
    /// # Safety
    /// There are these, and nobody else touches them meanwhile.
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
        // SAFETY: the block has this length, and nobody else knows it.
        assert_eq!(unsafe { std::slice::from_raw_parts(block.ptr(), 33) }, [0; 33]);
        assert_eq!(Block::<u32>::new(0).unwrap().bytes(), ALIGNMENT);
    }

    #[test]
    fn sizes_that_no_memory_holds_are_refused() {
        // The number of bytes fits no number, no address, and no machine.
        for len in [u64::MAX, u64::MAX / 4 + 1, u64::MAX - 63, 1 << 62, 1 << 55] {
            assert!(Block::<u32>::new(len).is_err(), "{len}");
        }
        assert_eq!(Block::<u32>::new(u64::MAX).err(), Some(Refused(u64::MAX)));
    }
}
