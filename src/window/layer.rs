//! The egui layer over the frame: layout and upload.

use std::time::Duration;

use egui::epaint::ClippedPrimitive;
use egui::{Context, Painter, Pos2, Rect, pos2, vec2};
use egui_wgpu::ScreenDescriptor;

use super::bar;
use super::overlay::{OverlayContent, paint};
use crate::keys::Action;

pub(crate) struct Canvas<'a> {
    pub(crate) device: &'a wgpu::Device,
    pub(crate) queue: &'a wgpu::Queue,
    /// Commands of the frame being drawn.
    pub(crate) encoder: &'a mut wgpu::CommandEncoder,
    /// Width and height in pixels.
    pub(crate) size: (u32, u32),
    /// Pixels per point.
    pub(crate) scale: f32,
}

/// Lays a panel out and returns its left edge in points.
pub(crate) type LayOut<'a> = &'a mut dyn FnMut(&Context) -> f32;

#[derive(Default)]
pub(crate) struct Beside {
    /// Width at the right edge and height at the lower one, in pixels.
    pub(crate) taken: (u32, u32),
    /// Action of a button of the bar.
    pub(crate) clicked: Option<Action>,
    /// Time until it needs a new layout.
    pub(crate) again_in: Option<Duration>,
    pub(crate) platform: egui::PlatformOutput,
}

pub(crate) struct Overlay {
    context: Context,
    painter: egui_wgpu::Renderer,
    prepared: Option<(Vec<ClippedPrimitive>, ScreenDescriptor)>,
}

impl Overlay {
    pub(crate) fn new(device: &wgpu::Device, format: wgpu::TextureFormat) -> Self {
        // Without dithering the image is the same on every device.
        let options = egui_wgpu::RendererOptions { dithering: false, ..Default::default() };
        let context = Context::default();
        context.set_theme(egui::Theme::Dark);
        Self { context, painter: egui_wgpu::Renderer::new(device, format, options), prepared: None }
    }

    pub(crate) fn prepare_painted(
        &mut self,
        canvas: &mut Canvas<'_>,
        paint: &mut dyn FnMut(&Painter),
    ) {
        self.prepare_with(canvas, egui::RawInput::default(), &mut |context| {
            paint(&context.layer_painter(egui::LayerId::background()));
        });
    }

    /// Lays the overlay out with its bar, next to a panel at the right edge. `panel` lays the panel out
    /// first, handles its input and returns its left edge in points.
    pub(crate) fn prepare(
        &mut self,
        canvas: &mut Canvas<'_>,
        input: egui::RawInput,
        content: Option<&OverlayContent>,
        mut panel: Option<LayOut<'_>>,
    ) -> Beside {
        let scale = canvas.scale;
        let mut beside = Beside::default();
        let output = self.prepare_with(canvas, input, &mut |context| {
            let whole = context.content_rect();
            let edge = panel.as_mut().map_or(whole.max.x, |panel| panel(context));
            let mut free = Rect::from_min_max(whole.min, pos2(edge, whole.max.y));
            if let Some(content) = content {
                let (top, clicked) = bar::show(context, content);
                beside.clicked = beside.clicked.or(clicked);
                free.max.y = top;
                let painter = context.layer_painter(egui::LayerId::background());
                paint(&painter.with_clip_rect(free), content, scale);
            }
            let pixels = |points: f32| (points * scale).round().max(0.0) as u32;
            beside.taken = (pixels(whole.max.x - free.max.x), pixels(whole.max.y - free.max.y));
        });
        beside.again_in = output.viewport_output.values().map(|view| view.repaint_delay).min();
        beside.platform = output.platform_output;
        beside
    }

    fn prepare_with(
        &mut self,
        canvas: &mut Canvas<'_>,
        mut input: egui::RawInput,
        ui: &mut dyn FnMut(&Context),
    ) -> egui::FullOutput {
        let Canvas { device, queue, encoder, size, scale } = canvas;
        let screen = ScreenDescriptor { size_in_pixels: (*size).into(), pixels_per_point: *scale };
        let points = vec2(size.0 as f32, size.1 as f32) / *scale;
        input.screen_rect = Some(Rect::from_min_size(Pos2::ZERO, points));
        input.max_texture_side = Some(device.limits().max_texture_dimension_2d as usize);
        let viewport = input.viewports.entry(input.viewport_id).or_default();
        viewport.native_pixels_per_point = Some(*scale);
        let mut output = self.context.run_pass(input, |context| ui(context));
        let mut textures = std::mem::take(&mut output.textures_delta);
        for (id, changes) in textures.set.drain() {
            for change in changes {
                self.painter.update_texture(device, queue, id, &change);
            }
        }
        for id in textures.free.drain() {
            self.painter.free_texture(&id);
        }
        let shapes = std::mem::take(&mut output.shapes);
        let primitives = self.context.tessellate(shapes, output.pixels_per_point);
        // The command buffers are those of paint callbacks, and there are none.
        self.painter.update_buffers(device, queue, encoder, &primitives, &screen);
        self.prepared = Some((primitives, screen));
        output
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    pub(crate) fn paint(&mut self, pass: &mut wgpu::RenderPass<'static>) {
        if let Some((primitives, screen)) = &self.prepared {
            self.painter.render(pass, primitives, screen);
        }
    }
}
