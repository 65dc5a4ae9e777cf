//! Matches two rectified images and writes their disparity:
//! `cargo run --release --no-default-features --example match_pair -- left.png right.png disparity.png`

use std::error::Error;

use stereod::{Device, ImageBuf, Matcher, Params};

fn main() -> Result<(), Box<dyn Error>> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    let [left, right, disparity] = &files[..] else {
        return Err("usage: match_pair LEFT RIGHT DISPARITY.png".into());
    };
    let (left, right) = (ImageBuf::open(left)?, ImageBuf::open(right)?);
    let params = Params::of_settings([("disparities", "128")])?;
    let mut matcher = Matcher::new(&params, left.width(), left.height(), Device::Auto)?;
    let found = matcher.compute(&left, &right)?;
    found.write_png(disparity)?;
    let known = found.disparity_px().iter().filter(|px| px.is_finite()).count();
    println!(
        "{}: {:.1} % of the pixels are known",
        matcher.description(),
        100.0 * known as f64 / (left.width() * left.height()) as f64
    );
    Ok(())
}
