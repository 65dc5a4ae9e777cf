//! What the sinks write is read back by GStreamer and by the picture decoder.

mod killed;
mod pictures;
mod preview;
mod recorder;
