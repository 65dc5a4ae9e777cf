//! `--offset auto`: finds the offset in time of two recordings from their frames.

use std::time::Duration;

use anyhow::{anyhow, ensure};

use crate::labels::Timing;
use crate::source::gst::inputs::input::Input;
use crate::source::gst::options::GstOptions;
use crate::source::gst::plane::{ViewLayout, Views};
use crate::source::gst::stream::{InputStream, Received, StreamSetup};
use crate::source::gst::times::{TICK, now, period_of};
use crate::source::pairing::synchronisation::offset::{Rows, Shift, find};

/// Compared part of each recording, from its first frame on.
const COMPARED: Duration = Duration::from_secs(20);

/// Largest shift that is searched.
const REACH: Duration = Duration::from_secs(8);

/// Largest relative difference of equal rates.
const SAME_RATE: f64 = 0.02;

/// Compared part of a recording, frame by frame.
struct Beginning {
    rows: Vec<Rows>,
    times: Vec<Duration>,
    rate: f64,
}

/// Returns the nanoseconds to add to the right times so that frames of one moment have one time.
pub(in crate::source::gst) fn find_offset(
    inputs: [&Input; 2],
    timings: [Option<Timing>; 2],
    options: &GstOptions,
) -> anyhow::Result<i64> {
    ensure!(
        inputs.iter().all(|input| matches!(input, Input::File(_) | Input::Pictures(_))),
        "`--offset auto` compares two recordings (files or pictures); give other sources `--offset MS`"
    );
    tracing::info!("looking for the offset of the two recordings");
    let [left, right] = [0, 1].map(|eye| read_beginning(inputs[eye], timings[eye], options));
    let (left, right) = (left?, right?);
    ensure!(
        (left.rate / right.rate).ln().abs() <= SAME_RATE,
        "`--offset auto` needs recordings of one rate, not {:.2} and {:.2} pictures/s; give `--offset MS`",
        left.rate,
        right.rate
    );
    let reach = (REACH.as_secs_f64() * left.rate).ceil() as usize;
    let Shift { pictures, correlation, other } = find(&left.rows, &right.rows, reach)
        .map_err(|unclear| anyhow!("`--offset auto` finds none: {unclear}; give `--offset MS`"))?;
    let mut apart: Vec<i64> = left
        .times
        .iter()
        .enumerate()
        .filter_map(|(i, left)| {
            let there = usize::try_from(i as i64 + pictures).ok()?;
            Some(left.as_nanos() as i64 - right.times.get(there)?.as_nanos() as i64)
        })
        .collect();
    apart.sort_unstable();
    let offset = apart[apart.len() / 2];
    tracing::info!(
        "the pictures show an offset of {:.1} ms (right picture {} is of the moment of left picture {}): \
         motion correlates by {correlation:.2} there, and by at most {other:.2} elsewhere",
        offset as f64 * 1e-6,
        pictures.max(0),
        (-pictures).max(0)
    );
    Ok(offset)
}

fn read_beginning(
    input: &Input,
    timing: Option<Timing>,
    options: &GstOptions,
) -> anyhow::Result<Beginning> {
    let (layout, zero) = (ViewLayout::Whole, now());
    let recipe = StreamSetup {
        input: input.clone(),
        layout,
        timing,
        zero,
        state: Default::default(),
        at: None,
    };
    let mut stream = InputStream::start(&recipe, options)?;
    stream.preroll(options)?;
    if timing.is_some() {
        stream.set_rate(options.picture_rate);
    }
    stream.measure_rate(&options.stop);
    let rate = stream
        .rate()
        .ok_or_else(|| anyhow!("`--offset auto` needs times, and {} has none", stream.name()))?;
    let (mut rows, mut times) = (Vec::new(), Vec::new());
    while times.len() as f64 * period_of(rate).as_secs_f64() < COMPARED.as_secs_f64() {
        ensure!(!options.stop.is_set(), "stopped while looking for the offset");
        match stream.receive(TICK) {
            Received::Frame(frame) => {
                if let (Views::One(image), Some(time)) = (&frame.views, frame.timestamp) {
                    rows.push(Rows::of(image));
                    times.push(time);
                }
            }
            Received::Nothing => {}
            Received::End => break,
        }
    }
    Ok(Beginning { rows, times, rate })
}
