//! The ground plan of places that a rig has seen.

/// Ground plan in the axes of the vehicle at the first pair (x ahead, y to the left), as a ROS message
/// `nav_msgs/OccupancyGrid` has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grid {
    /// Corner of the first cell in metres: the least x and y.
    pub origin_m: [f64; 2],
    /// Side of a cell in metres.
    pub resolution_m: f64,
    /// Number of cells along x.
    pub width: usize,
    /// Number of cells along y.
    pub height: usize,
    /// Cells in rows along x, beginning at the origin: the probability in percent that something is in the height band;
    /// -1 if that is unknown.
    pub cells: Vec<i8>,
}
