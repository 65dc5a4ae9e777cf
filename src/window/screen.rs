//! The window on the display: its surface, and the drawing of a frame.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use winit::dpi::PhysicalSize;
use winit::event::WindowEvent;
use winit::event_loop::ActiveEventLoop;
use winit::window::{Fullscreen, Window};

use super::bar;
use super::gpu::Gpu;
use super::layer::{Beside, Canvas, LayOut, Overlay};
use super::offscreen::{self, Readback, Target};
use super::options::{View, WindowOptions};
use super::overlay::{Bar, OverlayContent};
use super::remote::{Remote, Wake};
use super::renderer::{Pipelines, Renderer};
use super::scene::{Lens, Scene, window_size};
use super::timeline::Timeline;
use stereod_core::frame::Matched;

pub(crate) struct Screen {
    // The surface is dropped before the window it is on.
    surface: wgpu::Surface<'static>,
    configuration: wgpu::SurfaceConfiguration,
    gpu: Gpu,
    instance: wgpu::Instance,
    renderer: Renderer,
    pipelines: Pipelines,
    /// Pipelines for snapshots; created with the first.
    snapshot_pipelines: Option<Pipelines>,
    overlay: Overlay,
    input: egui_winit::State,
    opened: Instant,
    size: (u32, u32),
    pub(crate) window: Arc<Window>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drawn {
    /// The frame is on its way to the screen.
    Shown,
    /// The window cannot be seen.
    Hidden,
    /// Drawing failed this time.
    Later,
}

impl Screen {
    pub(crate) fn open(
        event_loop: &ActiveEventLoop,
        instance: &wgpu::Instance,
        options: &WindowOptions,
        remote: Remote,
    ) -> Result<Self> {
        let full_screen = options.full_screen.then_some(Fullscreen::Borderless(None));
        let (width, height) = first_size(event_loop, options);
        let attributes = Window::default_attributes()
            .with_title(&options.title)
            .with_inner_size(PhysicalSize::new(width, height))
            .with_min_inner_size(PhysicalSize::new(64, 48))
            .with_fullscreen(full_screen);
        let window = event_loop.create_window(attributes).context("cannot open a window")?;
        let window = Arc::new(window);
        let surface = instance.create_surface(window.clone()).context("cannot draw in a window")?;
        let gpu = Gpu::open(instance, Some(&surface), move || remote.wake(Wake::Graphics))?;
        let size = window.inner_size();
        let most = gpu.device.limits().max_texture_dimension_2d;
        let mut configuration = surface
            .get_default_config(&gpu.adapter, size.width.clamp(1, most), size.height.clamp(1, most))
            .context("the graphics device cannot draw in this window")?;
        let formats = surface.get_capabilities(&gpu.adapter).formats;
        configuration.format = plainest(&formats).unwrap_or(configuration.format);
        configuration.present_mode = wgpu::PresentMode::Fifo;
        // Each frame queued for the screen adds a frame period of latency.
        configuration.desired_maximum_frame_latency = 1;
        surface.configure(&gpu.device, &configuration);
        let renderer = Renderer::new(&gpu);
        let pipelines = renderer.pipelines(&gpu.device, configuration.format);
        let overlay = Overlay::new(&gpu.device, configuration.format);
        gpu.check()?;
        let context = overlay.context().clone();
        let viewport = egui::ViewportId::ROOT;
        let input = egui_winit::State::new(context, viewport, &window, None, None, None);
        Ok(Self {
            surface,
            configuration,
            gpu,
            instance: instance.clone(),
            renderer,
            pipelines,
            snapshot_pipelines: None,
            overlay,
            input,
            opened: Instant::now(),
            size: size.into(),
            window,
        })
    }

    pub(crate) fn check(&self) -> Result<()> {
        self.gpu.check()
    }

    /// Returns the size of the drawing area in pixels; 0 while the window is minimised on some
    /// systems.
    pub(crate) fn size(&self) -> (u32, u32) {
        let most = self.gpu.device.limits().max_texture_dimension_2d;
        (self.size.0.min(most), self.size.1.min(most))
    }

    /// Stores the window's new size. Asking the window instead would cost a round trip to the display
    /// for each frame, and a panic if the display is gone.
    pub(crate) fn resized(&mut self, size: PhysicalSize<u32>) {
        self.size = size.into();
    }

