//! Video files: the lossless recording of disparity or of images, and a preview for people.
//!
//! ```text
//!                                 ┌▶ appsrc ─▶ avenc_ffv1 ─▶ appsink ┐
//! Recorder:  map ─▶ 16-bit numbers ┼▶ appsrc ─▶ avenc_ffv1 ─▶ appsink ┼▶ in order ─▶ matroska.rs ─▶ OUT.mkv
//!                                 └▶ ...                             ┘
//!            confidence ─▶ ... the same
//! RectifiedVideo: image ─▶ ... the same
//! Preview:   map, left image ─▶ colours ─▶ appsrc ─▶ videoconvert ─▶ x264enc ─▶ mp4mux ─▶ fdsink (OUT.mp4)
//! StreamSink: map, left image ─▶ colours or numbers ─▶ appsrc ─▶ a pipeline fragment of the user
//! ```

mod elements;
mod encoded;
mod encoders;
mod faststart;
mod feed;
mod join;
mod legend;
mod lossless;
mod matroska;
mod preview;
mod recorder;
mod rectified;
mod stream;
mod tags;
mod times;
mod turns;
mod view;

pub use join::join_recordings;
pub use lossless::check_recording_name;
pub use preview::{Preview, check_preview_name};
pub use recorder::Recorder;
pub use rectified::{RectifiedVideo, RectifiedVideoOptions};
pub use stream::{FragmentError, StreamOptions, StreamPicture, StreamSink, check_fragment};
pub use tags::{RecordingTags, RectifiedTags, read_recording_tags, read_rectified_tags, run_tags};
pub use view::VideoView;
