//! Files made of the newest pair.

use std::time::Duration;

use anyhow::{Result, anyhow};
use hyper::body::Bytes;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::Live;
use stereod_core::frame::Matched;
use stereod_core::picture::cloud::{CloudFormat, CloudOptions, encode_cloud};
use stereod_core::picture::numbers::{DepthUnit, Numbers, Quantity};
use stereod_core::picture::png::DisparityPng;

/// Longest wait for room.
const PATIENCE: Duration = Duration::from_secs(5);

pub enum Refusal {
    Unknown,
    /// Others keep all room.
    Busy,
    /// It cannot be made of this pair.
    Failed(String),
}

/// A file, and its room until it is sent.
struct Held(Vec<u8>, #[expect(dead_code, reason = "released on drop")] OwnedSemaphorePermit);

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Returns kind, name and content of a file. A client that leaves meanwhile costs nothing more.
pub async fn of(live: &Live, name: &str) -> Result<(&'static str, String, Bytes), Refusal> {
    let make: fn(&Matched, CloudOptions) -> Result<Vec<u8>> = match name {
        "disparity.png" => |frame, _| numbers(frame, Quantity::Disparity),
        "depth.png" => |frame, _| numbers(frame, Quantity::Depth(DepthUnit::default())),
        "cloud.ply" => cloud,
        _ => return Err(Refusal::Unknown),
    };
    let kind = if name.ends_with(".png") { "image/png" } else { "application/octet-stream" };
    let shared = &live.0;
    let room = async {
        let held = shared.held.clone().acquire_owned().await?;
        Ok::<_, tokio::sync::AcquireError>((held, shared.makers.enter().await?))
    };
    let Ok(Ok((held, place))) = timeout(PATIENCE, room).await else { return Err(Refusal::Busy) };
    let newest = shared.newest.borrow().clone();
    let clouds = shared.source.clouds;
    let called = newest.as_ref().map(|newest| file_name(&newest.frame, name)).unwrap_or_default();
    let make = move || -> Result<Vec<u8>> {
        make(&newest.ok_or(anyhow!("no pair was matched yet"))?.frame, clouds)
    };
    let made = place.work(make).await.map_err(Refusal::Failed)?;
    let file = made.map_err(|error| Refusal::Failed(format!("{error:#}")))?;
    Ok((kind, called, Bytes::from_owner(Held(file, held))))
}

/// Names a file after the number and the time of its pair, as page/controls.js does.
fn file_name(frame: &Matched, name: &str) -> String {
    let (number, time) = (frame.pair.sequence, frame.pair.timestamp.as_secs_f64());
    format!("stereod-{number:06}-{time:.3}s-{name}")
}

fn numbers(frame: &Matched, quantity: Quantity) -> Result<Vec<u8>> {
    let map = &frame.disparity;
    let numbers = Numbers::new(quantity, map.range(), frame.geometry.as_ref())?;
    Ok(DisparityPng::default().encode(map, &numbers)?.to_vec())
}

fn cloud(frame: &Matched, options: CloudOptions) -> Result<Vec<u8>> {
    let geometry = frame.geometry.ok_or(anyhow!("points need a calibration (--calibration)"))?;
    let left = &frame.pair.left;
    let colour = |x, y| left.rgb_at(x, y);
    let (confidence, format) = (frame.confidence.as_ref(), CloudFormat::Ply);
    Ok(encode_cloud(format, &frame.disparity, confidence, &geometry, options, colour)?.0)
}
