//! Video files: the lossless recording of disparity or of images, and a preview for people.

mod encoders;
mod feed;
mod join;
mod lossless;
mod matroska;
mod preview;
mod recorder;
mod stream;
mod tags;
mod times;
mod view;

pub use join::join_recordings;
pub use lossless::check_recording_name;
pub use preview::{Preview, check_preview_name};
pub use recorder::{Recorder, RectifiedVideo, RectifiedVideoOptions};
pub use stream::{FragmentError, StreamOptions, StreamPicture, StreamSink, check_fragment};
pub use tags::{RecordingTags, RectifiedTags, read_recording_tags, read_rectified_tags, run_tags};
pub use view::VideoView;
