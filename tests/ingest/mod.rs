//! Streams through GStreamer, from files made here and from recorded data, to pairs.

mod bad_input;
mod kinds;
mod pairing;
mod reconnecting;
mod recorded;
mod sender_clocks;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use stereod::Eye;
use stereod_core::frame::StereoPair;
use stereod_io::control::Switch;
use stereod_io::source::gst::{GstOptions, open};
use stereod_io::source::spec::SourceSpec;
use stereod_io::source::{Source, SourceCounts};

use crate::common::outcome::LIMIT;
use crate::common::{numbered_videos, video_file};

/// Options with a timeout, for tests that fail.
fn options() -> GstOptions {
    GstOptions { patience: LIMIT, ..GstOptions::default() }
}

/// Options with which whatever waits for a timeout hangs.
fn endlessly_patient() -> GstOptions {
    GstOptions { patience: 10 * LIMIT, ..GstOptions::default() }
}

/// Runs a source that must end by itself.
fn run_to_its_end(
    source: &mut dyn Source,
    emit: &mut dyn FnMut(StereoPair, SourceCounts) -> ControlFlow<()>,
) {
    let (stop, (over, ended)) = (Switch::default(), channel::<()>());
    std::thread::scope(|scope| {
        let (stop, over) = (&stop, over);
        scope.spawn(move || {
            if ended.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout) {
                stop.set(true);
            }
        });
        source.run(stop, emit).unwrap();
        drop(over);
    });
    assert!(!stop.is_set(), "it does not end");
}

fn two(left: impl AsRef<Path>, right: impl AsRef<Path>) -> SourceSpec {
    let text = |path: &Path| path.display().to_string();
    SourceSpec::two(text(left.as_ref()), text(right.as_ref()))
}

fn opened(spec: &SourceSpec) -> Box<dyn Source> {
    open(spec, &options()).unwrap_or_else(|error| panic!("{spec:?}: {error:#}"))
}

/// Returns the error of a source that cannot be opened.
fn refusal(spec: &SourceSpec) -> String {
    match open(spec, &options()) {
        Ok(source) => panic!("opened {}", source.info().description),
        Err(error) => format!("{error:#}"),
    }
}

/// Result of a source: left and right numbers of each pair, the counts, and how it ended.
struct Played {
    pairs: Vec<(u8, u8)>,
    times: Vec<Duration>,
    skews: Vec<i64>,
    counts: SourceCounts,
    result: anyhow::Result<()>,
}

fn play(source: &mut dyn Source) -> Played {
    let (mut pairs, mut times, mut skews) = (Vec::new(), Vec::new(), Vec::new());
    let result = source.run(&Switch::default(), &mut |pair: StereoPair, _| {
        assert_eq!(pair.sequence, pairs.len() as u64);
        let (left, right) = (numbered_videos::read(&pair.left), numbered_videos::read(&pair.right));
        assert_eq!((left.0, right.0), (Eye::Left, Eye::Right));
        pairs.push((left.1, right.1));
        times.push(pair.timestamp);
        skews.extend(pair.skew_ns);
        ControlFlow::Continue(())
    });
    Played { pairs, times, skews, counts: source.counts(), result }
}

fn played(spec: &SourceSpec) -> Played {
    let played = play(&mut *opened(spec));
    if let Err(error) = &played.result {
        panic!("{spec:?}: {error:#}");
    }
    played
}

/// Pairs of the same number.
fn same(numbers: impl IntoIterator<Item = u8>) -> Vec<(u8, u8)> {
    numbers.into_iter().map(|n| (n, n)).collect()
}

fn counts(left: u64, right: u64, pairs: u64) -> SourceCounts {
    let (unpaired_left, unpaired_right) = (left - pairs, right - pairs);
    SourceCounts { left, right, pairs, unpaired_left, unpaired_right, ..SourceCounts::default() }
}
