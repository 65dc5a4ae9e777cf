//! Draws a scene with wgpu into any texture view.

use anyhow::{Result, bail};
use wgpu::util::DeviceExt;

use super::orbit::Matrix;
use super::scene::{Pane, Scene, panes};
use super::textures::{PictureTextures, Taken, extent, group, texture, write};
use super::view::{Content, View};
use super::wipe;
use crate::core::frame::{Image, Matched, SUBPIXEL, StereoGeometry, Whitened};
use crate::sink::colour::ColourMap;

/// The shaders, by file name.
pub(crate) const SHADERS: [(&str, &str); 4] = [
    ("pane.wgsl", include_str!("../../shaders/pane.wgsl")),
    ("picture.wgsl", include_str!("../../shaders/picture.wgsl")),
    ("disparity.wgsl", include_str!("../../shaders/disparity.wgsl")),
    ("points.wgsl", include_str!("../../shaders/points.wgsl")),
];

/// Format of the distances by which points in space hide each other.
const DEPTHS: wgpu::TextureFormat = wgpu::TextureFormat::Depth32Float;

/// `struct Points` of shaders/points.wgsl.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Points {
    matrix: Matrix,
    centre: [f32; 2],
    focal: f32,
    scale: f32,
    offset: f32,
    near: f32,
    far: f32,
    unused: f32,
}

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
    points_layout: wgpu::BindGroupLayout,
    sampler: wgpu::Sampler,
    tables: wgpu::TextureView,
    colouring: wgpu::Buffer,
    points: wgpu::Buffer,
    /// Distances of the points in space, as large as the last target that showed them.
    depths: Option<wgpu::Texture>,
    frame: Option<FrameTextures>,
    /// The frame that is compared with it.
    kept: Option<FrameTextures>,
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
    points_group: wgpu::BindGroup,
    geometry: StereoGeometry,
}

/// The drawing programs for targets of one format.
pub(crate) struct Pipelines {
    picture: wgpu::RenderPipeline,
    disparity: wgpu::RenderPipeline,
    points: wgpu::RenderPipeline,
}

