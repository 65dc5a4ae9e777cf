//! Draws a scene with wgpu into any texture view.

mod frame;
mod pipelines;

use anyhow::Result;

pub(crate) use self::frame::descriptor;
use self::frame::{Colouring, FrameTextures, Resources};
use self::pipelines::DEPTHS;
pub(crate) use self::pipelines::Pipelines;
use super::gpu::Gpu;
use super::options::{Content, View};
use super::pane::Pane;
use super::scene::Scene;
use super::wipe;
use stereod_core::frame::Matched;
use stereod_io::sink::colour::ColourMap;

/// Number of lines that `end_of_line` of shaders/points.wgsl draws.
const LINES: u32 = 3 + 8 + 2 * 21;

/// The frame on the device and its drawing resources.
pub(crate) struct Renderer {
    resources: Resources,
    /// Distances of the points in space, as large as the last target that showed them.
    depths: Option<wgpu::Texture>,
    frame: Option<FrameTextures>,
    kept: Option<FrameTextures>,
}

impl Renderer {
    /// Creates a renderer without a frame.
    pub(crate) fn new(gpu: &Gpu) -> Self {
        Self { resources: Resources::new(gpu), depths: None, frame: None, kept: None }
    }

    pub(crate) fn upload(&mut self, gpu: &Gpu, frame: &Matched) -> Result<()> {
        let before = self.frame.take();
        self.frame = Some(self.resources.filled(before, gpu, frame)?);
        Ok(())
    }

    /// Uploads a frame to compare the others with; `None` removes it.
    pub(crate) fn keep(&mut self, gpu: &Gpu, frame: Option<&Matched>) -> Result<()> {
        self.kept = frame.map(|frame| self.resources.filled(None, gpu, frame)).transpose()?;
        Ok(())
    }

    pub(crate) fn frame_size(&self) -> Option<(u32, u32)> {
        self.frame.as_ref().map(|frame| frame.size)
    }

    pub(crate) fn pipelines(
        &self,
        device: &wgpu::Device,
        format: wgpu::TextureFormat,
    ) -> Pipelines {
        self.resources.layouts.pipelines(device, format)
    }

    /// Draws the scene into `target`, black outside the panes. Returns the open pass for the overlay.
    pub(crate) fn draw<'encoder>(
        &mut self,
        gpu: &Gpu,
        encoder: &'encoder mut wgpu::CommandEncoder,
        pipelines: &Pipelines,
        scene: &Scene,
        target: &wgpu::TextureView,
    ) -> wgpu::RenderPass<'encoder> {
        let size = size_in_pixels(target);
        let colouring = Colouring {
            low: scene.limits.low,
            high: scene.limits.high,
            table: ColourMap::ALL.iter().position(|&m| m == scene.colour_map).unwrap_or(0) as u32,
            unused: 0,
        };
        gpu.queue.write_buffer(&self.resources.colouring, 0, bytemuck::bytes_of(&colouring));
        if scene.view == View::Points {
            self.draw_points(gpu, encoder, pipelines, scene, target);
        }
        let load = match scene.view {
            View::Points => wgpu::LoadOp::Load,
            _ => wgpu::LoadOp::Clear(wgpu::Color::BLACK),
        };
        let mut pass = encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
            label: Some("scene"),
            color_attachments: &[Some(attachment(target, load))],
            ..Default::default()
        });
        // Points in space are drawn already, with their distances.
        let panes = self.panes(scene, size);
        for pane in panes.into_iter().filter(|pane| pane.content != Content::Points) {
            gpu.queue.write_buffer(&self.resources.part, 0, bytemuck::bytes_of(&pane.part));
            pass.set_bind_group(1, &self.resources.part_group, &[]);
            for (frame, left, right) in self.parts(&pane, scene) {
                let (pipeline, group) = frame.shown(pane.content, pipelines);
                set_part(&mut pass, &pane, left, right);
                pass.set_pipeline(pipeline);
                pass.set_bind_group(0, group, &[]);
                pass.draw(0..3, 0..1);
            }
        }
        pass.set_viewport(0.0, 0.0, size.0 as f32, size.1 as f32, 0.0, 1.0);
        pass.set_scissor_rect(0, 0, size.0, size.1);
        pass
    }

    /// Draws the points in space in a pass of their own, because they hide each other, which the overlay does
    /// not.
    fn draw_points(
        &mut self,
        gpu: &Gpu,
        encoder: &mut wgpu::CommandEncoder,
        pipelines: &Pipelines,
        scene: &Scene,
        target: &wgpu::TextureView,
    ) {
        let size = size_in_pixels(target);
        let is_as_large = |depths: &wgpu::Texture| (depths.width(), depths.height()) == size;
        let depths = self.depths.take().filter(is_as_large);
        let depths = depths.unwrap_or_else(|| distances(&gpu.device, size));
        let view = depths.create_view(&Default::default());
        let mut pass = encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
            label: Some("points"),
            color_attachments: &[Some(attachment(target, wgpu::LoadOp::Clear(wgpu::Color::BLACK)))],
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
        for pane in self.panes(scene, size) {
            if let Some(frame) = &self.frame {
                let points = frame.points(scene, pane);
                gpu.queue.write_buffer(&self.resources.points, 0, bytemuck::bytes_of(&points));
            }
            let [in_image_colours, in_depth_colours] = &pipelines.points;
            for (frame, left, right) in self.parts(&pane, scene) {
                set_part(&mut pass, &pane, left, right);
                let (pipeline, group) = match scene.depth_colours {
                    false => (in_image_colours, &frame.left.group),
                    true => (in_depth_colours, &frame.disparity_group),
                };
                pass.set_pipeline(pipeline);
                pass.set_bind_group(0, group, &[]);
                pass.set_bind_group(1, &frame.points_group, &[]);
                pass.draw(0..6 * frame.size.0 * frame.size.1, 0..1);
                // From the left camera, its own image is all there is to see.
                if !scene.orbit.is_left_camera() {
                    pass.set_pipeline(&pipelines.lines);
                    pass.set_bind_group(0, &frame.left.group, &[]);
                    pass.draw(0..2 * LINES, 0..1);
                }
            }
        }
        drop(pass);
        self.depths = Some(depths);
    }

    /// Returns the panes of a target of this size; none without a frame.
    fn panes(&self, scene: &Scene, size: (u32, u32)) -> Vec<Pane> {
        self.frame.as_ref().map(|frame| scene.panes(frame.size, size)).unwrap_or_default()
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
}

