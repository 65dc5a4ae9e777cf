//! Frames on the device.

use anyhow::{Result, bail};
use wgpu::util::DeviceExt;

use super::pipelines::{Layouts, Pipelines};
use crate::window::gpu::Gpu;
use crate::window::options::Content;
use crate::window::orbit::{Matrix, Space, geometry_of};
use crate::window::pane::Pane;
use crate::window::scene::Scene;
use stereod_core::chroma::{ColourCoding, NONE};
use stereod_core::frame::{Image, Matched, StereoGeometry, Whitened};
use stereod_core::matching::verdict;
use stereod_io::sink::colour::ColourMap;

/// `struct Space` of shaders/points.wgsl.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(super) struct Points {
    matrix: Matrix,
    centre: [f32; 2],
    spread: [f32; 2],
    focal: f32,
    scale: f32,
    offset: f32,
    step: f32,
    near: f32,
    far: f32,
    ground: f32,
    square: f32,
    swell: f32,
    unused: [f32; 7],
}

/// `struct Colouring` of shaders/disparity.wgsl.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(super) struct Colouring {
    pub low: i32,
    pub high: i32,
    pub table: u32,
    pub unused: u32,
}

/// Resources of the drawing programs that all frames share.
pub(super) struct Resources {
    pub layouts: Layouts,
    sampler: wgpu::Sampler,
    tables: wgpu::TextureView,
    pub colouring: wgpu::Buffer,
    pub points: wgpu::Buffer,
    /// The visible part of the flat views.
    pub part: wgpu::Buffer,
    pub part_group: wgpu::BindGroup,
}

pub(super) struct FrameTextures {
    pub size: (u32, u32),
    pub left: PictureTextures,
    pub right: PictureTextures,
    pub confidence: PictureTextures,
    pub whitened: PictureTextures,
    /// True if there is a whitened image; otherwise the left one takes its place.
    pub whitens: bool,
    /// The verdicts, and whether there are any.
    pub check: PictureTextures,
    pub checks: bool,
    pub disparity: wgpu::Texture,
    pub disparity_group: wgpu::BindGroup,
    pub points_group: wgpu::BindGroup,
    pub geometry: StereoGeometry,
}

impl FrameTextures {
    pub(super) fn shown<'a>(
        &'a self,
        content: Content,
        pipelines: &'a Pipelines,
    ) -> (&'a wgpu::RenderPipeline, &'a wgpu::BindGroup) {
        match content {
            Content::Right => (&pipelines.picture, &self.right.group),
            Content::Confidence => (&pipelines.picture, &self.confidence.group),
            Content::Whitened if self.whitens => (&pipelines.picture, &self.whitened.group),
            Content::Check if self.checks => (&pipelines.picture, &self.check.group),
            Content::Disparity => (&pipelines.disparity, &self.disparity_group),
            _ => (&pipelines.picture, &self.left.group),
        }
    }

    /// Returns the numbers by which the frame becomes points in space.
    pub(super) fn points(&self, scene: &Scene, pane: Pane) -> Points {
        let space = Space::new(scene.orbit, self.geometry, self.size, pane);
        let geometry = &self.geometry;
        let [near, far] = scene.depths;
        Points {
            matrix: space.matrix,
            centre: [geometry.centre_x_px as f32, geometry.centre_y_px as f32],
            spread: space.spread,
            focal: geometry.focal_px as f32,
            scale: (geometry.focal_px * geometry.baseline_m) as f32,
            offset: (geometry.centre_x_px - geometry.right_centre_x_px) as f32,
            step: 1.0,
            near,
            far,
            ground: space.lowest(),
            square: scene.orbit.square(),
            swell: space.swell(),
            unused: [0.0; 7],
        }
    }
}

impl Resources {
    pub fn new(gpu: &Gpu) -> Self {
        let device = &gpu.device;
        let sampler = device.create_sampler(&wgpu::SamplerDescriptor {
            label: Some("picture"),
            mag_filter: wgpu::FilterMode::Linear,
            min_filter: wgpu::FilterMode::Linear,
            ..Default::default()
        });
        let layouts = Layouts::new(device);
        let part = uniform(device, "visible part", size_of::<[f32; 4]>());
        let part_group = group(device, &layouts.part, [part.as_entire_binding()]);
        Self {
            layouts,
            part,
            part_group,
            sampler,
            tables: tables(gpu),
            colouring: uniform(device, "colouring", size_of::<Colouring>()),
            points: uniform(device, "points", size_of::<Points>()),
        }
    }