impl Renderer {
    /// Creates a renderer without a frame.
    pub(crate) fn new(device: &wgpu::Device, queue: &wgpu::Queue) -> Self {
        let picture_layout = layout(
            device,
            wgpu::ShaderStages::FRAGMENT,
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
            wgpu::ShaderStages::FRAGMENT,
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
        let points_layout = layout(
            device,
            wgpu::ShaderStages::VERTEX,
            &[
                texture_binding(wgpu::TextureSampleType::Sint),
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
        let uniform = |label, size: usize| {
            device.create_buffer(&wgpu::BufferDescriptor {
                label: Some(label),
                size: size as u64,
                usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            })
        };
        Self {
            picture_layout,
            disparity_layout,
            points_layout,
            sampler,
            tables: tables(device, queue),
            colouring: uniform("colouring", size_of::<Colouring>()),
            points: uniform("points", size_of::<Points>()),
            depths: None,
            frame: None,
            kept: None,
        }
    }

    /// Uploads a frame, which replaces the one before.
    pub(crate) fn upload(
        &mut self,
        device: &wgpu::Device,
        queue: &wgpu::Queue,
        frame: &Matched,
    ) -> Result<()> {
        let before = self.frame.take();
        self.frame = Some(self.filled(before, device, queue, frame)?);
        Ok(())
    }

    /// Uploads a frame to compare the others with; `None` removes it.
    pub(crate) fn keep(
        &mut self,
        device: &wgpu::Device,
        queue: &wgpu::Queue,
        frame: Option<&Matched>,
    ) -> Result<()> {
        self.kept = frame.map(|frame| self.filled(None, device, queue, frame)).transpose()?;
        Ok(())
    }

    /// Returns textures with a frame: those of the frame before if it had the same size.
    fn filled(
        &self,
        before: Option<FrameTextures>,
        device: &wgpu::Device,
        queue: &wgpu::Queue,
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
        if (right.width(), right.height()) != (left.width(), left.height()) {
            bail!("a right image of another size than the left one");
        }
        let other = |confidence: &Image| {
            (confidence.width(), confidence.height()) != (left.width(), left.height())
        };
        if frame.confidence.as_ref().is_some_and(other) {
            bail!("a confidence of another size than the left image");
        }
        let before = before.filter(|textures| textures.size == size);
        let mut textures = before.unwrap_or_else(|| self.textures(device, size));
        let (layout, sampler) = (&self.picture_layout, &self.sampler);
        let taken = Taken { device, layout, sampler };
        textures.geometry = frame.geometry.unwrap_or_else(|| some_cameras(size));
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
        Ok(textures)
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
        let points_group = group(
            device,
            &self.points_layout,
            [
                wgpu::BindingResource::TextureView(&disparity.create_view(&Default::default())),
                self.points.as_entire_binding(),
            ],
        );
        FrameTextures {
            size,
            geometry: some_cameras(size),
            points_group,
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
    #[allow(clippy::too_many_arguments)] // Device and target come from different owners.
    pub(crate) fn draw<'encoder>(
        &mut self,
        device: &wgpu::Device,
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
        if scene.view == View::Points {
            self.draw_points(device, queue, encoder, pipelines, scene, target, size);
        }
        let load = match scene.view {
            View::Points => wgpu::LoadOp::Load,
            _ => wgpu::LoadOp::Clear(wgpu::Color::BLACK),
        };
        let mut pass = encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
            label: Some("scene"),
            color_attachments: &[Some(wgpu::RenderPassColorAttachment {
                view: target,
                depth_slice: None,
                resolve_target: None,
                ops: wgpu::Operations { load, store: wgpu::StoreOp::Store },
            })],
            ..Default::default()
        });
        if let Some(frame) = &self.frame {
            for pane in panes(scene.view, frame.size, scene.room(size)) {
                if pane.content == Content::Points {
                    // They are drawn already, with their distances.
                    continue;
                }
                for (frame, left, right) in self.parts(&pane, scene) {
                    let (pipeline, group) = match pane.content {
                        Content::Right => (&pipelines.picture, &frame.right.group),
                        Content::Confidence => (&pipelines.picture, &frame.confidence.group),
                        Content::Whitened if frame.whitens => {
                            (&pipelines.picture, &frame.whitened.group)
                        }
                        Content::Disparity => (&pipelines.disparity, &frame.disparity_group),
                        _ => (&pipelines.picture, &frame.left.group),
                    };
                    set_part(&mut pass, &pane, left, right);
                    pass.set_pipeline(pipeline);
                    pass.set_bind_group(0, group, &[]);
                    pass.draw(0..3, 0..1);
                }
            }
        }
        pass.set_viewport(0.0, 0.0, size.0 as f32, size.1 as f32, 0.0, 1.0);
        pass.set_scissor_rect(0, 0, size.0, size.1);
        pass
    }

    /// Draws the points in space in a pass of their own, because they hide each other, which the overlay does
    /// not.
    #[allow(clippy::too_many_arguments)] // As above.
    fn draw_points(
        &mut self,
        device: &wgpu::Device,
        queue: &wgpu::Queue,
        encoder: &mut wgpu::CommandEncoder,
        pipelines: &Pipelines,
        scene: &Scene,
        target: &wgpu::TextureView,
        size: (u32, u32),
    ) {
        let is_as_large = |depths: &wgpu::Texture| (depths.width(), depths.height()) == size;
        let depths = self.depths.take().filter(is_as_large).unwrap_or_else(|| {
            device.create_texture(&wgpu::TextureDescriptor {
                label: Some("distances"),
                size: extent(size),
                mip_level_count: 1,
                sample_count: 1,
                dimension: wgpu::TextureDimension::D2,
                format: DEPTHS,
                usage: wgpu::TextureUsages::RENDER_ATTACHMENT,
                view_formats: &[],
            })
        });
        let view = depths.create_view(&Default::default());
        let mut pass = encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
            label: Some("points"),
            color_attachments: &[Some(wgpu::RenderPassColorAttachment {
                view: target,
                depth_slice: None,
                resolve_target: None,
                ops: wgpu::Operations {
                    load: wgpu::LoadOp::Clear(wgpu::Color::BLACK),
                    store: wgpu::StoreOp::Store,
                },
            })],
            depth_stencil_attachment: Some(wgpu::RenderPassDepthStencilAttachment {
                view: &view,
                depth_ops: Some(wgpu::Operations {
                    load: wgpu::LoadOp::Clear(1.0),
                    store: wgpu::StoreOp::Discard,
                }),
                stencil_ops: None,
            }),
            ..Default::default()
        });
        if let Some(frame) = &self.frame {
            let geometry = &frame.geometry;
            let offset = (geometry.centre_x_px - geometry.right_centre_x_px) as f32;
            let scale = (geometry.focal_px * geometry.baseline_m) as f32;
            // The depth in the middle of the colours.
            let middle = (scene.limits.low + scene.limits.high) as f32 / (2 * SUBPIXEL) as f32;
            let pivot = scale / (middle - offset).max(0.5);
            let [near, far] = scene.depths;
            let points = Points {
                matrix: scene.orbit.matrix(geometry, frame.size, pivot),
                centre: [geometry.centre_x_px as f32, geometry.centre_y_px as f32],
                focal: geometry.focal_px as f32,
                scale,
                offset,
                near,
                far,
                unused: 0.0,
            };
            queue.write_buffer(&self.points, 0, bytemuck::bytes_of(&points));
            pass.set_pipeline(&pipelines.points);
            for pane in panes(scene.view, frame.size, scene.room(size)) {
                for (frame, left, right) in self.parts(&pane, scene) {
                    set_part(&mut pass, &pane, left, right);
                    pass.set_bind_group(0, &frame.left.group, &[]);
                    pass.set_bind_group(1, &frame.points_group, &[]);
                    pass.draw(0..6 * frame.size.0 * frame.size.1, 0..1);
                }
            }
        }
        drop(pass);
        self.depths = Some(depths);
    }

