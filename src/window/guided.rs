//! Window of a guided calibration: both views, the detected boards and the poses still missing.
//!
//! It shares the display, the device and the painter with the window of a run. Everything in it is
//! painted with egui.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use anyhow::Result;
use egui::{
    Align2, Color32, ColorImage, FontId, Painter, Pos2, Rect, Stroke, TextureHandle,
    TextureOptions, pos2, vec2,
};
use winit::event::{KeyEvent, WindowEvent};
use winit::keyboard::{Key, NamedKey};

use super::event_loop::{Content, Shell};
use super::options::View;
use super::remote::{Remote, Wake};
use super::scene::{Limits, Scene};
use super::screen::Drawn;
use super::style::{BRIGHT, DIM, Line, MARGIN, PANEL, panel};
use stereod_calibration::solve::Coverage;
use stereod_core::frame::{Image, StereoPair};
use stereod_core::thread::locked;
use stereod_io::control::Switch;
use stereod_io::sink::colour::ColourMap;

#[derive(Clone, Debug, Default)]
pub struct GuidedKeys {
    pub take: Switch,
    pub solve: Switch,
    pub quit: Switch,
}

/// The newest view, until the window takes it.
pub(crate) type Views = Arc<Mutex<Option<GuidedView>>>;

/// Handle of the window for other threads. Never waits for it.
#[derive(Clone)]
pub struct GuidedRemote {
    remote: Remote,
    views: Views,
}

impl GuidedRemote {
    pub(super) fn new(remote: Remote, views: Views) -> Self {
        Self { remote, views }
    }

    /// Shows this view; one that was not drawn yet is skipped.
    pub fn show(&self, view: GuidedView) {
        let mut newest = locked(&self.views);
        let mut view = view;
        // The mark of a taken pair moves on to the view that replaces its own.
        view.taken |= newest.as_ref().is_some_and(|skipped| skipped.taken);
        let waking = newest.replace(view).is_none();
        drop(newest);
        if waking {
            self.remote.wake(Wake::Frame);
        }
    }

    pub fn close(&self) {
        self.remote.close();
    }
}

pub(super) struct App {
    shell: Shell,
    keys: GuidedKeys,
    views: Views,
    view: Option<GuidedView>,
    textures: Textures,
}

impl App {
    pub(super) fn new(shell: Shell, keys: GuidedKeys, views: Views) -> Self {
        Self { shell, keys, views, view: None, textures: Textures::default() }
    }

