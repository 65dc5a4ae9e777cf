//! RAII wrappers of the CUDA driver's objects.
//!
//! Only functions of the drivers of CUDA 12.0 and later are called, and newer ones (for parts of a device)
//! after a check of the driver's version, because cudarc panics if a function is missing.

use std::ffi::{CStr, CString, c_void};
use std::ptr::{self, NonNull};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cudarc::driver::sys::{self, CUresult};

/// A failed call of the driver: the operation, CUDA's name of the failure, a cure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {code:?}: {}", self.advice())]
pub struct CudaError {
    code: CUresult,
    what: &'static str,
}

impl CudaError {
    /// A cure or an explanation.
    fn advice(&self) -> &'static str {
        use CUresult as E;
        match self.code {
            E::CUDA_ERROR_OUT_OF_MEMORY => {
                "the GPU has too little free memory; fewer disparities, a smaller picture or \
                 `engine=cpu` need less"
            }
            E::CUDA_ERROR_NO_BINARY_FOR_GPU
            | E::CUDA_ERROR_INVALID_IMAGE
            | E::CUDA_ERROR_UNSUPPORTED_PTX_VERSION
            | E::CUDA_ERROR_INVALID_SOURCE => {
                "the driver cannot load what NVRTC compiled; update the driver, or install the NVRTC \
                 of the driver's CUDA version"
            }
            E::CUDA_ERROR_DEVICE_UNAVAILABLE => {
                "another program has the GPU for itself; end it, or choose another GPU with `device`"
            }
            E::CUDA_ERROR_LAUNCH_TIMEOUT => {
                "the system stopped a kernel because it kept the display waiting; use a smaller \
                 picture, or a GPU without a display"
            }
            E::CUDA_ERROR_ECC_UNCORRECTABLE
            | E::CUDA_ERROR_HARDWARE_STACK_ERROR
            | E::CUDA_ERROR_NVLINK_UNCORRECTABLE => {
                "the GPU's hardware reported an error; see dmesg"
            }
            E::CUDA_ERROR_ILLEGAL_ADDRESS
            | E::CUDA_ERROR_MISALIGNED_ADDRESS
            | E::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | E::CUDA_ERROR_INVALID_PC
            | E::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | E::CUDA_ERROR_ASSERT
            | E::CUDA_ERROR_LAUNCH_FAILED => {
                "a kernel failed; that is a defect of stereod or of the GPU (dmesg may tell); \
                 `engine=cpu` works meanwhile"
            }
            E::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH => {
                "libcuda and the kernel's driver are of different versions; restart the machine after \
                 an update of the driver"
            }
            E::CUDA_ERROR_SYSTEM_NOT_READY => {
                "the system's NVIDIA services are not running (nvidia-fabricmanager)"
            }
            E::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
            | E::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
            | E::CUDA_ERROR_INVALID_VALUE
            | E::CUDA_ERROR_NOT_FOUND => "a defect of stereod; `engine=cpu` works meanwhile",
            E::CUDA_ERROR_UNKNOWN => "the driver does not say more; dmesg may",
            _ => "the GPU cannot be used any more; `engine=cpu` works without it",
        }
    }
}

pub type Result<T> = std::result::Result<T, CudaError>;

pub(super) fn check(what: &'static str, code: CUresult) -> Result<()> {
    if code == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(CudaError { code, what }) }
}

/// The primary context of a device, or one of some of its multiprocessors; other objects belong to one.
#[derive(Debug)]
pub struct Context {
    raw: sys::CUcontext,
    owner: Owner,
}

/// Way to release a context.
#[derive(Debug)]
enum Owner {
    Primary(sys::CUdevice),
    Green(sys::CUgreenCtx),
}

// SAFETY: the driver's contexts may be used from any thread.
unsafe impl Send for Context {}
// SAFETY: as above; no call here changes the context itself.
unsafe impl Sync for Context {}