    /// Returns the frames in a pane, each with the columns of the target at which it begins and ends: left
    /// of the wipe the kept one.
    fn parts(
        &self,
        pane: &Pane,
        scene: &Scene,
    ) -> impl Iterator<Item = (&FrameTextures, u32, u32)> {
        let end = pane.x + pane.width;
        let is_as_large = |kept: &&FrameTextures| {
            self.frame.as_ref().is_some_and(|frame| frame.size == kept.size)
        };
        let kept = self.kept.as_ref().filter(is_as_large);
        let kept = kept.filter(|_| wipe::is_matched(pane.content));
        let line = match (kept, scene.wipe) {
            (Some(_), Some(share)) => pane.column_at(share),
            _ => pane.x,
        };
        [kept.map(|kept| (kept, pane.x, line)), self.frame.as_ref().map(|f| (f, line, end))]
            .into_iter()
            .flatten()
            .filter(|&(_, left, right)| left < right)
    }

    /// Creates the pipelines for targets of this format. Colours arrive byte by byte, even if the
    /// format encodes as sRGB.
    pub(crate) fn pipelines(
        &self,
        device: &wgpu::Device,
        format: wgpu::TextureFormat,
    ) -> Pipelines {
        let [pane, picture, disparity, points] = SHADERS.map(|(name, source)| {
            device.create_shader_module(wgpu::ShaderModuleDescriptor {
                label: Some(name),
                source: wgpu::ShaderSource::Wgsl(source.into()),
            })
        });
        let hidden = wgpu::DepthStencilState {
            format: DEPTHS,
            depth_write_enabled: Some(true),
            depth_compare: Some(wgpu::CompareFunction::Less),
            stencil: Default::default(),
            bias: Default::default(),
        };
        let pipeline = |vertex: (_, _), fragment, entry, layouts: &[_], depth_stencil| {
            let layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                label: Some(entry),
                bind_group_layouts: layouts,
                immediate_size: 0,
            });
            let constants = [("encoding_target", f64::from(u8::from(format.is_srgb())))];
            device.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
                label: Some(entry),
                layout: Some(&layout),
                vertex: wgpu::VertexState {
                    module: vertex.0,
                    entry_point: Some(vertex.1),
                    compilation_options: Default::default(),
                    buffers: &[],
                },
                primitive: Default::default(),
                depth_stencil,
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
        let cover = (&pane, "cover");
        let [of_picture, of_disparity, of_points] =
            [&self.picture_layout, &self.disparity_layout, &self.points_layout].map(Some);
        Pipelines {
            picture: pipeline(cover, &picture, "shown", &[of_picture], None),
            disparity: pipeline(cover, &disparity, "coloured", &[of_disparity], None),
            points: pipeline(
                (&points, "corner_of_point"),
                &picture,
                "shown",
                &[of_picture, of_points],
                Some(hidden),
            ),
        }
    }
}

/// Limits drawing to the columns of a pane from `left` to `right`.
fn set_part(pass: &mut wgpu::RenderPass<'_>, pane: &Pane, left: u32, right: u32) {
    let [x, y, width, height] = [pane.x, pane.y, pane.width, pane.height];
    pass.set_viewport(x as f32, y as f32, width as f32, height as f32, 0.0, 1.0);
    pass.set_scissor_rect(left, y, right - left, height);
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

/// Returns cameras for images whose own are unknown: depths have the right order and no true unit.
fn some_cameras((width, height): (u32, u32)) -> StereoGeometry {
    let [centre_x_px, centre_y_px] = [width, height].map(|side| 0.5 * (f64::from(side) - 1.0));
    StereoGeometry {
        focal_px: f64::from(width.max(height)),
        baseline_m: 0.1,
        centre_x_px,
        centre_y_px,
        right_centre_x_px: centre_x_px,
    }
}

/// Bindings 0, 1, ... of a stage.
fn layout(
    device: &wgpu::Device,
    visibility: wgpu::ShaderStages,
    bindings: &[wgpu::BindingType],
) -> wgpu::BindGroupLayout {
    let entries: Vec<_> = (0..)
        .zip(bindings)
        .map(|(binding, &ty)| wgpu::BindGroupLayoutEntry { binding, visibility, ty, count: None })
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
