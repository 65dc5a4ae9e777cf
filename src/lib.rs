//! Disparity from two cameras: Semi-Global Matching on an NVIDIA GPU or on the CPU, with identical results.
//!
//! A [`Matcher`] is created once from [`Params`], the size of the images and a [`Device`]. It then turns pair
//! after pair into [`Disparity`]. Images are borrowed: 8-bit grey values, row by row from the top, with any row
//! stride, or [16 bits](ImageRef::from_16_bit) or [RGB](ImageRef::from_rgb). Both must be rectified: a point at
//! (x, y) of the left image is at (x - d, y) of the right one. The disparity d is larger for nearer points.
//!
//! ```
//! use stereod::{Device, INVALID, ImageRef, Matcher, Params, SUBPIXEL};
//!
//! // A textured wall at a disparity of 5 pixels. Rows are 128 bytes apart.
//! let (width, height, stride) = (96, 48, 128);
//! let texture = |x: usize, y: usize| {
//!     let blot = (x / 2).wrapping_mul(0x9e37_79b9) ^ (y / 2).wrapping_mul(0x85eb_ca6b);
//!     (blot.wrapping_mul(0xc2b2_ae35) >> 13) as u8
//! };
//! let seen = |shift: usize| -> Vec<u8> {
//!     (0..stride * height).map(|i| texture(i % stride + shift, i / stride)).collect()
//! };
//! let (left, right) = (seen(0), seen(5));
//!
//! // Disparities from 0 to 15 pixels, and the program's defaults.
//! let params = Params::default().with_disparities(16);
//! let mut matcher = Matcher::new(&params, width, height, Device::Auto)?;
//! let disparity = matcher.compute(
//!     ImageRef::with_stride(&left, width, height, stride)?,
//!     ImageRef::with_stride(&right, width, height, stride)?,
//! )?;
//!
//! // Disparity of the left image in pixels; `None` if unknown.
//! let map = disparity.map();
//! assert_eq!((map.width(), map.height()), (width, height));
//! assert_eq!(map.at(48, 24).map(f32::round), Some(5.0));
//! // The stored values: row by row in 1/16 px, INVALID if unknown.
//! let value = map.values()[24 * width + 48];
//! assert!(value != INVALID && (i32::from(value) - 5 * SUBPIXEL).abs() <= 1);
//! // Disparity of the right image.
//! assert_eq!(matcher.right_map(&disparity)?.at(48 - 5, 24).map(f32::round), Some(5.0));
//! # Ok::<(), stereod::Error>(())
//! ```
//!
//! Raw camera images are rectified first, with a calibration in any format that `stereod calibration` reads
//! (OpenCV, ROS, Kalibr and others). The calibration also yields points in metres:
//!
//! ```no_run
//! use stereod::{Calibration, Device, Eye, ImageRef, Matcher, Params};
//!
//! let (width, height) = (1280, 720);
//! let calibration = Calibration::read_for_size(&["left.yaml", "right.yaml"], (width, height))?;
//! let rectifier = calibration.rectifier(None)?;
//! let mut matcher = Matcher::rectifying(&Params::default(), rectifier, Device::Auto)?;
//!
//! // Raw images of a camera or a decoder.
//! let (left, right) = (vec![0; width * height], vec![0; width * height]);
//! let disparity =
//!     matcher.compute(ImageRef::new(&left, width, height)?, ImageRef::new(&right, width, height)?)?;
//! if let Some([right, down, forward]) = disparity.point_m(640, 360) {
//!     println!("{right:.3} m to the right, {down:.3} m down, {forward:.3} m away");
//! }
//! // The rectified left image, to which the disparity belongs.
//! let rectified: &[u8] = disparity.picture(Eye::Left);
//! # Ok::<(), stereod::Error>(())
//! ```
//!
//! Without optimisation matching is over a hundred times slower. These lines in your Cargo.toml keep it fast in debug
//! builds:
//!
//! ```toml
//! [profile.dev.package.stereod-core]
//! opt-level = 3
//! ```
//!
//! The `stereod` command uses the same parts:
//!
//! ```text
//! left  ── GStreamer ── appsink ─┐
//!                                ├─ pair ─▶ [bounded lock-free link] ─▶ engine: rectify ▶ match ▶ refine ─▶ fan-out ─▶ window
//! right ── GStreamer ── appsink ─┘          (live: oldest dropped and                                         │  ├▶ recorder (16-bit lossless video)
//!                                            counted; files: blocks)                                          │  ├▶ preview video, pictures
//!                                                                                                             └▶ alignment, statistics
//! ```

#[cfg(feature = "cli")]
mod cli;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod commands;
#[cfg(feature = "cli")]
mod devices;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod followed;
#[cfg(any(feature = "window", feature = "serve"))]
mod keys;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod observe;
#[cfg(feature = "cli")]
mod outputs;
#[cfg(feature = "cli")]
mod pipeline;
#[cfg(feature = "cli")]
mod queue;
#[cfg(feature = "ros2")]
mod ros2;
#[cfg(feature = "cli")]
mod run;
#[cfg(feature = "serve")]
mod serve;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod settings;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod status;
#[cfg(feature = "cli")]
mod telemetry;
#[cfg(any(feature = "window", feature = "serve"))]
mod trail;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod viewer;
#[cfg(feature = "window")]
#[doc(hidden)]
pub mod window;
#[cfg(all(feature = "cli", not(feature = "window")))]
#[path = "window/absent.rs"]
mod window;

#[doc(inline)]
pub use stereod_calibration::{BoardView, Calibration};
#[doc(inline)]
pub use stereod_core::{
    BlockMeasure, BlockWindow, CensusWindow, CombinedWeights, Cost, CostError, Device, Disparity,
    DisparityMap, DisparityRange, Error, Evidence, Eye, Fill, FillRule, Guide, INVALID, ImageBuf,
    ImageRef, Lost, Matcher, Median, Mount, Odometry, P2Mode, Params, ParamsError, Paths, Pose,
    Prior, Rectifier, SUBPIXEL, Smoothing, Spatial, Speckle, Status, Steady, StereoGeometry,
    Stream, Subpixel, Temporal, TemporalMode, Window,
};

#[doc(hidden)]
#[cfg(feature = "cli")]
pub use commands::program;