impl Context {
    pub(super) fn retain(device: sys::CUdevice) -> Result<Arc<Self>> {
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` receives the context; the device is one that the driver has listed.
        check("opening the GPU", unsafe { sys::cuDevicePrimaryCtxRetain(&mut raw, device) })?;
        let context = Arc::new(Self { raw, owner: Owner::Primary(device) });
        context.make_current()?;
        Ok(context)
    }

    /// Creates a context on this number of multiprocessors, or the next larger supported number, and returns
    /// that number: a green context (CUDA Driver API, section 6.36). Needs a driver of CUDA 12.4 or later.
    pub(super) fn of_part(device: sys::CUdevice, multiprocessors: u32) -> Result<(Arc<Self>, u32)> {
        const WHAT: &str = "taking a part of the GPU";
        let kind = sys::CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM;
        // SAFETY: plain numbers; zeros are valid.
        let [mut whole, mut part, mut rest]: [sys::CUdevResource; 3] =
            unsafe { std::mem::zeroed() };
        let (mut description, mut green, mut raw) =
            (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        let mut groups = 1;
        let flags = sys::CUgreenCtxCreate_flags::CU_GREEN_CTX_DEFAULT_STREAM as u32;
        // SAFETY: each call reads the output of the previous one, and writes to valid variables; `part` holds
        // `groups` groups.
        unsafe {
            check(WHAT, sys::cuDeviceGetDevResource(device, &mut whole, kind))?;
            let split = sys::cuDevSmResourceSplitByCount;
            check(WHAT, split(&mut part, &mut groups, &whole, &mut rest, 0, multiprocessors))?;
            check(WHAT, sys::cuDevResourceGenerateDesc(&mut description, &mut part, 1))?;
            check(WHAT, sys::cuGreenCtxCreate(&mut green, description, device, flags))?;
        }
        let owner = Owner::Green(green);
        // SAFETY: the green context was just made.
        let made = check(WHAT, unsafe { sys::cuCtxFromGreenCtx(&mut raw, green) });
        let context = Arc::new(Self { raw, owner });
        made?;
        context.make_current()?;
        // SAFETY: the resource is of this kind.
        Ok((context, unsafe { part.__bindgen_anon_1.sm.smCount }))
    }

    /// Makes this the calling thread's context, as all calls below require.
    pub fn make_current(&self) -> Result<()> {
        // SAFETY: the context is retained as long as `self` lives.
        check("using the GPU", unsafe { sys::cuCtxSetCurrent(self.raw) })
    }

    /// Free and total memory of the device, in bytes.
    pub fn memory(&self) -> Result<(usize, usize)> {
        self.make_current()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: both pointers are valid; the context is current.
        check("asking for the GPU's memory", unsafe {
            sys::cuMemGetInfo_v2(&mut free, &mut total)
        })?;
        Ok((free, total))
    }

    /// Waits for all work of the device in this context. For the start only.
    pub(super) fn synchronize(&self) -> Result<()> {
        self.make_current()?;
        // SAFETY: the context is current.
        check("waiting for the GPU", unsafe { sys::cuCtxSynchronize() })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: retained or made once; all its objects held an `Arc` of it.
        unsafe {
            match self.owner {
                Owner::Primary(device) => sys::cuDevicePrimaryCtxRelease_v2(device),
                Owner::Green(context) => sys::cuGreenCtxDestroy(context),
            }
        };
    }
}

macro_rules! freed_by {
    ($type:ident, $function:ident) => {
        // SAFETY: the driver's handles may be used from any thread.
        unsafe impl Send for $type {}
        // SAFETY: a shared reference only hands the handle to the driver, which locks.
        unsafe impl Sync for $type {}

        impl Drop for $type {
            fn drop(&mut self) {
                // A lost device frees nothing, and the error cannot be reported here.
                if self.context.make_current().is_ok() {
                    // SAFETY: created together with `self` and freed only here.
                    unsafe { sys::$function(self.raw) };
                }
            }
        }
    };
}

/// Priority of waiting blocks over others of this process, or of its Multi-Process Service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// The default of programs.
    #[default]
    Low,
    /// Halfway.
    Normal,
    /// Before all others.
    High,
}

impl Priority {
    /// CUDA's number on a device with this range of priorities; higher priorities have smaller numbers.
    fn number(self, least: i32, greatest: i32) -> i32 {
        match self {
            Priority::Low => least,
            Priority::Normal => least + (greatest - least) / 2,
            Priority::High => greatest,
        }
    }
}

/// A queue of work on the device.
#[derive(Debug)]
pub struct Stream {
    raw: sys::CUstream,
    context: Arc<Context>,
}

freed_by!(Stream, cuStreamDestroy_v2);

impl Stream {
    /// A stream that waits for no other.
    pub(super) fn new(context: &Arc<Context>, priority: Priority) -> Result<Self> {
        const WHAT: &str = "creating a stream";
        let (mut raw, mut least, mut greatest) = (ptr::null_mut(), 0, 0);
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the pointers are valid; the context is current.
        check(WHAT, unsafe { sys::cuCtxGetStreamPriorityRange(&mut least, &mut greatest) })?;
        let number = priority.number(least, greatest);
        // SAFETY: `raw` receives the stream.
        check(WHAT, unsafe { sys::cuStreamCreateWithPriority(&mut raw, flags, number) })?;
        Ok(Self { raw, context: context.clone() })
    }

    pub(super) fn wait_for(&self, event: &Event) -> Result<()> {
        // SAFETY: both handles are alive.
        check("ordering streams", unsafe { sys::cuStreamWaitEvent(self.raw, event.raw, 0) })
    }

    /// Waits until all enqueued work is done.
    pub(super) fn synchronize(&self) -> Result<()> {
        // SAFETY: the handle is alive.
        check("waiting for the GPU", unsafe { sys::cuStreamSynchronize(self.raw) })
    }

    pub(super) fn raw(&self) -> sys::CUstream {
        self.raw
    }
}

/// An event in a stream, with its time.
#[derive(Debug)]
pub struct Event {
    raw: sys::CUevent,
    context: Arc<Context>,
}

freed_by!(Event, cuEventDestroy_v2);

impl Event {
    /// An event with timing; waiting for it blocks the thread without spinning.
    pub(super) fn new(context: &Arc<Context>) -> Result<Self> {
        let mut raw = ptr::null_mut();
        let flags = sys::CUevent_flags::CU_EVENT_BLOCKING_SYNC as u32;
        // SAFETY: `raw` receives the event.
        check("creating an event", unsafe { sys::cuEventCreate(&mut raw, flags) })?;
        Ok(Self { raw, context: context.clone() })
    }

    pub(super) fn record(&self, stream: &Stream) -> Result<()> {
        // SAFETY: both handles are alive.
        check("recording an event", unsafe { sys::cuEventRecord(self.raw, stream.raw) })
    }

    pub(super) fn is_passed(&self) -> Result<bool> {
        // SAFETY: the handle is alive.
        match unsafe { sys::cuEventQuery(self.raw) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            code => check("waiting for a frame", code).map(|()| true),
        }
    }

    pub(super) fn wait(&self) -> Result<()> {
        // SAFETY: the handle is alive.
        check("waiting for a frame", unsafe { sys::cuEventSynchronize(self.raw) })
    }

    /// Time from an earlier event to this one; both have been passed.
    pub(super) fn since(&self, earlier: &Event) -> Result<Duration> {
        let mut ms = 0f32;
        // SAFETY: both events are alive and `ms` receives the time.
        let code = unsafe { elapsed_time()(&mut ms, earlier.raw, self.raw) };
        check("reading a frame's times", code)?;
        Ok(Duration::from_secs_f64(f64::from(ms.max(0.0)) / 1e3))
    }
}

type ElapsedTime = unsafe extern "C" fn(*mut f32, sys::CUevent, sys::CUevent) -> CUresult;

/// `cuEventElapsedTime`. CUDA 13 has a new version under another name, which drivers before 12.8 lack; the
/// version of CUDA 12.0 is in every driver.
fn elapsed_time() -> ElapsedTime {
    static FUNCTION: OnceLock<ElapsedTime> = OnceLock::new();
    unsafe extern "C" fn missing(_: *mut f32, _: sys::CUevent, _: sys::CUevent) -> CUresult {
        CUresult::CUDA_ERROR_NOT_FOUND
    }
    *FUNCTION.get_or_init(|| {
        let mut found: *mut c_void = ptr::null_mut();
        let name = c"cuEventElapsedTime".as_ptr();
        // SAFETY: name and receiver are valid; no status is asked for.
        let code = unsafe { sys::cuGetProcAddress_v2(name, &mut found, 12000, 0, ptr::null_mut()) };
        if code != CUresult::CUDA_SUCCESS || found.is_null() {
            return missing;
        }
        // SAFETY: the driver returned the function of this name, which has this type since CUDA 2.
        unsafe { std::mem::transmute::<*mut c_void, ElapsedTime>(found) }
    })
}

#[derive(Debug)]
pub struct DeviceMemory {
    raw: sys::CUdeviceptr,
    bytes: usize,
    context: Arc<Context>,
}

freed_by!(DeviceMemory, cuMemFree_v2);

impl DeviceMemory {
    /// Memory of at least `bytes` bytes, aligned to 256, that begins with `content`, followed by zeros.
    pub(super) fn new(context: &Arc<Context>, bytes: usize, content: &[u8]) -> Result<Self> {
        let bytes = bytes.max(content.len()).max(1);
        let mut raw = 0;
        // SAFETY: `raw` receives the address.
        check("allocating GPU memory", unsafe { sys::cuMemAlloc_v2(&mut raw, bytes) })?;
        let memory = Self { raw, bytes, context: context.clone() };
        // SAFETY: the range was just allocated.
        check("clearing GPU memory", unsafe { sys::cuMemsetD8_v2(raw, 0, bytes) })?;
        if content.is_empty() {
            return Ok(memory);
        }
        memory.write(content)?;
        Ok(memory)
    }

    /// Copies the first `to.len()` bytes to the host, after the device's work on them.
    pub(super) fn read(&self, to: &mut [u8]) -> Result<()> {
        let bytes = to.len().min(self.bytes);
        // SAFETY: both ranges are at least that long.
        check("reading GPU memory", unsafe {
            sys::cuMemcpyDtoH_v2(to.as_mut_ptr().cast(), self.raw, bytes)
        })
    }

    /// Copies host bytes to the beginning; no other use may overlap.
    pub(super) fn write(&self, from: &[u8]) -> Result<()> {
        let bytes = from.len().min(self.bytes);
        // SAFETY: both ranges are at least that long.
        check("filling GPU memory", unsafe {
            sys::cuMemcpyHtoD_v2(self.raw, from.as_ptr().cast(), bytes)
        })
    }

    pub(super) fn address(&self) -> u64 {
        self.raw
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Page-locked host memory for direct copies by the device.
#[derive(Debug)]
pub struct PinnedMemory {
    raw: *mut c_void,
    bytes: usize,
    context: Arc<Context>,
}

freed_by!(PinnedMemory, cuMemFreeHost);

impl PinnedMemory {
    /// `bytes` bytes, all zero, aligned to a page.
    pub(super) fn zeroed(context: &Arc<Context>, bytes: usize) -> Result<Self> {
        // The threads of sources allocate, too.
        context.make_current()?;
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` receives the address.
        check("allocating pinned memory", unsafe {
            sys::cuMemHostAlloc(&mut raw, bytes.max(1), sys::CU_MEMHOSTALLOC_PORTABLE)
        })?;
        // SAFETY: the range was just allocated.
        unsafe { ptr::write_bytes(raw.cast::<u8>(), 0, bytes) };
        Ok(Self { raw, bytes, context: context.clone() })
    }