    pub(crate) fn upload(&mut self, frame: &Matched) -> Result<()> {
        self.renderer.upload(&self.gpu, frame)
    }

    /// Uploads a frame to compare the others with; `None` removes it.
    pub(crate) fn keep(&mut self, frame: Option<&Matched>) -> Result<()> {
        self.renderer.keep(&self.gpu, frame)
    }

    /// Draws the last uploaded frame with the overlay, left of a panel that `panel` lays out.
    pub(crate) fn draw(
        &mut self,
        scene: &Scene,
        overlay: Option<&OverlayContent>,
        panel: Option<LayOut<'_>>,
    ) -> Result<(Drawn, Beside)> {
        let mut input = self.input.egui_input_mut().take();
        input.time = Some(self.opened.elapsed().as_secs_f64());
        let mut beside = Beside::default();
        if overlay.is_none() && panel.is_none() {
            return Ok((self.draw_over(scene, |_, _, _| false)?, beside));
        }
        let drawn = self.draw_over(scene, |painter, canvas, scene| {
            beside = painter.prepare(canvas, input, overlay, panel);
            scene.taken = beside.taken;
            true
        })?;
        let platform = std::mem::take(&mut beside.platform);
        self.input.handle_platform_output(&self.window, platform);
        Ok((drawn, beside))
    }

    /// Passes an input event to the panel. Returns whether to redraw.
    pub(crate) fn feed_panel(&mut self, event: &WindowEvent) -> bool {
        self.input.on_window_event(&self.window, event).repaint
    }

    /// Resets the mouse cursor after the panel was closed.
    pub(crate) fn leave_panel(&mut self) {
        self.input.handle_platform_output(&self.window, Default::default());
    }

    /// Returns whether a text field of the panel has the focus, and whether anything in it has.
    pub(crate) fn panel_focus(&self) -> (bool, bool) {
        let context = self.overlay.context();
        (context.text_edit_focused(), context.egui_wants_keyboard_input())
    }

    pub(crate) fn draw_painted(
        &mut self,
        scene: &Scene,
        paint: &mut dyn FnMut(&egui::Painter),
    ) -> Result<Drawn> {
        self.draw_over(scene, |overlay, canvas, _| {
            overlay.prepare_painted(canvas, paint);
            true
        })
    }

