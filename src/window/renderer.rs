//! Draws a scene with wgpu into any texture view.

use anyhow::{Result, bail};
use wgpu::util::DeviceExt;

use super::scene::{Scene, panes};
use super::textures::{PictureTextures, Taken, extent, group, texture, write};
use super::view::Content;
use crate::core::frame::{Image, Matched, Whitened};
use crate::sink::colour::ColourMap;

/// The shaders, by file name.
pub(crate) const SHADERS: [(&str, &str); 3] = [
    ("pane.wgsl", include_str!("../../shaders/pane.wgsl")),
    ("picture.wgsl", include_str!("../../shaders/picture.wgsl")),
    ("disparity.wgsl", include_str!("../../shaders/disparity.wgsl")),
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

/// The frame on the device and its drawing resources.
pub(crate) struct Renderer {
    picture_layout: wgpu::BindGroupLayout,
    disparity_layout: wgpu::BindGroupLayout,
    sampler: wgpu::Sampler,
    tables: wgpu::TextureView,
    colouring: wgpu::Buffer,
    frame: Option<FrameTextures>,
}

/// Textures of one frame on the device.
struct FrameTextures {
    size: (u32, u32),
    left: PictureTextures,
    right: PictureTextures,
    confidence: PictureTextures,
    whitened: PictureTextures,
    /// True if there is a whitened image; otherwise the left one takes its place.
    whitens: bool,
    disparity: wgpu::Texture,
    disparity_group: wgpu::BindGroup,
}

/// The drawing programs for targets of one format.
pub(crate) struct Pipelines {
    picture: wgpu::RenderPipeline,
    disparity: wgpu::RenderPipeline,
}

impl Renderer {
    /// Creates a renderer without a frame.
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

    /// Uploads a frame, which replaces the one before.
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
        let (layout, sampler) = (&self.picture_layout, &self.sampler);
        let taken = Taken { device, layout, sampler };
        if let Some(textures) = &mut self.frame {
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
            write(queue, &textures.disparity, bytemuck::cast_slice(frame.disparity.values()), 2);
        }
        Ok(())
    }

    fn textures(&self, device: &wgpu::Device, size: (u32, u32)) -> FrameTextures {
        let disparity = texture(device, "disparity", size, wgpu::TextureFormat::R16Sint);
        let taken = Taken { device, layout: &self.picture_layout, sampler: &self.sampler };
        let [left, right, confidence, whitened] =
            ["left picture", "right picture", "confidence", "whitened picture"]
                .map(|label| PictureTextures::new(&taken, label, size, (1, 1)));
        let disparity_group = group(
            device,
            &self.disparity_layout,
            [
                wgpu::BindingResource::TextureView(&disparity.create_view(&Default::default())),
                wgpu::BindingResource::TextureView(&self.tables),
                self.colouring.as_entire_binding(),
            ],
        );
        FrameTextures {
            size,
            left,
            right,
            confidence,
            whitened,
            whitens: false,
            disparity,
            disparity_group,
        }
    }

    /// Returns the size of the frame on the device.
    pub(crate) fn frame_size(&self) -> Option<(u32, u32)> {
        self.frame.as_ref().map(|frame| frame.size)
    }

    /// Draws the scene into `target` (width, height in pixels), black outside the panes. Returns the
    /// open pass for the overlay.
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
                    Content::Whitened if frame.whitens => {
                        (&pipelines.picture, &frame.whitened.group)
                    }
                    Content::Whitened => (&pipelines.picture, &frame.left.group),
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

    /// Creates the pipelines for targets of this format. Colours arrive byte by byte, even if the
    /// format encodes as sRGB.
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

/// Returns the tables of all colour maps, one per row, in the order of [`ColourMap::ALL`].
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
