//! Draws a scene with wgpu into any texture view; knows no window.

use anyhow::{Result, bail};
use wgpu::util::DeviceExt;

use super::scene::{Content, Scene, panes};
use crate::chroma::ColourCoding;
use crate::frame::{Image, Matched};
use crate::sink::colour::ColourMap;

/// The shaders, by file name.
pub(crate) const SHADERS: [(&str, &str); 3] = [
    ("pane.wgsl", include_str!("../../../shaders/pane.wgsl")),
    ("picture.wgsl", include_str!("../../../shaders/picture.wgsl")),
    ("disparity.wgsl", include_str!("../../../shaders/disparity.wgsl")),
];

/// `struct Colouring` of shaders/disparity.wgsl.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Colouring {
    low: i32,
    high: i32,
    table: u32,
    unused: u32,
}

/// `struct Coding` of shaders/picture.wgsl: how grey and two differences become colours.
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

/// The frame on the device and what draws it.
pub(crate) struct Renderer {
    picture_layout: wgpu::BindGroupLayout,
    disparity_layout: wgpu::BindGroupLayout,
    sampler: wgpu::Sampler,
    tables: wgpu::TextureView,
    colouring: wgpu::Buffer,
    frame: Option<FrameTextures>,
}

/// One frame's pictures on the device.
struct FrameTextures {
    size: (u32, u32),
    left: PictureTextures,
    right: PictureTextures,
    confidence: PictureTextures,
    disparity: wgpu::Texture,
    disparity_group: wgpu::BindGroup,
}

/// A picture on the device: its intensity, its colour and how that is coded.
struct PictureTextures {
    label: &'static str,
    pixels: wgpu::Texture,
    differences: wgpu::Texture,
    coding: wgpu::Buffer,
    group: wgpu::BindGroup,
}

/// The drawing programs for targets of one format.
pub(crate) struct Pipelines {
    picture: wgpu::RenderPipeline,
    disparity: wgpu::RenderPipeline,
}

impl Renderer {
    /// A renderer without a frame.
    pub(crate) fn new(device: &wgpu::Device, queue: &wgpu::Queue) -> Self {
        let picture_layout = layout(
            device,
            &[
                texture_binding(wgpu::TextureSampleType::Float { filterable: true }),
                texture_binding(wgpu::TextureSampleType::Float { filterable: true }),
                wgpu::BindingType::Sampler(wgpu::SamplerBindingType::Filtering),
                wgpu::BindingType::Buffer {
                    ty: wgpu::BufferBindingType::Uniform,
                    has_dynamic_offset: false,
                    min_binding_size: None,
                },
            ],
        );
        let disparity_layout = layout(
            device,
            &[
                texture_binding(wgpu::TextureSampleType::Sint),
                texture_binding(wgpu::TextureSampleType::Float { filterable: false }),
                wgpu::BindingType::Buffer {
                    ty: wgpu::BufferBindingType::Uniform,
                    has_dynamic_offset: false,
                    min_binding_size: None,
                },
            ],
        );
        let sampler = device.create_sampler(&wgpu::SamplerDescriptor {
            label: Some("picture"),
            mag_filter: wgpu::FilterMode::Linear,
            min_filter: wgpu::FilterMode::Linear,
            ..Default::default()
        });
        let colouring = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("colouring"),
            size: size_of::<Colouring>() as u64,
            usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let tables = tables(device, queue);
        Self { picture_layout, disparity_layout, sampler, tables, colouring, frame: None }
    }

    /// Brings a frame to the device; it replaces the one before.
    ///
    /// # Errors
    /// Where the picture is larger than the device's textures can be.
    pub(crate) fn upload(
        &mut self,
        device: &wgpu::Device,
        queue: &wgpu::Queue,
        frame: &Matched,
    ) -> Result<()> {
        let left = &frame.pair.left;
        let size = (left.width() as u32, left.height() as u32);
        let most = device.limits().max_texture_dimension_2d;
        if size.0.max(size.1) > most {
            bail!(
                "a {}x{} picture is too large for this graphics device (at most {most} a side); \
                 run with --headless",
                size.0,
                size.1
            );
        }
        if (frame.disparity.width(), frame.disparity.height()) != (left.width(), left.height()) {
            bail!(
                "a {}x{} disparity map for a {}x{} picture",
                frame.disparity.width(),
                frame.disparity.height(),
                size.0,
                size.1
            );
        }
        let right = &frame.pair.right;
        if (right.width(), right.height()) != (left.width(), left.height()) {
            bail!("a right picture of another size than the left one");
        }
        let other = |confidence: &Image| {
            (confidence.width(), confidence.height()) != (left.width(), left.height())
        };
        if frame.confidence.as_ref().is_some_and(other) {
            bail!("a confidence of another size than the left picture");
        }
        if self.frame.as_ref().is_none_or(|textures| textures.size != size) {
            self.frame = Some(self.textures(device, size));
        }
        if let Some(mut textures) = self.frame.take() {
            self.show(device, queue, &mut textures.left, left);
            self.show(device, queue, &mut textures.right, right);
            if let Some(confidence) = &frame.confidence {
                self.show(device, queue, &mut textures.confidence, confidence);
            }
            write(queue, &textures.disparity, bytemuck::cast_slice(frame.disparity.values()), 2);
            self.frame = Some(textures);
        }
        Ok(())
    }

