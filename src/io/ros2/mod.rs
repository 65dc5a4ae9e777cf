//! A ROS 2 graph, without ROS: membership, and topics as a recording that is being made.

pub mod dds;
pub mod graph;
