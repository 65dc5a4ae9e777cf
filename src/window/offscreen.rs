//! The content of the window drawn into a texture and read back.

use std::sync::mpsc;

use anyhow::{Context, Result, bail};
use image::RgbaImage;

use super::gpu::{self, Gpu};
use super::layer::{Canvas, Overlay};
use super::overlay::OverlayContent;
use super::renderer::{Pipelines, Renderer, descriptor};
use super::scene::Scene;
use stereod_core::frame::Matched;

pub(crate) const FORMAT: wgpu::TextureFormat = wgpu::TextureFormat::Rgba8Unorm;

/// Draws scenes into memory. Needs a graphics driver (lavapipe suffices) but no display.
pub struct Offscreen {
    gpu: Gpu,
    renderer: Renderer,
    pipelines: Pipelines,
    overlay: Overlay,
    /// Pixels per point of the overlay.
    pub scale: f32,
}

impl Offscreen {
    pub fn new() -> Result<Self> {
        let gpu = Gpu::open(&gpu::instance(None), None, || ())?;
        let renderer = Renderer::new(&gpu);
        let pipelines = renderer.pipelines(&gpu.device, FORMAT);
        let overlay = Overlay::new(&gpu.device, FORMAT);
        gpu.check()?;
        Ok(Self { gpu, renderer, pipelines, overlay, scale: 1.0 })
    }

    /// Returns the name of the device that draws, for people: "llvmpipe (LLVM 15.0.6, 256 bits),
    /// vulkan".
    pub fn description(&self) -> String {
        let info = self.gpu.adapter.get_info();
        format!("{}, {}", info.name, info.backend)
    }

    /// Keeps a frame, which is drawn left of the line of a scene with a wipe; `None` removes it.
    pub fn keep(&mut self, frame: Option<&Matched>) -> Result<()> {
        self.renderer.keep(&self.gpu, frame)
    }

    /// Draws `frame` as a window of `size` (width, height in pixels) shows it, with an overlay if
    /// its content is given.
    pub fn render(
        &mut self,
        frame: &Matched,
        scene: &Scene,
        size: (u32, u32),
        overlay: Option<&OverlayContent>,
    ) -> Result<RgbaImage> {
        self.draw(frame, scene, size, |painter, canvas, scene| {
            let Some(content) = overlay else { return false };
            scene.taken = painter.prepare(canvas, Default::default(), Some(content), None).taken;
            true
        })
    }

    /// Draws as [`Self::render`], left of a panel that `panel` lays out; it returns its left edge in points.
    #[cfg(test)]
    pub(crate) fn render_beside(
        &mut self,
        frame: &Matched,
        scene: &Scene,
        size: (u32, u32),
        overlay: &OverlayContent,
        panel: &mut dyn FnMut(&egui::Context) -> f32,
    ) -> Result<RgbaImage> {
        self.draw(frame, scene, size, |painter, canvas, scene| {
            let beside = painter.prepare(canvas, Default::default(), Some(overlay), Some(panel));
            scene.taken = beside.taken;
            true
        })
    }

    fn draw(
        &mut self,
        frame: &Matched,
        scene: &Scene,
        size: (u32, u32),
        prepare: impl FnOnce(&mut Overlay, &mut Canvas<'_>, &mut Scene) -> bool,
    ) -> Result<RgbaImage> {
        let Gpu { device, queue, .. } = &self.gpu;
        self.renderer.upload(&self.gpu, frame)?;
        let target = Target::new(device, size)?;
        let mut encoder = device.create_command_encoder(&Default::default());
        let mut scene = *scene;
        let mut canvas = Canvas { device, queue, encoder: &mut encoder, size, scale: self.scale };
        let overlaid = prepare(&mut self.overlay, &mut canvas, &mut scene);
        let view = target.view();
        let pass = self.renderer.draw(&self.gpu, &mut encoder, &self.pipelines, &scene, &view);
        if overlaid {
            self.overlay.paint(&mut pass.forget_lifetime());
        } else {
            drop(pass);
        }
        let readback = target.read_back(device, &mut encoder);
        queue.submit([encoder.finish()]);
        let picture = readback.wait(device);
        self.gpu.check()?;
        picture
    }
}

pub(crate) struct Target {
    texture: wgpu::Texture,
}

impl Target {
    pub(crate) fn new(device: &wgpu::Device, (width, height): (u32, u32)) -> Result<Self> {
        let most = device.limits().max_texture_dimension_2d;
        if width == 0 || height == 0 || width.max(height) > most {
            bail!("this graphics device cannot draw {width}x{height} pixels (1 to {most} a side)");
        }
        let usage = wgpu::TextureUsages::RENDER_ATTACHMENT | wgpu::TextureUsages::COPY_SRC;
        let descriptor = descriptor("off-screen", (width, height), FORMAT, usage);
        let texture = device.create_texture(&descriptor);
        Ok(Self { texture })
    }

    pub(crate) fn view(&self) -> wgpu::TextureView {
        self.texture.create_view(&Default::default())
    }

    /// Requests the image as drawn by the commands encoded so far.
    pub(crate) fn read_back(
        self,
        device: &wgpu::Device,
        encoder: &mut wgpu::CommandEncoder,
    ) -> Readback {
        let (width, height) = (self.texture.width(), self.texture.height());
        let pitch = (width * 4).next_multiple_of(wgpu::COPY_BYTES_PER_ROW_ALIGNMENT);
        let buffer = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("read back"),
            size: u64::from(pitch) * u64::from(height),
            usage: wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ,
            mapped_at_creation: false,
        });
        encoder.copy_texture_to_buffer(
            self.texture.as_image_copy(),
            wgpu::TexelCopyBufferInfo {
                buffer: &buffer,
                layout: wgpu::TexelCopyBufferLayout {
                    offset: 0,
                    bytes_per_row: Some(pitch),
                    rows_per_image: None,
                },
            },
            self.texture.size(),
        );
        Readback { buffer, width, height, pitch }
    }
}

pub(crate) struct Readback {
    buffer: wgpu::Buffer,
    width: u32,
    height: u32,
    pitch: u32,
}

impl Readback {
    /// Waits for the image. Its commands must have been submitted.
    pub(crate) fn wait(self, device: &wgpu::Device) -> Result<RgbaImage> {
        let (done, mapped) = mpsc::channel();
        self.buffer.slice(..).map_async(wgpu::MapMode::Read, move |result| {
            // The receiver is gone only if waiting failed.
            let _ = done.send(result);
        });
        device.poll(wgpu::PollType::wait_indefinitely()).context("waiting for the image")?;
        mapped.recv().context("the graphics device is gone")?.context("reading the image")?;
        let mapping = self.buffer.slice(..).get_mapped_range()?;
        let mut pixels = Vec::with_capacity(self.width as usize * self.height as usize * 4);
        for row in mapping.chunks_exact(self.pitch as usize) {
            pixels.extend_from_slice(&row[..self.width as usize * 4]);
        }
        RgbaImage::from_raw(self.width, self.height, pixels).context("the image is incomplete")
    }
}