    /// Returns textures with a frame: those of the frame before if it had the same size.
    pub(super) fn filled(
        &self,
        before: Option<FrameTextures>,
        Gpu { device, queue, .. }: &Gpu,
        frame: &Matched,
    ) -> Result<FrameTextures> {
        let left = &frame.pair.left;
        let size = (left.width() as u32, left.height() as u32);
        let most = device.limits().max_texture_dimension_2d;
        if size.0.max(size.1) > most {
            bail!(
                "a {}x{} image is too large for this graphics device (at most {most} a side); \
                 run with --headless",
                size.0,
                size.1
            );
        }
        if (frame.disparity.width(), frame.disparity.height()) != (left.width(), left.height()) {
            bail!(
                "a {}x{} disparity map for a {}x{} image",
                frame.disparity.width(),
                frame.disparity.height(),
                size.0,
                size.1
            );
        }
        let right = &frame.pair.right;
        let is_other =
            |image: &Image| (image.width(), image.height()) != (left.width(), left.height());
        if is_other(right) || frame.confidence.as_ref().is_some_and(is_other) {
            bail!("a right image or a confidence of another size than the left image");
        }
        let before = before.filter(|textures| textures.size == size);
        let mut textures = before.unwrap_or_else(|| self.textures(device, frame));
        let (layout, sampler) = (&self.layouts.picture, &self.sampler);
        let taken = Taken { device, layout, sampler };
        textures.geometry = geometry_of(frame);
        textures.left.show(&taken, queue, left);
        textures.right.show(&taken, queue, right);
        if let Some(confidence) = &frame.confidence {
            textures.confidence.show(&taken, queue, confidence);
        }
        let is_as_large = |whitened: &&Whitened| {
            (whitened.width(), whitened.height()) == (left.width(), left.height())
        };
        let whitened = frame.whitened.as_ref().filter(is_as_large);
        textures.whitens = whitened.is_some();
        if let Some(whitened) = whitened {
            textures.whitened.show(&taken, queue, &in_grey(whitened));
        }
        textures.checks = frame.verdicts.is_some();
        if let Some(verdicts) = &frame.verdicts {
            textures.check.show(&taken, queue, &verdict::picture(verdicts));
        }
        write(queue, &textures.disparity, bytemuck::cast_slice(frame.disparity.values()), 2);
        Ok(textures)
    }

    fn textures(&self, device: &wgpu::Device, frame: &Matched) -> FrameTextures {
        let size = (frame.disparity.width() as u32, frame.disparity.height() as u32);
        let disparity = texture(device, "disparity", size, wgpu::TextureFormat::R16Sint);
        let taken = Taken { device, layout: &self.layouts.picture, sampler: &self.sampler };
        let [left, right, confidence, whitened, check] =
            ["left picture", "right picture", "confidence", "whitened picture", "verdicts"]
                .map(|label| PictureTextures::new(&taken, label, size, (1, 1)));
        let disparity_group = group(
            device,
            &self.layouts.disparity,
            [
                wgpu::BindingResource::TextureView(&disparity.create_view(&Default::default())),
                wgpu::BindingResource::TextureView(&self.tables),
                self.colouring.as_entire_binding(),
            ],
        );
        let points_group = group(
            device,
            &self.layouts.points,
            [
                wgpu::BindingResource::TextureView(&disparity.create_view(&Default::default())),
                self.points.as_entire_binding(),
            ],
        );
        FrameTextures {
            size,
            geometry: geometry_of(frame),
            points_group,
            left,
            right,
            confidence,
            whitened,
            whitens: false,
            check,
            checks: false,
            disparity,
            disparity_group,
        }
    }
}

/// Returns the tables of all colour maps, one per row, in the order of [`ColourMap::ALL`]. The last column has the
/// colour of unknown pixels.
fn tables(Gpu { device, queue, .. }: &Gpu) -> wgpu::TextureView {
    let colours: Vec<u8> = ColourMap::ALL
        .iter()
        .flat_map(|map| map.table().iter().copied().chain([map.unknown()]))
        .flat_map(|[red, green, blue]| [red, green, blue, 255])
        .collect();
    let size = (257, ColourMap::ALL.len() as u32);
    let (format, usage) = (wgpu::TextureFormat::Rgba8Unorm, wgpu::TextureUsages::TEXTURE_BINDING);
    let descriptor = descriptor("colour tables", size, format, usage);
    let order = wgpu::util::TextureDataOrder::LayerMajor;
    device
        .create_texture_with_data(queue, &descriptor, order, &colours)
        .create_view(&Default::default())
}

/// Raises the contrast of a whitened image four times around a middle grey; motion becomes black or white.
fn in_grey(whitened: &Whitened) -> Image {
    let grey = |&value: &u16| {
        let residual = i32::from(value & !7) - 32768;
        match (value & 1 == 1, residual > 0) {
            (true, true) => 255,
            (true, false) => 0,
            (false, _) => (128 + residual / 32).clamp(32, 224) as u8,
        }
    };
    let pixels = whitened.pixels().iter().map(grey).collect();
    Image::from_vec(whitened.width(), whitened.height(), pixels)
}

/// `struct Coding` of shaders/picture.wgsl: conversion of grey and two differences to colours.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Coding {
    black: f32,
    luma: f32,
    red_cr: f32,
    green_cb: f32,
    green_cr: f32,
    blue_cb: f32,
    unused: [f32; 2],
}

