//! Points of clouds.

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    /// In metres.
    pub(super) position: [f32; 3],
    /// Red, green and blue.
    pub(super) colour: [u8; 3],
    /// Standard deviation of z in metres; NaN if unknown.
    pub(super) deviation: f32,
}