/// Returns the size of a target in pixels.
fn size_in_pixels(target: &wgpu::TextureView) -> (u32, u32) {
    (target.texture().width(), target.texture().height())
}

fn attachment(
    target: &wgpu::TextureView,
    load: wgpu::LoadOp<wgpu::Color>,
) -> wgpu::RenderPassColorAttachment<'_> {
    wgpu::RenderPassColorAttachment {
        view: target,
        depth_slice: None,
        resolve_target: None,
        ops: wgpu::Operations { load, store: wgpu::StoreOp::Store },
    }
}

fn distances(device: &wgpu::Device, size: (u32, u32)) -> wgpu::Texture {
    let usage = wgpu::TextureUsages::RENDER_ATTACHMENT;
    device.create_texture(&descriptor("distances", size, DEPTHS, usage))
}

/// Limits drawing to the columns of a pane from `left` to `right`.
fn set_part(pass: &mut wgpu::RenderPass<'_>, pane: &Pane, left: u32, right: u32) {
    let [x, y, width, height] = [pane.x, pane.y, pane.width, pane.height];
    pass.set_viewport(x as f32, y as f32, width as f32, height as f32, 0.0, 1.0);
    pass.set_scissor_rect(left, y, right - left, height);
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// Every file of shaders/, also one that nothing includes. Those of the matcher are parts (`src/core/tests/wgpu_parity.rs`).
    #[test]
    fn every_shader_is_valid() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("shaders");
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&folder).expect("the shaders' folder") {
            let path = entry.expect("an entry of the shaders' folder").path();
            if path.is_dir() {
                continue;
            }
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
        let mut included = super::pipelines::SHADERS.map(|(name, _)| name);
        included.sort();
        assert_eq!(names, included, "every shader is used");
    }
    /// Translates a vertex shader of shaders/points.wgsl to that of WebGL 2.
    fn translated(entry_point: &str) -> String {
        use naga::back::glsl;

        let source = super::pipelines::SHADERS.iter().find(|(name, _)| *name == "points.wgsl");
        let module = naga::front::wgsl::parse_str(source.unwrap().1).unwrap();
        let (flags, none) =
            (naga::valid::ValidationFlags::all(), naga::valid::Capabilities::empty());
        let info = naga::valid::Validator::new(flags, none).validate(&module).unwrap();
        let options = glsl::Options {
            version: glsl::Version::new_gles(300),
            writer_flags: glsl::WriterFlags::empty(),
            ..Default::default()
        };
        let pipeline = glsl::PipelineOptions {
            shader_stage: naga::ShaderStage::Vertex,
            entry_point: entry_point.into(),
            multiview: None,
        };
        let mut text = String::new();
        let policies = Default::default();
        let writer = glsl::Writer::new(&mut text, &module, &info, &options, &pipeline, policies);
        writer.unwrap().write().unwrap();
        // Nobody reads it, and the page is to be small.
        let mut text = text.replace("_group_1_binding_", "_").replace("_vs2fs_location0", "_at");
        for sign in [" = ", ", ", " * ", " + ", " / ", " {"] {
            text = text.replace(sign, sign.trim());
        }
        let lines = text.lines().map(str::trim_start).filter(|line| !line.is_empty());
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_page_draws_in_space_by_the_same_shaders() {
        let [corner, end] = ["corner_of_point", "end_of_line"].map(translated);
        let is_same = |(corner, end): &(&str, &str)| corner == end;
        let count = corner.lines().zip(end.lines()).take_while(is_same).count();
        let same = corner.split_inclusive('\n').take(count).collect::<String>();
        let [corner, end] = [corner, end].map(|shader| shader[same.len()..].to_owned());
        let text = format!(
            "// shaders/points.wgsl in GLSL. STEREOD_WRITE_DOCS=1 and the unit test\n\
             // `the_page_draws_in_space_by_the_same_shaders` write this file.\n\
             export const LINES = {};\n\n\
             const SAME = `{same}`;\n\n\
             export const CORNER_OF_POINT = SAME + `{corner}`;\n\n\
             export const END_OF_LINE = SAME + `{end}`;\n",
            super::LINES
        );
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/serve/live/page/space.js");
        if std::env::var_os("STEREOD_WRITE_DOCS").is_some() {
            std::fs::write(&file, &text).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text, "{}", file.display());
    }
}
