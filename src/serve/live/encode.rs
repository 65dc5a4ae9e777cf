//! Frames as messages: a header, the left picture as JPEG, and the numbers.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use hyper::body::Bytes;
use serde_json::json;

use super::{Newest, ServerClock};
use stereod_core::frame::{Image, Matched, StereoGeometry};
use stereod_io::sink::messages::{jpeg, sampled};
use stereod_obstacles::lines;
use stereod_obstacles::overlay::Overlay;
use stereod_obstacles::zones::ZoneRule;

/// Returns the message of a pair, of every `step`th pixel of every `step`th row: the length of the header in
/// four bytes, the header as JSON, the left image, the compressed disparity, confidence and verdicts, and the right
/// image if it is wanted (docs/remote.md).
///
/// Numbers are stored as their differences from the row above, the low bytes before the high ones,
/// and compressed by a method made for such bytes (as in PNG): a third of the time and two thirds of
/// the bytes that plain numbers need.
pub(super) fn message(
    newest: &Newest,
    step: usize,
    right: bool,
    clock: ServerClock,
    zones: &[ZoneRule],
) -> Result<Bytes> {
    let frame = &newest.frame;
    let map = &frame.disparity;
    let size = (map.width().div_ceil(step), map.height().div_ceil(step));
    let picture = jpeg(&frame.pair.left, step)?;
    let numbers = sampled(map.values(), map.width(), step);
    let steps =
        from_above(&numbers, size.0, |value, above| value.wrapping_sub(above).to_le_bytes());
    let disparity = fdeflate::compress_to_vec(&steps);
    let bytes = |image: &Image| {
        let pixels = sampled(image.pixels(), map.width(), step);
        let steps = from_above(&pixels, size.0, |value, above| [value.wrapping_sub(above)]);
        fdeflate::compress_to_vec(&steps)
    };
    let confidence = frame.confidence.as_ref().map(bytes).unwrap_or_default();
    let verdicts = frame.verdicts.as_ref().map(bytes).unwrap_or_default();
    let right = if right { jpeg(&frame.pair.right, step)? } else { Vec::new() };
    let header = json!({
        "seq": frame.pair.sequence,
        "time": frame.pair.timestamp.as_secs_f64(),
        "width": size.0,
        "height": size.1,
        "scale": step,
        "jpeg": picture.len(),
        "disparity": disparity.len(),
        "confidence": confidence.len(),
        "verdicts": verdicts.len(),
        "right": right.len(),
        "colour_span": newest.span,
        "range": [map.range().min, map.range().count],
        "captured": clock.unix_ms(frame.pair.arrived),
        "latency_ms": frame.latency().as_secs_f64() * 1000.0,
        "sent": clock.unix_ms(Instant::now()),
        "geometry": frame.geometry.map(geometry),
        "obstacles": frame.obstacles.as_ref().map(|found| {
            let captured = Duration::from_secs_f64(clock.unix_ms(frame.pair.arrived) / 1000.0);
            lines::to_json(found, frame.pair.sequence, captured, frame.latency())
        }),
        "overlay": overlay(frame, zones),
    });
    let header = header.to_string();
    let length = u32::try_from(header.len()).context("a header of a frame")?.to_le_bytes();
    let parts = [&length, header.as_bytes(), &picture, &disparity, &confidence, &verdicts, &right];
    Ok(parts.concat().into())
}

/// Returns the difference of every value from the one above; that of the first row from 0. All first
/// bytes of the differences come before all second ones.
fn from_above<T: Copy + Default, const N: usize>(
    values: &[T],
    width: usize,
    minus: impl Fn(T, T) -> [u8; N],
) -> Vec<u8> {
    let mut bytes = vec![0; N * values.len()];
    let (first, others) = values.split_at(width.min(values.len()));
    // Plain loops over slices, which the compiler turns into vectors.
    for (part, plane) in bytes.chunks_mut(values.len().max(1)).enumerate() {
        let (top, below) = plane.split_at_mut(first.len());
        for (byte, &value) in top.iter_mut().zip(first) {
            *byte = minus(value, T::default())[part];
        }
        for ((byte, &value), &above) in below.iter_mut().zip(others).zip(values) {
            *byte = minus(value, above)[part];
        }
    }
    bytes
}

