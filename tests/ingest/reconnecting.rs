//! Live streams that end, fail, fall silent or send damaged frames, and come back.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Instant;

use gstreamer as gst;
use gstreamer::prelude::*;
use stereod_io::source::gst::Live;
use stereod_io::source::live::LiveState;

use super::*;
use crate::common::outcome::wait_until;

/// A frame of `width` x `height` as JPEG.
fn jpeg(width: u32, height: u32) -> Vec<u8> {
    gst::init().unwrap();
    let text = format!(
        "videotestsrc num-buffers=1 pattern=smpte ! video/x-raw,format=GRAY8,width={width},\
         height={height} ! jpegenc ! appsink name=out"
    );
    let pipeline = gst::parse::launch(&text).unwrap().downcast::<gst::Pipeline>().unwrap();
    let sink = pipeline.by_name("out").unwrap().downcast::<gstreamer_app::AppSink>().unwrap();
    pipeline.set_state(gst::State::Playing).unwrap();
    let sample = sink.pull_sample().unwrap();
    pipeline.set_state(gst::State::Null).unwrap();
    sample.buffer().unwrap().map_readable().unwrap().to_vec()
}

/// Current behaviour of a camera.
const SENDS: u8 = 0;
const SILENT: u8 = 1;
const CUT: u8 = 2;
const OTHER_SIZE: u8 = 3;