    /// Brings a picture to the device, in textures that fit it.
    fn show(
        &self,
        device: &wgpu::Device,
        queue: &wgpu::Queue,
        textures: &mut PictureTextures,
        picture: &Image,
    ) {
        let chroma = picture.chroma().map(|chroma| (chroma.plane(), chroma.coding()));
        let across = chroma.map_or((1, 1), |(plane, _)| plane.samples_size());
        let across = (across.0 as u32, across.1 as u32);
        if (textures.differences.width(), textures.differences.height()) != across {
            let size = (picture.width() as u32, picture.height() as u32);
            *textures = self.picture(device, textures.label, size, across);
        }
        write(queue, &textures.pixels, picture.pixels(), 1);
        let (samples, coding) = match chroma {
            Some((plane, coding)) => (plane.samples(), coding),
            None => (&[[128; 2]][..], &ColourCoding::GREY),
        };
        write(queue, &textures.differences, samples.as_flattened(), 2);
        queue.write_buffer(&textures.coding, 0, bytemuck::bytes_of(&Coding::from(coding)));
    }

    /// Room for a picture of `size` whose colour has `across` samples.
    fn picture(
        &self,
        device: &wgpu::Device,
        label: &'static str,
        size: (u32, u32),
        across: (u32, u32),
    ) -> PictureTextures {
        let pixels = texture(device, label, size, wgpu::TextureFormat::R8Unorm);
        let differences = texture(device, label, across, wgpu::TextureFormat::Rg8Unorm);
        let coding = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some(label),
            size: size_of::<Coding>() as u64,
            usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let views = [&pixels, &differences].map(|t| t.create_view(&Default::default()));
        let group = group(
            device,
            &self.picture_layout,
            [
                wgpu::BindingResource::TextureView(&views[0]),
                wgpu::BindingResource::TextureView(&views[1]),
                wgpu::BindingResource::Sampler(&self.sampler),
                coding.as_entire_binding(),
            ],
        );
        PictureTextures { label, pixels, differences, coding, group }
    }

    fn textures(&self, device: &wgpu::Device, size: (u32, u32)) -> FrameTextures {
        let disparity = texture(device, "disparity", size, wgpu::TextureFormat::R16Sint);
        let [left, right, confidence] = ["left picture", "right picture", "confidence"]
            .map(|label| self.picture(device, label, size, (1, 1)));
        let disparity_group = group(
            device,
            &self.disparity_layout,
            [
                wgpu::BindingResource::TextureView(&disparity.create_view(&Default::default())),
                wgpu::BindingResource::TextureView(&self.tables),
                self.colouring.as_entire_binding(),
            ],
        );
        FrameTextures { size, left, right, confidence, disparity, disparity_group }
    }

    /// Size of the frame on the device.
    pub(crate) fn frame_size(&self) -> Option<(u32, u32)> {
        self.frame.as_ref().map(|frame| frame.size)
    }

