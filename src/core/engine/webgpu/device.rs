//! A device of a graphics API that wgpu reaches (Vulkan), for computing.

use std::sync::{Arc, OnceLock};

use anyhow::bail;
use wgpu::{
    Adapter, AdapterInfo, Device, DeviceType, Features, Instance, InstanceDescriptor, Limits, Queue,
};

/// Largest buffer on a device that also draws the desktop, in bytes. Work is cut so that no buffer is larger, which
/// also keeps each dispatch short: drivers stop programs whose work takes seconds.
const SHARED_BUFFER_MAX: u64 = 128 << 20;

/// How the engine uses a device.
#[derive(Clone, Copy, Debug)]
pub struct WebGpuOptions {
    /// Largest buffer in bytes; `None`: as large as suits the device.
    pub buffer_max: Option<u64>,
    /// Whether lanes of a subgroup exchange numbers without memory, if the device can.
    pub subgroups: bool,
    /// A text of the shaders and what takes its place: tests break shaders to see that others notice.
    #[doc(hidden)]
    pub mutation: Option<(&'static str, &'static str)>,
}

impl Default for WebGpuOptions {
    fn default() -> Self {
        Self { buffer_max: None, subgroups: true, mutation: None }
    }
}

/// A device that the engine can use, for people and programs.
#[derive(Clone, Debug)]
pub struct WebGpuDevice {
    pub name: String,
    /// The graphics API and its driver.
    pub driver: String,
    /// Whether it is the CPU in truth.
    pub is_software: bool,
}

/// Whether to look for a GPU at all. Asking the drivers takes a tenth of a second. On Linux GPUs have nodes: of the
/// kernel's drivers, of NVIDIA's own, of Windows' subsystem.
pub(super) fn may_have_gpu() -> bool {
    let is_node =
        |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with("renderD");
    let nodes = std::fs::read_dir("/dev/dri");
    let others = ["/dev/nvidiactl", "/dev/dxg"].map(std::path::Path::new);
    !cfg!(target_os = "linux")
        || others.iter().any(|node| node.exists())
        || nodes.is_ok_and(|all| all.flatten().any(is_node))
}

/// The GPUs, the preferred one first, then software if there is a GPU.
pub fn list() -> Vec<WebGpuDevice> {
    if !may_have_gpu() {
        return Vec::new();
    }
    let device = |adapter: &Adapter| {
        let info = adapter.get_info();
        let driver = format!("{} {} {}", info.backend, info.driver, info.driver_info);
        WebGpuDevice {
            driver: driver.trim_end().to_owned(),
            is_software: info.device_type == DeviceType::Cpu,
            name: info.name,
        }
    };
    adapters().iter().map(device).collect()
}

/// Variables of the environment that choose among the devices.
const CHOOSING: [&str; 2] = ["WGPU_BACKEND", "WGPU_ADAPTER_NAME"];

/// All adapters, the preferred one first. [`CHOOSING`] chooses among them.
fn adapters() -> Vec<Adapter> {
    // NVIDIA's driver gives no device after some hundred instances, and every change of a running matcher opens one.
    static INSTANCE: OnceLock<(u32, Instance)> = OnceLock::new();
    let this = std::process::id();
    let new = || Instance::new(descriptor().with_env());
    let mut adapters = match INSTANCE.get_or_init(|| (this, new())) {
        (process, instance) if *process == this => adapters_of(instance),
        // A fork cannot use that of its parent.
        _ => adapters_of(&new()),
    };
    if let Ok(name) = std::env::var(CHOOSING[1]) {
        let name = name.to_lowercase();
        adapters.retain(|adapter| adapter.get_info().name.to_lowercase().contains(&name));
    }
    adapters.sort_by_key(|adapter| rank(&adapter.get_info()));
    adapters
}

fn descriptor() -> InstanceDescriptor {
    let mut descriptor = InstanceDescriptor::new_without_display_handle();
    descriptor.backends = wgpu::Backends::PRIMARY;
    descriptor.flags = wgpu::InstanceFlags::empty();
    descriptor
}

fn adapters_of(instance: &Instance) -> Vec<Adapter> {
    pollster::block_on(instance.enumerate_adapters(wgpu::Backends::PRIMARY))
}