    pub(super) fn address(&self) -> NonNull<u8> {
        // The driver returned it with success.
        NonNull::new(self.raw.cast()).unwrap_or(NonNull::dangling())
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Compiled kernels, loaded into a context.
#[derive(Debug)]
pub struct Module {
    raw: sys::CUmodule,
    context: Arc<Context>,
}

freed_by!(Module, cuModuleUnload);

impl Module {
    /// Loads a cubin, or PTX that ends with a zero byte.
    pub(super) fn load(context: &Arc<Context>, image: &[u8]) -> Result<Self> {
        let mut raw = ptr::null_mut();
        // SAFETY: the image is whole, as the cache and NVRTC assure.
        check("loading the kernels", unsafe {
            sys::cuModuleLoadData(&mut raw, image.as_ptr().cast())
        })?;
        Ok(Self { raw, context: context.clone() })
    }

    /// The kernel of this (unmangled) name.
    pub(super) fn function(&self, name: &CStr) -> Result<Function> {
        let mut raw = ptr::null_mut();
        // SAFETY: the module is alive and the name ends with zero.
        check("looking for a kernel", unsafe {
            sys::cuModuleGetFunction(&mut raw, self.raw, name.as_ptr())
        })?;
        Ok(Function(raw))
    }
}

/// A kernel; valid as long as its module.
#[derive(Clone, Copy, Debug)]
pub struct Function(sys::CUfunction);

// SAFETY: a handle that the driver takes from any thread.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl Function {
    /// Allows the kernel this much dynamic shared memory, in bytes.
    pub(super) fn allow_shared(self, bytes: u32) -> Result<()> {
        let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function's module is alive.
        check("reserving shared memory", unsafe {
            sys::cuFuncSetAttribute(self.0, attribute, bytes.min(i32::MAX as u32) as i32)
        })
    }

    /// Sets multiprocessors that run the kernel to the largest shared memory. Otherwise one that runs a
    /// kernel with little shared memory would not start a kernel that needs more until it is idle, and
    /// kernels that could run concurrently would wait for each other.
    pub(super) fn prefer_shared(self) -> Result<()> {
        let attribute =
            sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
        // SAFETY: the function's module is alive.
        check("preferring shared memory", unsafe {
            sys::cuFuncSetAttribute(self.0, attribute, 100)
        })
    }

    /// Number of blocks of this many threads that are resident on a multiprocessor at once.
    pub(super) fn resident_blocks(self, threads: u32, shared_bytes: u32) -> Result<u32> {
        let mut blocks = 0;
        // SAFETY: the function's module is alive and `blocks` receives the number.
        check("asking how many blocks fit", unsafe {
            sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &mut blocks,
                self.0,
                threads as i32,
                shared_bytes as usize,
            )
        })?;
        Ok(blocks.max(0) as u32)
    }

