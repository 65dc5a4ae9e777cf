//! Rectifies and matches raw pairs as they come, and prints the distance in the middle of each:
//! `cargo run --release --no-default-features --example stream -- calibration.yaml left1.png right1.png left2.png right2.png`

use std::error::Error;
use std::time::Duration;

use stereod::{Calibration, Device, Disparity, ImageBuf, Params, Stream};

fn main() -> Result<(), Box<dyn Error>> {
    let mut files = std::env::args().skip(1);
    let calibration = files.next().ok_or("usage: stream CALIBRATION LEFT RIGHT [LEFT RIGHT]...")?;
    let pairs: Vec<String> = files.collect();
    let mut stream = None;
    for (number, pair) in pairs.chunks_exact(2).enumerate() {
        let (left, right) = (ImageBuf::open(&pair[0])?, ImageBuf::open(&pair[1])?);
        let stream = match &mut stream {
            Some(stream) => stream,
            none => {
                let size = (left.width(), left.height());
                let rectifier =
                    Calibration::read_for_size(&[&calibration], size)?.rectifier(None)?;
                none.insert(Stream::rectifying(&Params::default(), rectifier, Device::Auto)?)
            }
        };
        // A GPU works on several pairs at a time, so a map comes some pairs after its images.
        let captured = Duration::from_millis(33 * number as u64);
        stream.push(&left, &right, captured)?.iter().for_each(print);
    }
    if let Some(mut stream) = stream {
        stream.finish()?.iter().for_each(print);
    }
    Ok(())
}

fn print(found: &Disparity) {
    let map = found.map();
    let middle = found.point_m(map.width() / 2, map.height() / 2);
    let distance = middle.map_or("unknown".into(), |[_, _, forward]| format!("{forward:.2} m"));
    println!("{:.3} s: {distance}", found.timestamp().as_secs_f64());
}
