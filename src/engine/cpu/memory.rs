//! Memory that the threads of the engine share without locks: aligned, zeroed, allocated once.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::ptr::NonNull;

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
    pub fn new(len: usize) -> Self {
        let bytes = (len * size_of::<T>()).max(1).next_multiple_of(ALIGNMENT);
        let alignment = if bytes >= HUGE { HUGE } else { ALIGNMENT };
        let layout = Layout::from_size_align(bytes, alignment).expect("a size that fits memory");
        // SAFETY: the layout is not empty.
        let Some(start) = NonNull::new(unsafe { alloc_zeroed(layout) }) else {
            handle_alloc_error(layout)
        };
        #[cfg(target_os = "linux")]
        if bytes >= HUGE {
            // SAFETY: the range was just allocated; a refused hint changes nothing.
            unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
        }
        Self { start, layout, element: PhantomData }
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
