//! The CUDA devices of this machine and, for each that the engine cannot use, the reason.

use std::ffi::{CStr, c_char};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use cudarc::driver::sys::{self, CUdevice_attribute as Attribute, CUresult};

use super::driver::{Context, CudaError, check};
use super::nvrtc::{self, Version};

/// Oldest compute capability of the kernels.
pub const OLDEST: (u32, u32) = (7, 5);

/// Oldest driver, by the CUDA version that it supports.
const OLDEST_DRIVER: Version = Version { major: 12, minor: 0 };

const PARTS_DRIVER: Version = Version { major: 12, minor: 4 };

/// Reason why the engine cannot run; the message holds the cure.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Unusable {
    #[error(
        "there is no NVIDIA driver (libcuda.so.1); install NVIDIA's driver if this machine has a GPU"
    )]
    NoDriver,
    #[error(
        "the NVIDIA driver supports CUDA {found}; {OLDEST_DRIVER} or newer is needed, so update the driver (525 or newer)"
    )]
    OldDriver { found: Version },
    #[error("the NVIDIA driver does not work: {0}")]
    Driver(#[from] CudaError),
    #[error(
        "the NVIDIA driver finds no GPU; see whether nvidia-smi lists one and CUDA_VISIBLE_DEVICES hides none"
    )]
    NoDevice,
    #[error("no CUDA device {wanted}; this machine has {count}: `stereod devices` lists them")]
    NoSuchDevice { wanted: usize, count: usize },
    #[error("{name} has compute capability {}.{}; {}.{} or newer is needed", .compute.0, .compute.1, OLDEST.0, OLDEST.1)]
    OldDevice { name: String, compute: (u32, u32) },
    #[error(
        "{name} has {there} multiprocessors, not {wanted}; set engine.multiprocessors to at most that, or to \"auto\""
    )]
    TooFewMultiprocessors { name: String, there: u32, wanted: u32 },
    #[error(
        "the NVIDIA driver supports CUDA {found}, and {PARTS_DRIVER} or newer can limit a program to some multiprocessors; \
         update the driver, or set engine.multiprocessors to \"auto\""
    )]
    NoParts { found: Version },
    #[error("{0}")]
    Nvrtc(#[from] nvrtc::Missing),
}

impl Unusable {
    /// Reports whether this machine simply has no GPU, so that no warning is needed.
    pub fn is_absence(&self) -> bool {
        matches!(self, Unusable::NoDriver | Unusable::NoDevice)
    }
}