    /// Draws the last uploaded frame, if any, and over it the layer laid out by `prepare`, which
    /// returns whether there is one.
    fn draw_over(
        &mut self,
        scene: &Scene,
        prepare: impl FnOnce(&mut Overlay, &mut Canvas<'_>, &mut Scene) -> bool,
    ) -> Result<Drawn> {
        let size = self.size();
        if size.0 == 0 || size.1 == 0 {
            return Ok(Drawn::Hidden);
        }
        if (self.configuration.width, self.configuration.height) != size {
            (self.configuration.width, self.configuration.height) = size;
            self.surface.configure(&self.gpu.device, &self.configuration);
        }
        let (texture, stale) = match self.acquire()? {
            Ok(acquired) => acquired,
            Err(drawn) => return Ok(drawn),
        };
        let Gpu { device, queue, .. } = &self.gpu;
        let mut encoder = device.create_command_encoder(&Default::default());
        let scale = self.window.scale_factor() as f32;
        let mut scene = *scene;
        let mut canvas = Canvas { device, queue, encoder: &mut encoder, size, scale };
        let overlaid = prepare(&mut self.overlay, &mut canvas, &mut scene);
        let view = texture.texture.create_view(&Default::default());
        let pass = self.renderer.draw(&self.gpu, &mut encoder, &self.pipelines, &scene, &view);
        if overlaid {
            self.overlay.paint(&mut pass.forget_lifetime());
        } else {
            drop(pass);
        }
        queue.submit([encoder.finish()]);
        self.window.pre_present_notify();
        queue.present(texture);
        if stale {
            self.surface.configure(&self.gpu.device, &self.configuration);
        }
        self.gpu.check()?;
        Ok(Drawn::Shown)
    }

    /// Returns the next texture to show and whether the surface has changed since it was configured,
    /// or the reason why there is none.
    fn acquire(&mut self) -> Result<Result<(wgpu::SurfaceTexture, bool), Drawn>> {
        use wgpu::CurrentSurfaceTexture as Current;
        // A changed surface usually works after it is configured again.
        for _ in 0..2 {
            match self.surface.get_current_texture() {
                Current::Success(texture) => return Ok(Ok((texture, false))),
                Current::Suboptimal(texture) => return Ok(Ok((texture, true))),
                Current::Occluded => return Ok(Err(Drawn::Hidden)),
                Current::Timeout => return Ok(Err(Drawn::Later)),
                Current::Outdated => (),
                Current::Lost | Current::Validation => {
                    self.gpu.check()?;
                    self.surface = self
                        .instance
                        .create_surface(self.window.clone())
                        .context("cannot draw in the window any more")?;
                }
            }
            self.surface.configure(&self.gpu.device, &self.configuration);
            self.gpu.check()?;
        }
        Ok(Err(Drawn::Later))
    }

    /// Draws the present frame off-screen at 1:1, without the overlay, and requests the image.
    pub(crate) fn picture(&mut self, scene: &Scene) -> Result<(Readback, wgpu::Device)> {
        let Gpu { device, queue, .. } = &self.gpu;
        let picture = self.renderer.frame_size().context("there is no image yet")?;
        // The points in space have no size of their own.
        let room = scene.room(self.size());
        let size = match scene.view {
            View::Points => (room.0.max(1), room.1.max(1)),
            view => view.natural_size(picture),
        };
        let scene = &Scene { taken: (0, 0), lens: Lens::default(), wipe: None, ..*scene };
        let target = Target::new(device, size)?;
        let pipelines = self
            .snapshot_pipelines
            .get_or_insert_with(|| self.renderer.pipelines(device, offscreen::FORMAT));
        let mut encoder = device.create_command_encoder(&Default::default());
        let view = target.view();
        drop(self.renderer.draw(&self.gpu, &mut encoder, pipelines, scene, &view));
        let readback = target.read_back(device, &mut encoder);
        queue.submit([encoder.finish()]);
        Ok((readback, device.clone()))
    }
}

fn first_size(event_loop: &ActiveEventLoop, options: &WindowOptions) -> (u32, u32) {
    let monitor = event_loop.primary_monitor().or_else(|| event_loop.available_monitors().next());
    let scale = monitor.as_ref().map_or(1.0, |monitor| monitor.scale_factor());
    let [smallest, mut largest] =
        [options.smallest, options.largest].map(|size| scaled(size, scale));
    if let Some(size) = monitor.map(|monitor| monitor.size()).filter(|s| s.width * s.height > 0) {
        // Desktop panels and title bars need the rest.
        largest = (largest.0.min(size.width / 10 * 9), largest.1.min(size.height / 10 * 9));
    }
    let content = OverlayContent {
        bar: Bar {
            view: options.view,
            records: options.recorder.as_ref().map(|_| false),
            ..Bar::default()
        },
        timeline: options.timeline.as_ref().ok().map(|_| Timeline::default()),
        ..OverlayContent::default()
    };
    let bar_of = |width: u32| {
        let points = bar::height((f64::from(width) / scale) as f32, &content);
        scaled((0, points.round() as u32), scale).1
    };
    let above = |bar: u32| {
        let room = (largest.0, largest.1.saturating_sub(bar).max(1));
        window_size(options.view, options.picture, smallest, room)
    };
    // A narrow window has more rows of buttons.
    let bar = bar_of(above(bar_of(largest.0)).0);
    let (width, height) = above(bar);
    (width, height + bar)
}

/// Returns a size in points as pixels.
fn scaled((width, height): (u32, u32), scale: f64) -> (u32, u32) {
    let [width, height] = [width, height].map(|side| (f64::from(side) * scale).round() as u32);
    (width, height)
}

/// Prefers a format that keeps bytes unchanged to one that encodes as sRGB.
fn plainest(formats: &[wgpu::TextureFormat]) -> Option<wgpu::TextureFormat> {
    use wgpu::TextureFormat::{Bgra8Unorm, Rgba8Unorm};
    let usual = formats.iter().find(|&&format| format == Bgra8Unorm || format == Rgba8Unorm);
    usual.or_else(|| formats.iter().find(|format| !format.is_srgb())).copied()
}
