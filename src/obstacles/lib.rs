//! Obstacles from disparity: a scan of distances by direction, zones, and distances of things in boxes; and the messages
//! of vehicles and homes that tell them.
