//! Pictures of the window in the documentation: drawn off-screen from the built-in scene, and compared with the
//! files in docs/images. `scripts/screenshots.sh` writes these files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use image::codecs::jpeg::JpegEncoder;
use image::{RgbImage, imageops};

use super::knobs::knobs;
use crate::settings::{Layers, Loaded};
use crate::status::RunStatus;
use crate::window::{
    Bar, CameraDesk, Hover, Legend, Limits, Offscreen, Orbit, OverlayContent, Panel, Rates, Scene,
    Sheet, Timeline, Timing, View, Wipe, differences, known_share, ruler,
};
use stereod_core::engine::{self, Choice, PairSpec};
use stereod_core::frame::{Eye, Matched};
use stereod_io::camera::{CameraControl, CameraInput, CameraReport, ControlKind};
use stereod_io::sink::colour::{ColourMap, ColourScale};
use stereod_io::source::demo::{DemoOptions, DemoSource};

/// Pair of the scene that is shown.
const NUMBER: u64 = 198;

/// Size of the pictures: 480 rows and the bar. The panel needs more height.
const SIZE: (u32, u32) = (1280, 552);
const WITH_TIMELINE: (u32, u32) = (1280, 613);
const WITH_PANEL: (u32, u32) = (1280, 800);

/// Side of the squares whose mean colours are compared. Graphics drivers differ in single pixels.
const SQUARE: u32 = 16;

/// Largest difference of these means in grey levels. That of a JPEG file is below 4.
const TOLERANCE: i32 = 12;

fn loaded(text: &str) -> Loaded {
    let mut layers = Layers::new();
    layers.file_text(Path::new("pictures.toml"), text);
    layers.finish().unwrap()
}

/// Matches the pair of the scene with these settings, which are the same on every processor.
fn matched(loaded: &Loaded) -> Matched {
    let options = DemoOptions { disparities: loaded.params.range, ..DemoOptions::default() };
    let geometry = Some(options.geometry());
    let pairs = PairSpec { geometry, ..PairSpec::rectified(options.width, options.height) };
    let scene = DemoSource::new(options).unwrap();
    let options = loaded.settings.engine.options();
    let mut engine = engine::create(&Choice::Cpu, &loaded.params, &pairs, &options).unwrap();
    engine.submit(scene.pair(NUMBER)).unwrap();
    engine.collect().unwrap().unwrap()
}

struct Draughtsman {
    offscreen: Offscreen,
    frame: Matched,
    /// The same pair with other settings.
    kept: Matched,
    settings: [Loaded; 2],
}

impl Draughtsman {
    /// Returns `None` and a note without a graphics driver.
    fn new() -> Option<Self> {
        let offscreen = match Offscreen::new() {
            Ok(offscreen) => offscreen,
            Err(error) => {
                eprintln!("skipped: pictures of the window: {error:#}");
                return None;
            }
        };
        let settings = [
            loaded("[matching]\ndisparities = 64\ncost = 'ad'\nmedian = 0\nspatial = 'off'\n"),
            loaded("[matching]\ndisparities = 64\n"),
        ];
        let [kept, frame] = [0, 1].map(|which| matched(&settings[which]));
        Some(Self { offscreen, frame, kept, settings })
    }

    fn scene(&self, view: View) -> Scene {
        let range = self.settings[1].params.range;
        let mut scale =
            ColourScale::new(self.settings[1].settings.colour_range(range, None), range);
        scale.update(&self.frame.disparity, Duration::ZERO);
        Scene::new(view, ColourMap::Turbo, Limits::of(&scale))
    }

    fn overlay(&self, scene: &Scene) -> OverlayContent {
        let has_map = scene.view.has_disparity();
        let engine = "CPU (AVX-512, 4 threads)".into();
        let status = RunStatus { engine, pairs: 198, ..RunStatus::default() };
        OverlayContent {
            rates: Rates {
                timing: Timing::Latency,
                frames_per_second: Some(30.0),
                latency: Some(Duration::from_micros(9_400)),
                latency_p95: Some(Duration::from_micros(10_200)),
            },
            picture: Some((640, 480)),
            bar: Bar { view: scene.view, ..Bar::default() },
            status: Some(status.into()),
            legend: has_map.then_some(Legend {
                colour_map: scene.colour_map,
                limits: scene.limits,
                geometry: self.frame.geometry,
            }),
            ..OverlayContent::default()
        }
    }