    /// Whether the kernel itself waits for earlier launches (`kernels/instructions.cuh`).
    pub(super) fn waits(self) -> Result<bool> {
        let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_PTX_VERSION;
        let mut version = 0;
        // SAFETY: the function's module is alive and `version` receives the number.
        check("asking about a kernel", unsafe {
            sys::cuFuncGetAttribute(&mut version, attribute, self.0)
        })?;
        Ok(version >= 90)
    }

    pub(super) fn raw(self) -> sys::CUfunction {
        self.0
    }
}

/// A C string for the driver; our names contain no zero bytes.
pub(super) fn c_name(name: &str) -> CString {
    CString::new(name.replace('\0', "")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greater_priorities_have_smaller_numbers() {
        let numbers = |least, greatest| {
            [Priority::Low, Priority::Normal, Priority::High].map(|p| p.number(least, greatest))
        };
        assert_eq!(numbers(0, -5), [0, -2, -5]);
        // A device without priorities.
        assert_eq!(numbers(0, 0), [0, 0, 0]);
    }

    #[test]
    fn a_failure_has_cudas_name_and_a_cure() {
        let failed = |code| check("launching kernels", code).unwrap_err().to_string();
        assert_eq!(
            failed(CUresult::CUDA_ERROR_OUT_OF_MEMORY),
            "launching kernels: CUDA_ERROR_OUT_OF_MEMORY: the GPU has too little free memory; fewer \
             disparities, a smaller picture or `engine=cpu` need less"
        );
        assert!(failed(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS).contains("a kernel failed"));
        assert!(failed(CUresult::CUDA_ERROR_CONTAINED).contains("`engine=cpu`"));
        assert!(check("x", CUresult::CUDA_SUCCESS).is_ok());
    }
}