impl From<&ColourCoding> for Coding {
    fn from(coding: &ColourCoding) -> Self {
        let ColourCoding { black, luma, red_cr, green_cb, green_cr, blue_cb } = *coding;
        let [luma, red_cr, green_cb, green_cr, blue_cb] =
            [luma, red_cr, green_cb, green_cr, blue_cb].map(|weight| weight as f32 / 65536.0);
        let black = black as f32 / 255.0;
        Self { black, luma, red_cr, green_cb, green_cr, blue_cb, unused: [0.0; 2] }
    }
}

/// An image on the device: intensity, colour and its coding.
pub(super) struct PictureTextures {
    label: &'static str,
    pixels: wgpu::Texture,
    differences: wgpu::Texture,
    coding: wgpu::Buffer,
    pub(super) group: wgpu::BindGroup,
}

/// Bindings of the shader for images: their layout and the sampler.
pub(super) struct Taken<'a> {
    pub(super) device: &'a wgpu::Device,
    pub(super) layout: &'a wgpu::BindGroupLayout,
    pub(super) sampler: &'a wgpu::Sampler,
}

impl PictureTextures {
    /// Allocates textures for an image of `size` with `across` colour samples (width, height).
    pub(super) fn new(
        taken: &Taken<'_>,
        label: &'static str,
        size: (u32, u32),
        across: (u32, u32),
    ) -> Self {
        let Taken { device, layout, sampler } = *taken;
        let pixels = texture(device, label, size, wgpu::TextureFormat::R8Unorm);
        let differences = texture(device, label, across, wgpu::TextureFormat::Rg8Unorm);
        let coding = uniform(device, label, size_of::<Coding>());
        let views = [&pixels, &differences].map(|t| t.create_view(&Default::default()));
        let resources = [
            wgpu::BindingResource::TextureView(&views[0]),
            wgpu::BindingResource::TextureView(&views[1]),
            wgpu::BindingResource::Sampler(sampler),
            coding.as_entire_binding(),
        ];
        let group = group(device, layout, resources);
        Self { label, pixels, differences, coding, group }
    }

    /// Uploads an image, with new textures if its colour format has changed.
    pub(super) fn show(&mut self, taken: &Taken<'_>, queue: &wgpu::Queue, picture: &Image) {
        let chroma = picture.chroma().map(|chroma| (chroma.plane(), chroma.coding()));
        let across = chroma.map_or((1, 1), |(plane, _)| plane.samples_size());
        let across = (across.0 as u32, across.1 as u32);
        if (self.differences.width(), self.differences.height()) != across {
            let size = (picture.width() as u32, picture.height() as u32);
            *self = Self::new(taken, self.label, size, across);
        }
        write(queue, &self.pixels, picture.pixels(), 1);
        let (samples, coding) = match chroma {
            Some((plane, coding)) => (plane.samples(), coding),
            None => (&[NONE][..], &ColourCoding::GREY),
        };
        write(queue, &self.differences, samples.as_flattened(), 2);
        queue.write_buffer(&self.coding, 0, bytemuck::bytes_of(&Coding::from(coding)));
    }
}

/// Describes a plain texture of `size` (width, height).
pub(crate) fn descriptor(
    label: &str,
    (width, height): (u32, u32),
    format: wgpu::TextureFormat,
    usage: wgpu::TextureUsages,
) -> wgpu::TextureDescriptor<'_> {
    wgpu::TextureDescriptor {
        label: Some(label),
        size: wgpu::Extent3d { width, height, depth_or_array_layers: 1 },
        mip_level_count: 1,
        sample_count: 1,
        dimension: wgpu::TextureDimension::D2,
        format,
        usage,
        view_formats: &[],
    }
}

fn uniform(device: &wgpu::Device, label: &str, size: usize) -> wgpu::Buffer {
    device.create_buffer(&wgpu::BufferDescriptor {
        label: Some(label),
        size: size as u64,
        usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    })
}

pub(super) fn texture(
    device: &wgpu::Device,
    label: &str,
    size: (u32, u32),
    format: wgpu::TextureFormat,
) -> wgpu::Texture {
    let usage = wgpu::TextureUsages::TEXTURE_BINDING | wgpu::TextureUsages::COPY_DST;
    device.create_texture(&descriptor(label, size, format, usage))
}

/// Fills a texture with tightly packed rows.
pub(super) fn write(
    queue: &wgpu::Queue,
    texture: &wgpu::Texture,
    bytes: &[u8],
    bytes_per_pixel: u32,
) {
    queue.write_texture(
        texture.as_image_copy(),
        bytes,
        wgpu::TexelCopyBufferLayout {
            offset: 0,
            bytes_per_row: Some(texture.width() * bytes_per_pixel),
            rows_per_image: None,
        },
        texture.size(),
    );
}

pub(super) fn group<const N: usize>(
    device: &wgpu::Device,
    layout: &wgpu::BindGroupLayout,
    resources: [wgpu::BindingResource<'_>; N],
) -> wgpu::BindGroup {
    let mut binding = 0..;
    let entries = resources.map(|resource| wgpu::BindGroupEntry {
        binding: binding.next().unwrap_or_default(),
        resource,
    });
    device.create_bind_group(&wgpu::BindGroupDescriptor { label: None, layout, entries: &entries })
}