    fn draw(&mut self, scene: &Scene, overlay: &OverlayContent) -> RgbImage {
        let frame = &self.frame;
        let size = if overlay.timeline.is_some() { WITH_TIMELINE } else { SIZE };
        let mut drawn = None;
        // Sizes of buttons are known from the second time on.
        for _ in 0..2 {
            drawn = Some(self.offscreen.render(frame, scene, size, Some(overlay)).unwrap());
        }
        image::DynamicImage::from(drawn.unwrap()).into_rgb8()
    }

    /// The left image and the disparity, with the values of the pixel under the mouse.
    fn window(&mut self) -> RgbImage {
        let scene = self.scene(View::SideBySide);
        let mut overlay = self.overlay(&scene);
        let pixel = (150, 300);
        let (x, y) = (pixel.0 as usize, pixel.1 as usize);
        let disparity = self.frame.disparity.at(x, y);
        let confidence = self.frame.confidence.as_ref().map(|confidence| confidence.row(y)[x]);
        overlay.hover = Some(Hover {
            pixel,
            disparity,
            confidence,
            depth: disparity.and_then(|d| self.frame.geometry?.depth_m(f64::from(d))),
            marks: vec![scene.panes((640, 480), (1280, 480))[1].centre_of(pixel, (640, 480))],
            side: None,
        });
        self.draw(&scene, &overlay)
    }

    fn points(&mut self) -> RgbImage {
        let mut scene = self.scene(View::Points);
        scene.orbit = Orbit::aside(&self.frame);
        let mut overlay = self.overlay(&scene);
        // From the door to the picture.
        let ends = [(540, 150), (320, 150)];
        let panes = scene.panes((640, 480), (1280, 480));
        overlay.ruler = Some(ruler(&self.frame, &scene, &panes, &ends));
        self.draw(&scene, &overlay)
    }

    /// Two settings on both sides of a line.
    fn wipe(&mut self, share: f32) -> RgbImage {
        self.offscreen.keep(Some(&self.kept)).unwrap();
        let scene = Scene { wipe: Some(share), ..self.scene(View::SideBySide) };
        let mut overlay = self.overlay(&scene);
        let pane = scene.panes((640, 480), (1280, 480))[1];
        let [kept, present] = differences(&knobs(&self.settings[0]), &knobs(&self.settings[1]));
        let side = |frame: &Matched, settings| crate::window::Side {
            pair: NUMBER,
            known: known_share(&frame.disparity),
            settings,
        };
        let sides = [side(&self.kept, kept), side(&self.frame, present)];
        overlay.wipe = Some(Wipe { pane, line: pane.column_at(share), sides });
        let drawn = self.draw(&scene, &overlay);
        self.offscreen.keep(None).unwrap();
        drawn
    }

    fn help(&mut self) -> RgbImage {
        let scene = self.scene(View::SideBySide);
        let overlay = OverlayContent { sheet: Some(Sheet::Help), ..self.overlay(&scene) };
        self.draw(&scene, &overlay)
    }

    fn panel(&mut self) -> RgbImage {
        let input = |eye, name: &str| CameraInput {
            eye,
            name: name.into(),
            mode: "GREY 640x480 at 30/s".into(),
        };
        let desk = CameraDesk {
            inputs: vec![input(Eye::Left, "/dev/video0"), input(Eye::Right, "/dev/video2")],
            watch: Arc::new(|_| ()),
            set: Arc::new(|_, _, _| ()),
        };
        let mut panel = Panel::new(knobs(&self.settings[1]), Some(desk));
        panel.open = true;
        for (place, name) in ["CamLeft", "CamRight"].into_iter().enumerate() {
            let seen = Ok((name.to_owned(), controls()));
            panel.cameras.report(place, CameraReport { number: 0, seen, problem: None });
        }
        let scene = self.scene(View::Disparity);
        let overlay = self.overlay(&scene);
        let mut drawn = None;
        // Sizes are known from the second time on.
        for _ in 0..3 {
            let beside = self.offscreen.render_beside(
                &self.frame,
                &scene,
                WITH_PANEL,
                &overlay,
                &mut |context| panel.show(context, Ok("")).1,
            );
            drawn = Some(beside.unwrap());
        }
        image::DynamicImage::from(drawn.unwrap()).into_rgb8()
    }

    fn timeline(&mut self) -> RgbImage {
        let scene = self.scene(View::SideBySide);
        let timeline = Timeline {
            position: Duration::from_secs(24),
            number: 720,
            length: Duration::from_secs(60),
            marks: [Some(Duration::from_secs(18)), Some(Duration::from_secs(41))],
            repeats: true,
            speed: Some(0.5),
            is_at_end: false,
        };
        let overlay =
            OverlayContent { timeline: Some(timeline), paused: true, ..self.overlay(&scene) };
        self.draw(&scene, &overlay)
    }

