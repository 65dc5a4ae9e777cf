//! Images on the device: intensity, colour and its coding.

use stereod_core::chroma::{ColourCoding, NONE};
use stereod_core::frame::Image;

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
        let coding = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some(label),
            size: size_of::<Coding>() as u64,
            usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
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

pub(super) fn extent((width, height): (u32, u32)) -> wgpu::Extent3d {
    wgpu::Extent3d { width, height, depth_or_array_layers: 1 }
}

pub(super) fn texture(
    device: &wgpu::Device,
    label: &str,
    size: (u32, u32),
    format: wgpu::TextureFormat,
) -> wgpu::Texture {
    device.create_texture(&wgpu::TextureDescriptor {
        label: Some(label),
        size: extent(size),
        mip_level_count: 1,
        sample_count: 1,
        dimension: wgpu::TextureDimension::D2,
        format,
        usage: wgpu::TextureUsages::TEXTURE_BINDING | wgpu::TextureUsages::COPY_DST,
        view_formats: &[],
    })
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

/// Returns the bind group of bindings 0, 1, ....
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