/// Returns where obstacles are in the left image.
fn overlay(frame: &Matched, zones: &[ZoneRule]) -> Option<serde_json::Value> {
    let found = frame.obstacles.as_ref()?;
    let size = (frame.disparity.width(), frame.disparity.height());
    let Overlay { edges, zones } = Overlay::new(found, zones, frame.geometry?, size);
    let short = |value: f64| (value * 1e4).round() / 1e4;
    let edges: Vec<_> = edges.into_iter().map(short).collect();
    let ends = |line: [[f64; 2]; 2]| line.map(|end| end.map(short));
    let zones: Vec<Vec<_>> =
        zones.into_iter().map(|lines| lines.into_iter().map(ends).collect()).collect();
    Some(json!({ "edges": edges, "zones": zones }))
}

fn geometry(of: StereoGeometry) -> serde_json::Value {
    json!({
        "focal_px": of.focal_px,
        "baseline_m": of.baseline_m,
        "centre_x_px": of.centre_x_px,
        "centre_y_px": of.centre_y_px,
        "right_centre_x_px": of.right_centre_x_px,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::UNIX_EPOCH;

    use super::*;
    use stereod_core::frame::{DisparityMap, DisparityRange, Image, Matched, StereoPair};
    use stereod_core::pool::Pooled;

    #[test]
    fn a_message_holds_the_numbers_at_all_sizes() {
        let (width, height) = (7, 5);
        let eye = || Image::from_fn(width, height, |x, y| (30 * x + y) as u8);
        let values: Vec<i16> = (0..35).map(|i| 16 * i - 32).collect();
        let range = DisparityRange { min: -2, count: 40 };
        let map = DisparityMap::new(width, height, range, Pooled::unpooled(values.clone()));
        let mut frame = Matched::new(StereoPair::of_stills(eye(), eye()), map);
        frame.confidence = Some(Image::from_fn(width, height, |x, _| x as u8));
        frame.verdicts = Some(Image::from_fn(width, height, |x, _| (x % 5) as u8));
        let since = UNIX_EPOCH + Duration::from_millis(1_700_000_000_250);
        let clock = ServerClock { start: frame.pair.arrived + Duration::from_millis(250), since };
        let newest = Newest::new(0, Arc::new(frame), (-2.0, 37.0));
        for step in [1, 2, 4] {
            let message = message(&newest, step, step == 2, clock, &[]).unwrap();
            let length = u32::from_le_bytes(message[..4].try_into().unwrap()) as usize;
            let header: serde_json::Value =
                serde_json::from_slice(&message[4..4 + length]).unwrap();
            let len = |part: &str| header[part].as_u64().unwrap() as usize;
            let mut rest = &message[4 + length..];
            let mut part = |name: &str| rest.split_off(..len(name)).unwrap();
            let picture = image::load_from_memory(part("jpeg")).unwrap();
            assert_eq!(
                (picture.width() as usize, picture.height() as usize),
                (len("width"), len("height"))
            );
            let inflate = |bytes| fdeflate::decompress_to_vec(bytes).unwrap();
            let steps = inflate(part("disparity"));
            let (low, high) = steps.split_at(steps.len() / 2);
            let mut numbers = Vec::new();
            for i in 0..low.len() {
                let above = i.checked_sub(len("width")).map_or(0, |above| numbers[above]);
                numbers.push(i16::from_le_bytes([low[i], high[i]]).wrapping_add(above));
            }
            let expected: Vec<i16> = (0..35)
                .filter(|i| i % 7 % step == 0 && i / 7 % step == 0)
                .map(|i| values[i])
                .collect();
            assert_eq!(numbers, expected);
            assert_eq!(inflate(part("confidence"))[1], step as u8);
            let verdicts = inflate(part("verdicts"));
            assert_eq!((verdicts.len(), verdicts[1]), (expected.len(), step as u8));
            assert_eq!((len("scale"), &header["range"]), (step, &json!([-2, 40])));
            assert_eq!(header["captured"], 1_700_000_000_000.0);
            assert!(header["sent"].as_f64().unwrap() >= 1_700_000_000_000.0, "{header}");
            assert_eq!(len("right") > 0, step == 2);
            if step == 2 {
                assert!(image::load_from_memory(part("right")).is_ok());
            }
            assert!(rest.is_empty());
        }
    }
}