    fn all(&mut self) -> Vec<(&'static str, RgbImage)> {
        vec![
            ("window", self.window()),
            ("points", self.points()),
            ("wipe", self.wipe(0.5)),
            ("help", self.help()),
            ("panel", self.panel()),
            ("timeline", self.timeline()),
        ]
    }
}

fn controls() -> Vec<CameraControl> {
    let number = |id, name: &str, least, largest, default, value| CameraControl {
        id,
        name: name.into(),
        kind: ControlKind::Number,
        least,
        largest,
        step: 1,
        default,
        value,
        is_read_only: false,
        is_inactive: false,
    };
    let modes = vec![(1, "Manual Mode".into()), (3, "Aperture Priority Mode".into())];
    vec![
        CameraControl {
            kind: ControlKind::Menu(modes),
            ..number(0x009a_0901, "Auto Exposure", 0, 3, 3, 1)
        },
        number(0x009a_0902, "Exposure Time, Absolute", 1, 5000, 157, 90),
        number(0x0098_0913, "Gain", 0, 100, 0, 12),
        CameraControl {
            kind: ControlKind::Switch,
            ..number(0x0098_090c, "White Balance, Automatic", 0, 1, 1, 1)
        },
        CameraControl {
            is_inactive: true,
            ..number(0x0098_091a, "White Balance Temperature", 2800, 6500, 4600, 4600)
        },
        number(0x0098_0900, "Brightness", -64, 64, 0, 0),
    ]
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/images").join(name).with_extension("jpg")
}

/// Returns the mean colour of every square of a picture.
fn means(picture: &RgbImage) -> RgbImage {
    let (across, down) = (picture.width() / SQUARE, picture.height() / SQUARE);
    imageops::thumbnail(picture, across, down)
}

/// Returns the largest difference between the mean colours of two pictures in one square.
fn difference(one: &RgbImage, other: &RgbImage) -> i32 {
    if one.dimensions() != other.dimensions() {
        return i32::MAX;
    }
    let (one, other) = (means(one), means(other));
    let pairs = one.as_raw().iter().zip(other.as_raw());
    pairs.map(|(&a, &b)| (i32::from(a) - i32::from(b)).abs()).max().unwrap_or(0)
}

#[test]
fn the_pictures_of_the_documentation_are_of_this_window() {
    let Some(mut draughtsman) = Draughtsman::new() else { return };
    let is_writing = std::env::var_os("STEREOD_WRITE_DOCS").is_some();
    let drawn = draughtsman.all();
    let mut wrong = Vec::new();
    for (name, picture) in &drawn {
        let file = file(name);
        if is_writing {
            let mut bytes = Vec::new();
            JpegEncoder::new_with_quality(&mut bytes, 82).encode_image(picture).unwrap();
            std::fs::write(&file, bytes).unwrap();
        }
        let shown = image::open(&file).map(|picture| picture.into_rgb8());
        let off = shown.as_ref().map_or(i32::MAX, |shown| difference(shown, picture));
        println!("{name}: {off} grey levels");
        if off > TOLERANCE {
            let kept = std::env::temp_dir().join(format!("stereod-{name}.png"));
            picture.save(&kept).unwrap();
            wrong.push(format!("{name} ({off} grey levels; see {})", kept.display()));
        }
        // Another picture, and this one with something else in it, would be noticed.
        for (other, another) in &drawn {
            assert!(
                other == name || difference(picture, another) > TOLERANCE,
                "{name} and {other}"
            );
        }
        let mut moved = picture.clone();
        imageops::replace(&mut moved, picture, 6, 0);
        assert!(difference(picture, &moved) > TOLERANCE, "{name} moved by 6 pixels");
    }
    let wipe = draughtsman.wipe(0.45);
    assert!(difference(&drawn[2].1, &wipe) > TOLERANCE, "a line elsewhere");
    let shown = draughtsman.scene(View::SideBySide);
    let silent = OverlayContent { status: None, ..draughtsman.overlay(&shown) };
    let silent = draughtsman.draw(&shown, &silent);
    assert!(difference(&drawn[0].1, &silent) > TOLERANCE, "a text is missing");
    assert!(wrong.is_empty(), "run scripts/screenshots.sh if this is meant: {}", wrong.join(", "));
}