    fn key(&self, event: &KeyEvent) -> ControlFlow<()> {
        if !event.state.is_pressed() || event.repeat {
            return ControlFlow::Continue(());
        }
        match &event.logical_key {
            Key::Named(NamedKey::Space) => self.keys.take.set(true),
            Key::Named(NamedKey::Enter) => self.keys.solve.set(true),
            Key::Named(NamedKey::Escape) => return ControlFlow::Break(()),
            Key::Character(character) => match character.to_lowercase().as_str() {
                " " => self.keys.take.set(true),
                "q" => return ControlFlow::Break(()),
                _ => {}
            },
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl Content for App {
    fn shell(&mut self) -> &mut Shell {
        &mut self.shell
    }

    fn redraw(&mut self) -> Result<()> {
        let newest = locked(&self.views).take();
        let fresh = newest.is_some();
        self.view = newest.or(self.view.take());
        let Some(screen) = &mut self.shell.screen else { return Ok(()) };
        // The renderer holds no frame, so it draws nothing beneath the painted content.
        let limits = Limits { low: 0, high: 1 };
        let scene = Scene::new(View::Left, ColourMap::Grey, limits);
        let (view, textures) = (self.view.as_ref(), &mut self.textures);
        let drawn = screen.draw_painted(&scene, &mut |painter| {
            if let Some(view) = view {
                textures.update(painter.ctx(), view, fresh);
                paint(painter, view, textures);
            }
        })?;
        if drawn == Drawn::Later {
            screen.window.request_redraw();
        }
        Ok(())
    }

    fn event(&mut self, event: &WindowEvent) -> ControlFlow<()> {
        match event {
            WindowEvent::KeyboardInput { event, .. } => self.key(event),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Height of the text below the images, in points.
const WORDS: f32 = 190.0;

const GOOD: Color32 = Color32::from_rgb(90, 220, 110);
const WARNING: Color32 = Color32::from_rgb(250, 200, 90);
const BAD: Color32 = Color32::from_rgb(250, 110, 100);

/// Tint of the image cells that boards have covered.
const COVERED: Color32 = Color32::from_rgba_premultiplied(0, 22, 6, 14);

/// Colours from the first to the last row of the board, which show its orientation.
const FIRST_ROW: [u8; 3] = [255, 70, 60];
const LAST_ROW: [u8; 3] = [70, 160, 255];

const KEYS: &str = "space take   enter calibrate   q quit";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum GuidedState {
    #[default]
    Taking,
    Solving,
    /// A result, with remarks on its quality.
    Solved {
        /// True if the calibration is good enough to use.
        fit: bool,
        words: Vec<String>,
    },
    /// No result, for this reason.
    Failed(String),
}

#[derive(Clone, Debug)]
pub struct GuidedView {
    pub pair: Arc<StereoPair>,
    /// The detected corners in each view: the corner's column and row on the
    /// board and its pixel.
    pub boards: [Vec<(usize, usize, [f64; 2])>; 2],
    /// Image cells covered by the boards of the taken pairs.
    pub coverage: [Coverage; 2],
    pub taken: bool,
    /// Advice: the fault of this pair, or the next step.
    pub message: String,
    pub missing: Vec<String>,
    pub pairs: usize,
    /// Progress over all poses, 0 to 1.
    pub progress: f64,
    pub state: GuidedState,
}

/// Both images on the graphics device.
#[derive(Default)]
pub(super) struct Textures([Option<TextureHandle>; 2]);

impl Textures {
    /// Uploads the images of a view unless they are on the device already.
    pub(super) fn update(&mut self, context: &egui::Context, view: &GuidedView, fresh: bool) {
        for (texture, image) in self.0.iter_mut().zip([&view.pair.left, &view.pair.right]) {
            let grey = |image: &Image| {
                ColorImage::from_gray([image.width(), image.height()], image.pixels())
            };
            match texture {
                Some(texture) if fresh => texture.set(grey(image), TextureOptions::LINEAR),
                Some(_) => {}
                None => {
                    *texture =
                        Some(context.load_texture("eye", grey(image), TextureOptions::LINEAR));
                }
            }
        }
    }
}

pub(super) fn paint(painter: &Painter, view: &GuidedView, textures: &Textures) {
    let area = painter.clip_rect();
    let words = WORDS.min(area.height() / 2.0);
    let room = vec2(area.width() / 2.0 - 1.5 * MARGIN, area.height() - words - 2.0 * MARGIN);
    let [left, right] = [&view.pair.left, &view.pair.right]
        .map(|image| vec2(image.width() as f32, image.height() as f32));
    let scales = [left, right].map(|size| (room / size).min_elem().max(0.01));
    let (left, right) = (left * scales[0], right * scales[1]);
    let top = area.min.y + MARGIN;
    let middle = area.center().x;
    let rects = [
        Rect::from_min_size(pos2(middle - MARGIN / 2.0 - left.x, top), left),
        Rect::from_min_size(pos2(middle + MARGIN / 2.0, top), right),
    ];
    for (eye, rect) in rects.into_iter().enumerate() {
        if let Some(texture) = &textures.0[eye] {
            let whole = Rect::from_min_max(pos2(0.0, 0.0), pos2(1.0, 1.0));
            painter.image(texture.id(), rect, whole, Color32::WHITE);
        }
        covered(painter, rect, &view.coverage[eye].cells);
        board(painter, rect, scales[eye], &view.boards[eye]);
        let name = ["left", "right"][eye].to_owned();
        panel(painter, rect.shrink(MARGIN), Align2::LEFT_TOP, PANEL, vec![Line::new(name, BRIGHT)]);
        if view.taken {
            let stroke = Stroke::new(5.0, GOOD);
            painter.rect_stroke(rect, 0.0, stroke, egui::StrokeKind::Inside);
        }
    }
    let bottom = rects[0].max.y.max(rects[1].max.y);
    let below = Rect::from_min_max(pos2(area.min.x, bottom), area.max).shrink(MARGIN);
    let (left, right) = below.split_left_right_at_x(below.center().x);
    status(painter, left, view);
    panel(painter, right, Align2::RIGHT_TOP, PANEL, missing(view));
    let keys = vec![Line::new(KEYS.to_owned(), DIM)];
    panel(painter, below, Align2::LEFT_BOTTOM, PANEL, keys);
}

fn status(painter: &Painter, area: Rect, view: &GuidedView) {
    const BAR: f32 = 10.0;
    let bar = Rect::from_min_size(area.min, vec2(area.width() - MARGIN, BAR));
    painter.rect_filled(bar, 3.0, Color32::from_gray(50));
    let mut done = bar;
    done.set_width(bar.width() * view.progress.clamp(0.0, 1.0) as f32);
    painter.rect_filled(done, 3.0, GOOD);
    let font = FontId::proportional(20.0);
    let colour = if view.taken { GOOD } else { WARNING };
    let message = painter.layout(view.message.clone(), font, colour, area.width() - MARGIN);
    let at = pos2(area.min.x, bar.max.y + MARGIN);
    let next = at + vec2(0.0, message.size().y + MARGIN);
    painter.galley(at, message, colour);
    let plural = if view.pairs == 1 { "" } else { "s" };
    let text = format!("{} pair{plural}, {:.0} % done", view.pairs, 100.0 * view.progress);
    painter.text(next, Align2::LEFT_TOP, text, FontId::proportional(15.0), BRIGHT);
}

fn missing(view: &GuidedView) -> Vec<Line> {
    let lines = |title: &str, colour: Color32, words: &[String]| -> Vec<Line> {
        let rest = words.iter().map(|words| Line::new(words.clone(), BRIGHT));
        std::iter::once(Line::new(title.to_owned(), colour)).chain(rest).collect()
    };
    match &view.state {
        GuidedState::Taking if view.missing.is_empty() => {
            lines("nothing is missing: press enter", GOOD, &[])
        }
        GuidedState::Taking => lines("still wanted", DIM, &view.missing),
        GuidedState::Solving => lines("calibrating ...", DIM, &[]),
        GuidedState::Solved { fit: true, words } => {
            lines("calibrated: q saves and quits, or take more", GOOD, words)
        }
        GuidedState::Solved { fit: false, words } => {
            lines("not good yet: take more, then enter", BAD, words)
        }
        GuidedState::Failed(reason) => {
            lines("no calibration yet", BAD, std::slice::from_ref(reason))
        }
    }
}

fn covered<const N: usize>(painter: &Painter, rect: Rect, cells: &[[usize; N]]) {
    let cell = vec2(rect.width() / N as f32, rect.height() / cells.len().max(1) as f32);
    for (y, row) in cells.iter().enumerate() {
        for (x, _) in row.iter().enumerate().filter(|(_, count)| **count > 0) {
            let corner = rect.min + vec2(x as f32 * cell.x, y as f32 * cell.y);
            let cell = Rect::from_min_size(corner, cell);
            painter.rect_filled(cell.shrink(1.0), 0.0, COVERED);
        }
    }
}

/// Paints the corners of a board, joined row by row.
fn board(painter: &Painter, rect: Rect, scale: f32, corners: &[(usize, usize, [f64; 2])]) {
    // (0, 0) is the middle of the first pixel.
    let place =
        |[x, y]: [f64; 2]| -> Pos2 { rect.min + vec2(x as f32 + 0.5, y as f32 + 0.5) * scale };
    let rows = corners.iter().map(|corner| corner.1).max().unwrap_or_default().max(1) as f32;
    let colour = |row: usize| {
        let part = row as f32 / rows;
        let mix = |i: usize| {
            (f32::from(FIRST_ROW[i]) * (1.0 - part) + f32::from(LAST_ROW[i]) * part) as u8
        };
        Color32::from_rgb(mix(0), mix(1), mix(2))
    };
    for pair in corners.windows(2) {
        if pair[0].1 == pair[1].1 {
            let ends = [place(pair[0].2), place(pair[1].2)];
            painter.line_segment(ends, Stroke::new(1.5, colour(pair[0].1)));
        }
    }
    for (column, row, pixel) in corners {
        let radius = if (*column, *row) == (0, 0) { 6.0 } else { 3.0 };
        painter.circle_stroke(place(*pixel), radius, Stroke::new(1.5, colour(*row)));
    }
}
