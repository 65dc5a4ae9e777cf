//! Recordings of messages: MCAP, ZED's .svo2, ROS 1 bags, rosbag2, and folders of data sets; and the topics of a
//! ROS 2 graph.
//!
//! A [`Reader`] lists topics and yields their messages in order of log time; everything else (which two topics
//! are the views, pairing, calibration) is the same for all of them. A recording that was cut off is read to its
//! last whole message.

#[cfg(feature = "bags")]
mod bag;
mod beginning;
pub mod choice;
mod dataset;
mod decoder;
pub mod fields;
mod folder;
pub mod interface;
mod mcap;
pub mod messages;
mod open;
#[cfg(feature = "bags")]
mod packed;
mod pixels;
mod protobuf;
mod replay;
#[cfg(feature = "bags")]
mod rosbag2;
pub mod survey;
mod svo;
mod timing;

pub use choice::partners;
pub use open::{GRAPH, Recording, files, is_graph, is_recording};
pub use replay::open as replay;
