//! Test videos whose images encode their view and frame number in blocks that survive lossy coding:
//! eight stripes are the bits of the number; the lower half is white in the left view.

use std::path::{Path, PathBuf};
use std::time::Duration;

use gstreamer as gst;
use gstreamer::prelude::*;
use stereod::Eye;
use stereod_core::frame::Image;

use super::video_file::{play_to_end, write_video};

pub const WIDTH: usize = 128;
pub const HEIGHT: usize = 64;

/// One picture of one view; the values lie in the limited range.
pub fn view(eye: Eye, number: u8) -> Image {
    Image::from_fn(WIDTH, HEIGHT, |x, y| {
        let white = if y < HEIGHT / 2 { number >> (x / 16) & 1 == 1 } else { eye == Eye::Left };
        if white { 235 } else { 16 }
    })
}

/// Reads the number and view that [`view`] wrote.
pub fn read(image: &Image) -> (Eye, u8) {
    assert_eq!((image.width(), image.height()), (WIDTH, HEIGHT));
    let white = |x: usize, y: usize| image.row(y)[x] > 128;
    let number = (0..8).map(|bit| u8::from(white(bit * 16 + 8, HEIGHT / 4)) << bit).sum();
    (if white(WIDTH / 2, HEIGHT * 3 / 4) { Eye::Left } else { Eye::Right }, number)
}

/// The two views in one picture.
pub fn joined(number: u8, side_by_side: bool) -> Image {
    let (left, right) = (view(Eye::Left, number), view(Eye::Right, number));
    if side_by_side {
        Image::from_fn(2 * WIDTH, HEIGHT, |x, y| {
            if x < WIDTH { left.row(y)[x] } else { right.row(y)[x - WIDTH] }
        })
    } else {
        Image::from_fn(WIDTH, 2 * HEIGHT, |x, y| {
            if y < HEIGHT { left.row(y)[x] } else { right.row(y - HEIGHT)[x] }
        })
    }
}

/// `count` frames at `rate` a second from `start` on: number and time of each.
pub fn steady(count: u8, rate: u64, start: Duration) -> Vec<(u8, Duration)> {
    let time = |i| start + Duration::from_nanos(u64::from(i) * 1_000_000_000 / rate);
    (0..count).map(|i| (i, time(i))).collect()
}

/// Writes images through `coding` ("x264enc ! mp4mux") to `path`; with `rate` 0, no rate is stated.
pub fn write(path: &Path, pictures: &[(Image, Duration)], rate: i32, coding: &str) {
    let (width, height) = (pictures[0].0.width(), pictures[0].0.height());
    let stride = width.next_multiple_of(4);
    let padded = |image: &Image| {
        let mut bytes = vec![0; stride * height];
        for y in 0..height {
            bytes[y * stride..][..width].copy_from_slice(image.row(y));
        }
        bytes
    };
    let buffers = pictures.iter().map(|(image, time)| (padded(image), *time)).collect();
    write_video(path, ("GRAY8", width, height), buffers, rate, &format!("videoconvert ! {coding}"));
}

/// Runs a pipeline that ends by itself.
pub fn launch(description: &str) {
    gst::init().unwrap();
    let pipeline = gst::parse::launch(description).unwrap_or_else(|e| panic!("{description}: {e}"));
    let pipeline = pipeline.downcast::<gst::Pipeline>().unwrap();
    pipeline.set_state(gst::State::Playing).unwrap();
    play_to_end(&pipeline);
}

/// The video of one view.
pub fn eye(
    folder: &Path,
    name: &str,
    eye: Eye,
    frames: &[(u8, Duration)],
    coding: &str,
) -> PathBuf {
    let path = folder.join(name);
    let pictures: Vec<_> = frames.iter().map(|&(n, time)| (view(eye, n), time)).collect();
    let rate = match frames {
        [(_, first), (_, second), ..] => (1.0 / (*second - *first).as_secs_f64()).round() as i32,
        _ => 20,
    };
    write(&path, &pictures, rate, coding);
    path
}

pub const H264_MP4: &str = "video/x-raw,format=I420 ! x264enc speed-preset=ultrafast ! mp4mux";
pub const H264_MKV: &str = "video/x-raw,format=I420 ! x264enc speed-preset=ultrafast ! matroskamux";
pub const MJPEG_AVI: &str = "jpegenc ! avimux";
pub const MJPEG_MKV: &str = "jpegenc ! matroskamux";