/// Returns why there is no adapter: none at all, or none that [`CHOOSING`] leaves.
fn no_adapter() -> NoDevice {
    let value = |name: &&str| Some(format!("{name}={}", std::env::var(name).ok()?));
    let said: Vec<String> = CHOOSING.iter().filter_map(value).collect();
    let names = adapters_of(&Instance::new(descriptor())).into_iter().map(|it| it.get_info().name);
    let there: Vec<String> = names.collect();
    match said.is_empty() || there.is_empty() {
        true => NoDevice::None,
        false => NoDevice::LeftOut { said: said.join(" with "), there: there.join(", ") },
    }
}

/// No device can be used; the CPU engine can.
#[derive(Debug, thiserror::Error)]
pub enum NoDevice {
    #[error(
        "there is no device with a Vulkan driver (Debian's mesa-vulkan-drivers has those of AMD, Intel and the Raspberry Pi)"
    )]
    None,
    #[error("{said} fits none of the devices that are there: {there}")]
    LeftOut { said: String, there: String },
    #[error("{name} refuses: {reason}")]
    Refused { name: String, reason: String },
}

pub(super) struct Gpu {
    pub device: Device,
    pub queue: Queue,
    pub info: AdapterInfo,
    pub limits: Limits,
    pub features: Features,
    pub options: WebGpuOptions,
    /// The first error that no call reported.
    failure: Arc<OnceLock<String>>,
}

/// Order of preference: hardware before software.
fn rank(info: &AdapterInfo) -> u8 {
    match info.device_type {
        DeviceType::DiscreteGpu => 0,
        DeviceType::IntegratedGpu => 1,
        DeviceType::VirtualGpu => 2,
        DeviceType::Other => 3,
        DeviceType::Cpu => 4,
    }
}

impl Gpu {
    /// Opens the best device.
    pub fn open(options: WebGpuOptions) -> anyhow::Result<Self> {
        match adapters().first() {
            Some(adapter) => Self::on(adapter, options),
            None => Err(no_adapter().into()),
        }
    }

    fn on(adapter: &Adapter, options: WebGpuOptions) -> anyhow::Result<Self> {
        let (info, limits) = (adapter.get_info(), adapter.limits());
        let features = adapter.features() & (Features::SUBGROUP | Features::TIMESTAMP_QUERY);
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("stereod"),
            required_features: features,
            required_limits: limits.clone(),
            memory_hints: wgpu::MemoryHints::MemoryUsage,
            ..Default::default()
        };
        let opened = pollster::block_on(adapter.request_device(&descriptor));
        let (device, queue) = opened.map_err(|error| NoDevice::Refused {
            name: info.name.clone(),
            reason: error.to_string(),
        })?;
        let failure = Arc::new(OnceLock::new());
        let first = failure.clone();
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            let _ = first.set(error.to_string());
        }));
        let first = failure.clone();
        device.set_device_lost_callback(move |_, message| {
            let _ = first.set(format!("the device was lost: {message}"));
        });
        Ok(Self { device, queue, info, limits, features, options, failure })
    }

    /// Fails if something failed since the device was opened.
    pub fn check(&self) -> anyhow::Result<()> {
        match self.failure.get() {
            Some(failure) => bail!("{} failed: {failure}", self.info.name),
            None => Ok(()),
        }
    }

    /// The device and its driver.
    pub fn identity(&self) -> String {
        let AdapterInfo { name, driver, driver_info, backend, .. } = &self.info;
        format!("{name}, {backend}, {driver} {driver_info}")
    }

    pub fn is_software(&self) -> bool {
        self.info.device_type == DeviceType::Cpu
    }

    /// Largest buffer that the device has, in bytes.
    pub fn buffer_limit(&self) -> u64 {
        self.limits.max_buffer_size.min(self.limits.max_storage_buffer_binding_size)
    }

    /// Largest buffer to use, in bytes.
    pub fn buffer_max(&self) -> u64 {
        let suits = match self.info.device_type {
            DeviceType::DiscreteGpu => u64::MAX,
            _ => SHARED_BUFFER_MAX,
        };
        self.buffer_limit().min(self.options.buffer_max.unwrap_or(suits))
    }

    /// Least number of lanes of a subgroup; `None` without subgroups, or with tiny ones.
    pub fn subgroup(&self) -> Option<u32> {
        let lanes = self.info.subgroup_min_size;
        let has_them = self.options.subgroups && self.features.contains(Features::SUBGROUP);
        (has_them && lanes >= 4).then_some(lanes)
    }
}
