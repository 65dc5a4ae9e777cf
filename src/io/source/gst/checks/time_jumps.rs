//! Carries times of a recording that jump back past its decoder.
//!
//! GStreamer's decoders never let times fall: all frames after one with a time from the future, or
//! after the end of the first of two joined files, get one and the same time. Therefore compressed
//! frames after a jump back are shifted before the decoder, and decoded frames are shifted back.

use std::sync::{Arc, Mutex};

use gstreamer as gst;
use gstreamer::prelude::*;

use stereod_core::thread::locked;

/// Times that fall by less belong to frames in decoding order.
const JUMP: gst::ClockTime = gst::ClockTime::from_seconds(1);

/// Shifts of a recording's times, shared by the probes before and after the decoder.
#[derive(Debug, Default)]
pub(in crate::source::gst) struct Jumps(Mutex<Shifts>);

#[derive(Debug, Default)]
struct Shifts {
    /// Pairs (from, shift) in order: `shift` holds for shifted times after `from`.
    all: Vec<(gst::ClockTime, gst::ClockTime)>,
    /// Latest shifted time.
    latest: gst::ClockTime,
}

impl Jumps {
    /// Returns the shift of a compressed frame with this time.
    fn shift_into_decoder(&self, time: gst::ClockTime) -> gst::ClockTime {
        let mut shifts = locked(&self.0);
        let mut shift = shifts.all.last().map_or(gst::ClockTime::ZERO, |&(_, shift)| shift);
        let latest = shifts.latest;
        if time.saturating_add(shift).saturating_add(JUMP) < latest {
            // Far enough that frames decoded later but shown earlier are after the jump, too.
            shift = latest.saturating_add(JUMP).saturating_sub(time);
            shifts.all.push((latest, shift));
        }
        shifts.latest = latest.max(time.saturating_add(shift));
        shift
    }

    /// Forgets all times, because the stream was moved.
    fn restart(&self) {
        *locked(&self.0) = Shifts::default();
    }

    /// Reports whether times have jumped back.
    pub(in crate::source::gst) fn have_occurred(&self) -> bool {
        !locked(&self.0).all.is_empty()
    }

    /// Returns the shift of a decoded frame with this shifted time.
    pub(in crate::source::gst) fn shift_at(&self, shifted: gst::ClockTime) -> gst::ClockTime {
        let shifts = locked(&self.0);
        let found = shifts.all.iter().rev().find(|(after, _)| shifted > *after);
        found.map_or(gst::ClockTime::ZERO, |&(_, shift)| shift)
    }
}

/// Watches every video decoder of `pipeline`.
pub(in crate::source::gst) fn watch(pipeline: &gst::Pipeline, jumps: &Arc<Jumps>) {
    let jumps = jumps.clone();
    pipeline.connect_deep_element_added(move |_, _, element| {
        let Some(pad) = decoder_input(element) else { return };
        let of_events = jumps.clone();
        pad.add_probe(gst::PadProbeType::EVENT_FLUSH, move |_, _| {
            of_events.restart();
            gst::PadProbeReturn::Ok
        });
        let jumps = jumps.clone();
        pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
            if let Some(time) = info.buffer().and_then(|buffer| buffer.pts()) {
                let shift = jumps.shift_into_decoder(time);
                if let Some(buffer) = info.buffer_mut().filter(|_| !shift.is_zero()) {
                    let buffer = buffer.make_mut();
                    let shifted =
                        |time: Option<gst::ClockTime>| time.map(|t| t.saturating_add(shift));
                    buffer.set_pts(shifted(buffer.pts()));
                    buffer.set_dts(shifted(buffer.dts()));
                }
            }
            gst::PadProbeReturn::Ok
        });
    });
}

/// Returns the input pad of `element` if it decodes video.
pub(in crate::source::gst) fn decoder_input(element: &gst::Element) -> Option<gst::Pad> {
    let class = element.factory()?;
    let class = class.metadata("klass")?;
    let decodes = class.contains("Decoder")
        && (class.contains("Video") || class.contains("Image"))
        && !element.is::<gst::Bin>();
    element.static_pad("sink").filter(|_| decodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_rise_in_the_decoder_and_are_their_own_again_behind_it() {
        let ms = gst::ClockTime::from_mseconds;
        let jumps = Jumps::default();
        // The order of decoding, a time from the future, and a second file.
        let times = [0, 100, 33, 67, 133, 60_000, 200, 167, 233, 5_000, 0, 100, 33, 2_000, 1_200];
        let shifted = times.map(|time| ms(time) + jumps.shift_into_decoder(ms(time)));
        assert!(shifted.iter().zip(&shifted[1..]).all(|(a, b)| *b + JUMP > *a), "{shifted:?}");
        assert_eq!(shifted.map(|time| time - jumps.shift_at(time)), times.map(ms));
        assert_eq!(shifted[..6], times[..6].iter().map(|&t| ms(t)).collect::<Vec<_>>());
        assert_eq!(locked(&jumps.0).all.len(), 2);
        assert!(jumps.have_occurred());
    }
}
