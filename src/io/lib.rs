//! Sources of stereo pairs and outputs of disparity of the program `stereod`. Not an interface: it changes without notice.

pub mod accuracy;
pub mod backoff;
pub mod camera;
pub mod clock;
pub mod container;
pub mod control;
pub mod ebml;
pub mod gst;
pub mod labels;
pub mod pattern;
pub mod playback;
mod plugins;
#[cfg(feature = "ros2")]
pub mod ros2 {
    //! A ROS 2 graph, without ROS: membership, and topics as a recording that is being made.

    pub mod dds;
    pub mod graph;
}
pub mod sink;
pub mod source;
pub mod text;
