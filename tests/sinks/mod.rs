//! The sinks' files are read back by GStreamer and by the image decoder.

mod killed;
mod pictures;
mod preview;
mod recorder;