/// Two cameras that send one JPEG frame per datagram, 50 per second, each with a behaviour that the
/// test sets.
struct Cameras {
    ports: [u16; 2],
    mode: [Arc<AtomicU8>; 2],
    end: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Cameras {
    fn new() -> Self {
        let ports =
            [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port());
        let mode = [(); 2].map(|()| Arc::new(AtomicU8::new(SENDS)));
        let end = Arc::new(AtomicBool::new(false));
        let (modes, ended) = (mode.clone(), end.clone());
        let (picture, other) = (jpeg(64, 48), jpeg(96, 64));
        let thread = std::thread::spawn(move || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            while !ended.load(Ordering::SeqCst) {
                for (port, mode) in ports.iter().zip(&modes) {
                    let bytes = match mode.load(Ordering::SeqCst) {
                        SILENT => continue,
                        CUT => &picture[..picture.len() / 2],
                        OTHER_SIZE => &other,
                        _ => &picture,
                    };
                    // Nobody may be listening.
                    let _ = socket.send_to(bytes, ("127.0.0.1", *port));
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        Self { ports, mode, end, thread: Some(thread) }
    }

    fn spec(&self) -> SourceSpec {
        let [left, right] = self
            .ports
            .map(|port| format!("udpsrc address=127.0.0.1 port={port} caps=image/jpeg ! jpegdec"));
        SourceSpec::two(left, right)
    }

    fn set(&self, eye: usize, mode: u8) {
        self.mode[eye].store(mode, Ordering::SeqCst);
    }
}

impl Drop for Cameras {
    fn drop(&mut self) {
        self.end.store(true, Ordering::SeqCst);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn watched() -> GstOptions {
    GstOptions { silence: Some(Duration::from_secs(1)), ..options() }
}

/// No silence is too long, also on a machine that is busy with others.
fn unwatched() -> GstOptions {
    GstOptions { silence: Some(10 * LIMIT), ..options() }
}

/// A source while it runs.
struct View<'a> {
    state: Arc<LiveState>,
    pairs: &'a AtomicU64,
}

impl View<'_> {
    /// Waits for more pairs.
    fn more(&self) {
        let before = self.pairs.load(Ordering::SeqCst);
        wait_until("more pairs", || self.pairs.load(Ordering::SeqCst) > before + 10);
    }

    fn lost(&self, eye: Eye) -> bool {
        self.state.eye(eye).summary().lost
    }
}

/// Runs a source while `script` controls the cameras, then stops it. Returns how it ended, its
/// counts, and the times of its pairs.
fn during(
    spec: &SourceSpec,
    options: &GstOptions,
    script: impl FnOnce(&View) + Send,
) -> (anyhow::Result<()>, SourceCounts, Vec<Duration>) {
    let mut source = open(spec, options).unwrap_or_else(|error| panic!("{spec:?}: {error:#}"));
    let state = source.live_state().expect("a live source");
    let (stop, pairs, mut times) = (Switch::default(), AtomicU64::new(0), Vec::new());
    let result = std::thread::scope(|scope| {
        let (stop, pairs) = (&stop, &pairs);
        scope.spawn(move || {
            // Even if the script panics, the source ends.
            struct Stop<'a>(&'a Switch);
            impl Drop for Stop<'_> {
                fn drop(&mut self) {
                    self.0.set(true);
                }
            }
            let _stop = Stop(stop);
            script(&View { state, pairs });
        });
        source.run(stop, &mut |pair, _| {
            times.push(pair.timestamp);
            pairs.fetch_add(1, Ordering::SeqCst);
            ControlFlow::Continue(())
        })
    });
    (result, source.counts(), times)
}

fn longest_gap(times: &[Duration]) -> f64 {
    assert!(times.windows(2).all(|two| two[0] < two[1]), "times run backwards: {times:?}");
    times.windows(2).map(|two| (two[1] - two[0]).as_secs_f64()).fold(0.0, f64::max)
}

#[test]
fn silent_eyes_are_noticed_and_come_back() {
    let cameras = Cameras::new();
    let (result, counts, times) = during(&cameras.spec(), &watched(), |view| {
        view.more();
        // Losing one of them, the other one, both.
        for gone in [vec![Eye::Left], vec![Eye::Right], vec![Eye::Left, Eye::Right]] {
            gone.iter().for_each(|&eye| cameras.set(usize::from(eye == Eye::Right), SILENT));
            wait_until("they are lost", || gone.iter().all(|&eye| view.lost(eye)));
            gone.iter().for_each(|&eye| cameras.set(usize::from(eye == Eye::Right), SENDS));
            wait_until("they are back", || !gone.iter().any(|&eye| view.lost(eye)));
            view.more();
        }
        // On a busy machine they may fall silent once more.
        let mut summary = view.state.summary();
        wait_until("both are well", || {
            summary = view.state.summary();
            [summary.left, summary.right]
                .iter()
                .all(|eye| eye.reconnects == eye.losses && !eye.lost)
        });
        for eye in [summary.left, summary.right] {
            assert!(eye.losses >= 2 && eye.away_s >= 2.0, "{eye:?}");
        }
        let difference = summary.synchronisation.unwrap().difference_ms.unwrap();
        assert!(difference.p50 <= difference.p95 && difference.p95 <= difference.max);
    });
    result.unwrap();
    assert!(longest_gap(&times) >= 1.0, "{times:?}");
    assert!(counts.left > counts.pairs && counts.right > counts.pairs, "{counts:?}");
    assert_eq!(counts.left, counts.pairs + counts.unpaired_left);
}

#[test]
fn an_eye_that_ends_or_fails_is_opened_again() {
    let camera = |before: &str, after: &str| {
        format!(
            "videotestsrc is-live=true {before} ! video/x-raw,width=64,height=48,framerate=60/1{after}"
        )
    };
    // The end of a stream; an element that reports an error while running.
    let steady = camera("", "");
    for restless in [camera("num-buffers=20", ""), camera("", " ! identity error-after=20")] {
        let spec = SourceSpec::two(steady.clone(), restless.clone());
        let (result, _, times) = during(&spec, &unwatched(), |view| {
            wait_until("it came back twice", || {
                view.state.eye(Eye::Right).summary().reconnects >= 2
            });
            view.more();
            assert_eq!(view.state.eye(Eye::Left).summary().losses, 0);
        });
        result.unwrap();
        assert!(longest_gap(&times) >= 0.4, "{restless}: {times:?}");
    }
}

#[test]
fn frame_packed_streams_come_back_too() {
    let both = "videotestsrc is-live=true num-buffers=20 ! \
                video/x-raw,width=128,height=48,framerate=60/1";
    let spec = SourceSpec::side_by_side(both);
    let (result, _, times) = during(&spec, &unwatched(), |view| {
        wait_until("it came back", || view.state.eye(Eye::Left).summary().reconnects >= 1);
        view.more();
    });
    result.unwrap();
    assert!(longest_gap(&times) >= 0.4, "{times:?}");
}

#[test]
fn cut_pictures_are_dropped_and_counted() {
    let cameras = Cameras::new();
    let (result, _, times) = during(&cameras.spec(), &unwatched(), |view| {
        view.more();
        cameras.set(0, CUT);
        wait_until("they are counted", || view.state.eye(Eye::Left).summary().broken >= 5);
        cameras.set(0, SENDS);
        view.more();
        let left = view.state.eye(Eye::Left).summary();
        assert_eq!((left.losses, view.state.eye(Eye::Right).summary().broken), (0, 0));
    });
    result.unwrap();
    assert!(longest_gap(&times) >= 0.08, "{times:?}");
}

#[test]
fn an_eye_that_is_back_in_another_size_stays_lost_until_it_has_its_own() {
    let cameras = Cameras::new();
    let (result, ..) = during(&cameras.spec(), &unwatched(), |view| {
        view.more();
        cameras.set(1, OTHER_SIZE);
        wait_until("it is lost", || view.lost(Eye::Right));
        // Long enough for an attempt that finds the other size.
        let before = view.pairs.load(Ordering::SeqCst);
        std::thread::sleep(Duration::from_secs(3));
        assert!(view.lost(Eye::Right));
        assert_eq!(view.pairs.load(Ordering::SeqCst), before, "a pair of two sizes");
        cameras.set(1, SENDS);
        wait_until("it is back", || !view.lost(Eye::Right));
        assert_eq!(view.state.eye(Eye::Right).summary().reconnects, 1);
        view.more();
    });
    result.unwrap();
}

#[test]
fn stopping_does_not_wait_for_a_lost_eye() {
    let cameras = Cameras::new();
    let asked = std::sync::Mutex::new(Instant::now());
    let (result, ..) = during(&cameras.spec(), &unwatched(), |view| {
        view.more();
        cameras.set(0, OTHER_SIZE);
        wait_until("it is lost", || view.lost(Eye::Left));
        cameras.set(0, SILENT);
        // During an attempt, which waits for a frame.
        std::thread::sleep(Duration::from_millis(1000));
        *asked.lock().unwrap() = Instant::now();
    });
    result.unwrap();
    let took = asked.lock().unwrap().elapsed();
    // An attempt waits for a frame as long as a camera may be silent.
    assert!(took < LIMIT, "{took:?}");
}

#[test]
fn sources_that_do_not_say_they_are_live_can_be_taken_as_live() {
    let camera = |frames: i32| {
        format!(
            "videotestsrc num-buffers={frames} ! video/x-raw,width=64,height=48,framerate=50/1 ! \
             identity sleep-time=20000"
        )
    };
    let spec = SourceSpec::two(camera(-1), camera(25));
    let again = GstOptions { live: Live::On, ..unwatched() };
    let (result, _, times) = during(&spec, &again, |view| {
        wait_until("it came back", || view.state.eye(Eye::Right).summary().reconnects >= 1);
        view.more();
    });
    result.unwrap();
    assert!(longest_gap(&times) >= 0.4, "{times:?}");
}