/// Reports whether this machine has an NVIDIA GPU, with or without a driver: on its PCI bus, or in a Tegra
/// (Jetson). `sys` is the mount point of sysfs: `/sys`.
pub fn is_fitted(sys: &Path) -> bool {
    // A list of zero-terminated texts.
    let board = std::fs::read(sys.join("firmware/devicetree/base/compatible")).unwrap_or_default();
    if String::from_utf8_lossy(&board).contains("nvidia,tegra") {
        return true;
    }
    let devices = std::fs::read_dir(sys.join("bus/pci/devices")).into_iter().flatten().flatten();
    let says = |folder: &Path, name: &str, begin: &str| {
        std::fs::read_to_string(folder.join(name)).is_ok_and(|text| text.starts_with(begin))
    };
    let mut devices = devices.map(|device| device.path());
    // Vendor, and class of displays and graphics accelerators.
    devices.any(|device| says(&device, "vendor", "0x10de") && says(&device, "class", "0x03"))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Properties {
    pub compute: (u32, u32),
    pub multiprocessors: u32,
    /// Maximum opt-in shared memory of a block in bytes.
    pub shared_per_block: u32,
    /// Shared memory of a multiprocessor in bytes.
    pub shared_per_multiprocessor: u32,
    /// Maximum resident threads of a multiprocessor.
    pub threads_per_multiprocessor: u32,
    /// 32-bit registers of a multiprocessor.
    pub registers_per_multiprocessor: u32,
    /// Whether grids can be launched cooperatively.
    pub cooperative: bool,
}

impl Properties {
    /// The architecture's number, 90 for compute capability 9.0.
    pub fn sm(&self) -> u32 {
        self.compute.0 * 10 + self.compute.1
    }

    /// Returns a typical device of the architecture, for compiling without a device: the figures of the CUDA
    /// C++ Programming Guide, table "Technical Specifications per Compute Capability".
    pub fn typical(sm: u32) -> Self {
        let (multiprocessors, shared, threads) = match sm {
            75 => (40, 64, 1024),
            80 => (108, 164, 2048),
            87 => (16, 164, 1536),
            86 => (84, 100, 1536),
            89 => (128, 100, 1536),
            90 => (132, 228, 2048),
            100..=119 => (148, 228, 2048),
            _ => (170, 100, 1536),
        };
        // A block gets 1 KiB less than the multiprocessor has, except on sm_75.
        let reserved = if sm == 75 { 0 } else { 1 };
        Self {
            compute: (sm / 10, sm % 10),
            multiprocessors,
            shared_per_block: (shared - reserved) * 1024,
            shared_per_multiprocessor: shared * 1024,
            threads_per_multiprocessor: threads,
            registers_per_multiprocessor: 65536,
            cooperative: true,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Its number in the driver's order, which CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER change.
    pub ordinal: usize,
    pub name: String,
    pub properties: Properties,
    pub total_bytes: usize,
}

impl DeviceInfo {
    pub fn check(&self) -> Result<(), Unusable> {
        let compute = self.properties.compute;
        if compute < OLDEST {
            return Err(Unusable::OldDevice { name: self.name.clone(), compute });
        }
        Ok(())
    }

    pub fn open(&self) -> Result<Arc<Context>, CudaError> {
        Context::retain(handle(self.ordinal)?)
    }

    /// Opens at most this number of multiprocessors; the properties become those of the part.
    pub fn open_part(&mut self, multiprocessors: u32) -> Result<Arc<Context>, Unusable> {
        let there = self.properties.multiprocessors;
        if multiprocessors > there {
            let (name, wanted) = (self.name.clone(), multiprocessors);
            return Err(Unusable::TooFewMultiprocessors { name, there, wanted });
        }
        let found = driver()?;
        if found < PARTS_DRIVER {
            return Err(Unusable::NoParts { found });
        }
        let (context, got) = Context::of_part(handle(self.ordinal)?, multiprocessors)?;
        self.properties.multiprocessors = got;
        Ok(context)
    }
}

/// The CUDA version that the driver supports, with the driver ready for use.
pub fn driver() -> Result<Version, Unusable> {
    // Only once, because each probe opens the library and closes it again.
    static PRESENT: OnceLock<bool> = OnceLock::new();
    // SAFETY: the driver's library has no requirements on who opens it.
    if !*PRESENT.get_or_init(|| unsafe { sys::is_culib_present() }) {
        return Err(Unusable::NoDriver);
    }
    // SAFETY: the library exists, and every version of it has the function.
    match unsafe { sys::cuInit(0) } {
        CUresult::CUDA_ERROR_NO_DEVICE => return Err(Unusable::NoDevice),
        // The toolkit's stub library, for linking only.
        CUresult::CUDA_ERROR_STUB_LIBRARY => return Err(Unusable::NoDriver),
        code => check("starting the driver", code)?,
    }
    let mut version = 0;
    // SAFETY: as above; `version` receives the number.
    check("asking for the driver's version", unsafe { sys::cuDriverGetVersion(&mut version) })?;
    let found = Version { major: version as u32 / 1000, minor: version as u32 % 1000 / 10 };
    if found < OLDEST_DRIVER {
        return Err(Unusable::OldDriver { found });
    }
    Ok(found)
}

/// Every CUDA device, in the driver's order; at least one.
pub fn list() -> Result<Vec<DeviceInfo>, Unusable> {
    driver()?;
    let mut count = 0;
    // SAFETY: `count` receives the number.
    check("counting the GPUs", unsafe { sys::cuDeviceGetCount(&mut count) })?;
    let devices: Result<Vec<_>, CudaError> = (0..count.max(0) as usize).map(describe).collect();
    let devices = devices?;
    if devices.is_empty() { Err(Unusable::NoDevice) } else { Ok(devices) }
}

pub fn choose(devices: Vec<DeviceInfo>, wanted: Option<usize>) -> Result<DeviceInfo, Unusable> {
    let count = devices.len();
    let chosen = match wanted {
        Some(wanted) => devices
            .into_iter()
            .find(|device| device.ordinal == wanted)
            .ok_or(Unusable::NoSuchDevice { wanted, count })?,
        None => {
            let usable = devices.iter().position(|device| device.check().is_ok());
            devices.into_iter().nth(usable.unwrap_or(0)).ok_or(Unusable::NoDevice)?
        }
    };
    chosen.check()?;
    Ok(chosen)
}

fn handle(ordinal: usize) -> Result<sys::CUdevice, CudaError> {
    let mut device = 0;
    // SAFETY: `device` receives the handle; the driver refuses numbers out of range.
    check("opening the GPU", unsafe {
        sys::cuDeviceGet(&mut device, i32::try_from(ordinal).unwrap_or(i32::MAX))
    })?;
    Ok(device)
}

fn describe(ordinal: usize) -> Result<DeviceInfo, CudaError> {
    let device = handle(ordinal)?;
    let attribute = |attribute: Attribute| {
        let mut value = 0;
        // SAFETY: the device exists and `value` receives the attribute.
        check("asking about the GPU", unsafe {
            sys::cuDeviceGetAttribute(&mut value, attribute, device)
        })?;
        Ok::<u32, CudaError>(value.max(0) as u32)
    };
    let mut name: [c_char; 256] = [0; 256];
    // SAFETY: the length is the array's; the driver ends the name with zero.
    let name = unsafe {
        check("asking about the GPU", sys::cuDeviceGetName(name.as_mut_ptr(), 255, device))?;
        CStr::from_ptr(name.as_ptr()).to_string_lossy().into_owned()
    };
    let mut total_bytes = 0;
    // SAFETY: `total_bytes` receives the size.
    check("asking about the GPU", unsafe { sys::cuDeviceTotalMem_v2(&mut total_bytes, device) })?;
    use Attribute as A;
    let properties = Properties {
        compute: (
            attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        multiprocessors: attribute(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        shared_per_block: attribute(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        shared_per_multiprocessor: attribute(
            A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
        )?,
        threads_per_multiprocessor: attribute(
            A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
        )?,
        registers_per_multiprocessor: attribute(
            A::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR,
        )?,
        cooperative: attribute(A::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH)? != 0,
    };
    Ok(DeviceInfo { ordinal, name, properties, total_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(ordinal: usize, sm: u32) -> DeviceInfo {
        let properties = Properties::typical(sm);
        DeviceInfo { ordinal, name: format!("GPU {sm}"), properties, total_bytes: 1 << 33 }
    }

    #[test]
    fn the_first_device_that_will_do_is_chosen() {
        let devices = vec![device(0, 61), device(1, 75), device(2, 90)];
        assert_eq!(choose(devices.clone(), None).unwrap().ordinal, 1);
        assert_eq!(choose(devices.clone(), Some(2)).unwrap().ordinal, 2);
        assert_eq!(
            choose(devices.clone(), Some(3)).unwrap_err().to_string(),
            "no CUDA device 3; this machine has 3: `stereod devices` lists them"
        );
        let old = "GPU 61 has compute capability 6.1; 7.5 or newer is needed";
        assert_eq!(choose(devices, Some(0)).unwrap_err().to_string(), old);
        assert_eq!(choose(vec![device(0, 61)], None).unwrap_err().to_string(), old);
        assert_eq!(choose(vec![], None), Err(Unusable::NoDevice));
    }

    #[test]
    fn a_machine_without_a_gpu_is_no_reason_to_warn() {
        assert!(Unusable::NoDriver.is_absence() && Unusable::NoDevice.is_absence());
        let old = Unusable::OldDriver { found: Version { major: 11, minor: 4 } };
        assert!(!old.is_absence());
        assert!(old.to_string().contains("supports CUDA 11.4; 12.0 or newer"), "{old}");
    }

    #[test]
    fn a_gpu_without_a_driver_is_seen_on_the_bus() {
        let sys = tempfile::tempdir().unwrap();
        assert!(!is_fitted(sys.path()));
        let plug = |slot: &str, vendor: &str, class: &str| {
            let device = sys.path().join("bus/pci/devices").join(slot);
            std::fs::create_dir_all(&device).unwrap();
            std::fs::write(device.join("vendor"), format!("{vendor}\n")).unwrap();
            std::fs::write(device.join("class"), format!("{class}\n")).unwrap();
            is_fitted(sys.path())
        };
        // Another maker's GPU, and an audio device of NVIDIA.
        assert!(!plug("0000:00:02.0", "0x8086", "0x030000"));
        assert!(!plug("0000:01:00.1", "0x10de", "0x040300"));
        assert!(plug("0000:01:00.0", "0x10de", "0x030200"));
    }

    #[test]
    fn the_gpu_of_a_jetson_is_seen_in_the_device_tree() {
        let board = |compatible: &str| {
            let sys = tempfile::tempdir().unwrap();
            let base = sys.path().join("firmware/devicetree/base");
            std::fs::create_dir_all(&base).unwrap();
            std::fs::write(base.join("compatible"), compatible).unwrap();
            is_fitted(sys.path())
        };
        assert!(board("nvidia,p3768-0000+p3767-0005\0nvidia,p3767-0005\0nvidia,tegra234\0"));
        assert!(!board("raspberrypi,5-model-b\0brcm,bcm2712\0"));
    }

    /// Probing does not panic on any machine, and gives a reason.
    #[test]
    fn probing_never_panics() {
        match list() {
            Ok(devices) => assert!(!devices.is_empty()),
            Err(reason) => assert!(!reason.to_string().is_empty()),
        }
    }
}
