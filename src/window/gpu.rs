//! A graphics device: a real GPU if there is one, else software (Mesa's lavapipe or llvmpipe).

use std::sync::{Arc, OnceLock};

use anyhow::{Result, bail};

pub(crate) struct Gpu {
    pub(crate) adapter: wgpu::Adapter,
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    /// The first error that the device reported.
    failure: Arc<OnceLock<String>>,
}

/// Connects to the graphics drivers, for windows on `display`.
pub(crate) fn instance(display: Option<winit::event_loop::OwnedDisplayHandle>) -> wgpu::Instance {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = wgpu::Backends::VULKAN | wgpu::Backends::GL;
    // Validation layers are for people who develop drivers; wgpu validates by itself.
    descriptor.flags = wgpu::InstanceFlags::empty();
    descriptor.display = display.map(|display| Box::new(display) as _);
    // WGPU_BACKEND=gl, for example, avoids a broken Vulkan driver.
    wgpu::Instance::new(descriptor.with_env())
}

const DRIVERS: &str =
    "install a Vulkan or OpenGL driver (mesa-vulkan-drivers holds one that needs no GPU)";

/// Fails if there is no graphics adapter.
pub(crate) fn probe(instance: &wgpu::Instance) -> Result<()> {
    if pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all())).is_empty() {
        bail!("no graphics adapter; {DRIVERS}");
    }
    Ok(())
}

impl Gpu {
    /// Opens the best adapter that can show images on `surface`, trying the next one if a
    /// driver refuses. `on_failure` is called, from any thread, when the device fails later.
    pub(crate) fn open(
        instance: &wgpu::Instance,
        surface: Option<&wgpu::Surface<'_>>,
        on_failure: impl Fn() + Send + Sync + 'static,
    ) -> Result<Self> {
        let mut adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all()));
        adapters.retain(|adapter| surface.is_none_or(|s| adapter.is_surface_supported(s)));
        adapters.sort_by_key(rank);
        let on_failure = Arc::new(on_failure);
        let mut refusals = Vec::new();
        for adapter in adapters {
            let info = adapter.get_info();
            match Self::on_adapter(adapter, on_failure.clone()) {
                Ok(gpu) => {
                    tracing::debug!(name = info.name, backend = %info.backend, "graphics adapter");
                    return Ok(gpu);
                }
                Err(error) => refusals.push(format!("{} ({}): {error}", info.name, info.backend)),
            }
        }
        if refusals.is_empty() {
            let use_ = if surface.is_some() { " for this display" } else { "" };
            bail!("no graphics adapter{use_}; {DRIVERS}");
        }
        bail!("no graphics adapter can be used; {DRIVERS}: {}", refusals.join("; "))
    }

    fn on_adapter(
        adapter: wgpu::Adapter,
        on_failure: Arc<impl Fn() + Send + Sync + 'static>,
    ) -> Result<Self, wgpu::RequestDeviceError> {
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("stereod window"),
            // The limits of the weakest adapters, but images as large as this one accepts.
            required_limits: wgpu::Limits::downlevel_webgl2_defaults()
                .using_resolution(adapter.limits()),
            ..Default::default()
        };
        let (device, queue) = pollster::block_on(adapter.request_device(&descriptor))?;
        // Without these two, wgpu panics.
        let failure = Arc::new(OnceLock::new());
        let (first, wake) = (failure.clone(), on_failure.clone());
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            tracing::debug!("graphics error: {error}");
            let _ = first.set(error.to_string());
            wake();
        }));
        let first = failure.clone();
        device.set_device_lost_callback(move |reason, message| {
            // Dropping the device at the end is no failure.
            if reason != wgpu::DeviceLostReason::Destroyed {
                let _ = first.set(format!("the device was lost: {message}"));
                on_failure();
            }
        });
        Ok(Self { adapter, device, queue, failure })
    }

    pub(crate) fn check(&self) -> Result<()> {
        match self.failure.get() {
            None => Ok(()),
            Some(failure) => {
                let name = self.adapter.get_info().name;
                bail!("the graphics device failed ({name}): {failure}")
            }
        }
    }
}

/// Returns the sort key of an adapter: hardware before software, Vulkan before OpenGL.
fn rank(adapter: &wgpu::Adapter) -> (u8, u8) {
    let info = adapter.get_info();
    let kind = match info.device_type {
        wgpu::DeviceType::DiscreteGpu => 0,
        wgpu::DeviceType::IntegratedGpu => 1,
        wgpu::DeviceType::VirtualGpu => 2,
        wgpu::DeviceType::Other => 3,
        wgpu::DeviceType::Cpu => 4,
    };
    (kind, u8::from(info.backend != wgpu::Backend::Vulkan))
}
