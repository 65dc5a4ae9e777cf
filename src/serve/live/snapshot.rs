//! Files made of the newest pair.

use anyhow::{Result, anyhow};

use super::Live;
use crate::sink::cloud::{CloudFormat, encode_cloud};
use crate::sink::numbers::{Numbers, Quantity};
use crate::sink::png::DisparityPng;

/// Returns kind and content of a file; `None` for an unknown name.
pub fn of(live: &Live, name: &str) -> Option<Result<(&'static str, Vec<u8>)>> {
    let newest = live.0.newest.borrow().clone();
    let frame =
        || newest.as_ref().map(|newest| &*newest.frame).ok_or(anyhow!("no pair was matched yet"));
    let disparity = || -> Result<_> {
        let map = &frame()?.disparity;
        let numbers = Numbers::new(Quantity::Disparity, map.range(), None)?;
        Ok(("image/png", DisparityPng::default().encode(map, &numbers)?.to_vec()))
    };
    let cloud = || -> Result<_> {
        let frame = frame()?;
        let geometry =
            frame.geometry.ok_or(anyhow!("points need a calibration (--calibration)"))?;
        let left = &frame.pair.left;
        let (file, _) = encode_cloud(
            CloudFormat::Ply,
            &frame.disparity,
            frame.confidence.as_ref(),
            &geometry,
            live.0.source.clouds,
            |x, y| left.rgb_at(x, y),
        )?;
        Ok(("application/octet-stream", file))
    };
    match name {
        "disparity.png" => Some(disparity()),
        "cloud.ply" => Some(cloud()),
        _ => None,
    }
}