    /// Draws the scene into `target` (width, height in pixels); what the picture leaves free
    /// becomes black. The pass is open to draw the overlay in.
    pub(crate) fn draw<'encoder>(
        &self,
        queue: &wgpu::Queue,
        encoder: &'encoder mut wgpu::CommandEncoder,
        pipelines: &Pipelines,
        scene: &Scene,
        target: &wgpu::TextureView,
        size: (u32, u32),
    ) -> wgpu::RenderPass<'encoder> {
        let colouring = Colouring {
            low: scene.limits.low,
            high: scene.limits.high,
            table: ColourMap::ALL.iter().position(|&m| m == scene.colour_map).unwrap_or(0) as u32,
            unused: 0,
        };
        queue.write_buffer(&self.colouring, 0, bytemuck::bytes_of(&colouring));
        let mut pass = encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
            label: Some("scene"),
            color_attachments: &[Some(wgpu::RenderPassColorAttachment {
                view: target,
                depth_slice: None,
                resolve_target: None,
                ops: wgpu::Operations {
                    load: wgpu::LoadOp::Clear(wgpu::Color::BLACK),
                    store: wgpu::StoreOp::Store,
                },
            })],
            ..Default::default()
        });
        if let Some(frame) = &self.frame {
            for pane in panes(scene.view, frame.size, scene.room(size)) {
                let (pipeline, group) = match pane.content {
                    Content::Left => (&pipelines.picture, &frame.left.group),
                    Content::Right => (&pipelines.picture, &frame.right.group),
                    Content::Confidence => (&pipelines.picture, &frame.confidence.group),
                    Content::Disparity => (&pipelines.disparity, &frame.disparity_group),
                };
                let [x, y, width, height] = [pane.x, pane.y, pane.width, pane.height];
                pass.set_viewport(x as f32, y as f32, width as f32, height as f32, 0.0, 1.0);
                pass.set_scissor_rect(x, y, width, height);
                pass.set_pipeline(pipeline);
                pass.set_bind_group(0, group, &[]);
                pass.draw(0..3, 0..1);
            }
        }
        pass.set_viewport(0.0, 0.0, size.0 as f32, size.1 as f32, 0.0, 1.0);
        pass.set_scissor_rect(0, 0, size.0, size.1);
        pass
    }

    /// The drawing programs for targets of this format. Colours arrive there byte by byte, also
    /// where the format is one that encodes as sRGB.
    pub(crate) fn pipelines(
        &self,
        device: &wgpu::Device,
        format: wgpu::TextureFormat,
    ) -> Pipelines {
        let [pane, picture, disparity] = SHADERS.map(|(name, source)| {
            device.create_shader_module(wgpu::ShaderModuleDescriptor {
                label: Some(name),
                source: wgpu::ShaderSource::Wgsl(source.into()),
            })
        });
        let pipeline = |fragment, entry, layout| {
            let layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                label: Some(entry),
                bind_group_layouts: &[Some(layout)],
                immediate_size: 0,
            });
            let constants = [("encoding_target", f64::from(u8::from(format.is_srgb())))];
            device.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
                label: Some(entry),
                layout: Some(&layout),
                vertex: wgpu::VertexState {
                    module: &pane,
                    entry_point: Some("cover"),
                    compilation_options: Default::default(),
                    buffers: &[],
                },
                primitive: Default::default(),
                depth_stencil: None,
                multisample: Default::default(),
                fragment: Some(wgpu::FragmentState {
                    module: fragment,
                    entry_point: Some(entry),
                    compilation_options: wgpu::PipelineCompilationOptions {
                        constants: &constants,
                        ..Default::default()
                    },
                    targets: &[Some(format.into())],
                }),
                multiview_mask: None,
                cache: None,
            })
        };
        Pipelines {
            picture: pipeline(&picture, "shown", &self.picture_layout),
            disparity: pipeline(&disparity, "coloured", &self.disparity_layout),
        }
    }
}

/// Every colour map's table, one a row, in the order of [`ColourMap::ALL`].
fn tables(device: &wgpu::Device, queue: &wgpu::Queue) -> wgpu::TextureView {
    let colours: Vec<u8> = ColourMap::ALL
        .iter()
        .flat_map(|map| map.table())
        .flat_map(|&[red, green, blue]| [red, green, blue, 255])
        .collect();
    let descriptor = wgpu::TextureDescriptor {
        label: Some("colour tables"),
        size: extent((256, ColourMap::ALL.len() as u32)),
        mip_level_count: 1,
        sample_count: 1,
        dimension: wgpu::TextureDimension::D2,
        format: wgpu::TextureFormat::Rgba8Unorm,
        usage: wgpu::TextureUsages::TEXTURE_BINDING,
        view_formats: &[],
    };
    let order = wgpu::util::TextureDataOrder::LayerMajor;
    device
        .create_texture_with_data(queue, &descriptor, order, &colours)
        .create_view(&Default::default())
}

fn extent((width, height): (u32, u32)) -> wgpu::Extent3d {
    wgpu::Extent3d { width, height, depth_or_array_layers: 1 }
}

fn texture(
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
fn write(queue: &wgpu::Queue, texture: &wgpu::Texture, bytes: &[u8], bytes_per_pixel: u32) {
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

fn texture_binding(sample_type: wgpu::TextureSampleType) -> wgpu::BindingType {
    wgpu::BindingType::Texture {
        sample_type,
        view_dimension: wgpu::TextureViewDimension::D2,
        multisampled: false,
    }
}

/// Bindings 0, 1, ... of the fragment shader.
fn layout(device: &wgpu::Device, bindings: &[wgpu::BindingType]) -> wgpu::BindGroupLayout {
    let entries: Vec<_> = (0..)
        .zip(bindings)
        .map(|(binding, &ty)| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::FRAGMENT,
            ty,
            count: None,
        })
        .collect();
    device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: None,
        entries: &entries,
    })
}

/// Bind group of bindings 0, 1, ....
fn group<const N: usize>(
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// Every file of shaders/, also one that nothing includes.
    #[test]
    fn every_shader_is_valid() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("shaders");
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&folder).expect("the shaders' folder") {
            let path = entry.expect("an entry of the shaders' folder").path();
            let source = std::fs::read_to_string(&path).expect("a shader");
            let module = naga::front::wgsl::parse_str(&source).unwrap_or_else(|e| {
                panic!("{}", e.emit_to_string_with_path(&source, &path.to_string_lossy()))
            });
            naga::valid::Validator::new(
                naga::valid::ValidationFlags::all(),
                naga::valid::Capabilities::empty(),
            )
            .validate(&module)
            .unwrap_or_else(|e| panic!("{}: {e:?}", path.display()));
            names.push(path.file_name().unwrap().to_string_lossy().into_owned());
        }
        names.sort();
        let mut included = super::SHADERS.map(|(name, _)| name);
        included.sort();
        assert_eq!(names, included, "every shader is used");
    }
}
