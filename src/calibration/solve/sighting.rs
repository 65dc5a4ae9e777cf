//! Sightings of the board, and reasons for skipping pairs.

use std::fmt;

use nalgebra::{Vector2, Vector3};
use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::board::Board;
use crate::board::{Detection, NotFound};
use stereod_core::frame::Eye;

/// A pair of images.
#[derive(Clone, Debug)]
pub struct Sighting {
    /// Name of the pair in reports.
    pub name: String,
    /// The board in the left and in the right image, or the reason why the pair cannot be used.
    pub seen: Result<[Detection; 2], Reason>,
}

/// Reason for skipping a pair.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// An image cannot be read.
    Unreadable(String),
    /// No partner: one camera has no image of this name or number.
    Alone(Eye),
    /// The images differ in size from most.
    Size {
        /// The view.
        eye: Eye,
        /// Its width and height.
        size: (usize, usize),
        /// Image size of the other pairs.
        usual: (usize, usize),
    },
    /// The board is not found in one view, or in both.
    NotFound {
        /// The view; `None` for both.
        eye: Option<Eye>,
        seen: NotFound,
    },
    /// Only one line of the board's corners is seen in this view.
    Line(Eye),
    /// Edges are much wider than in other images.
    Blurred {
        /// The view.
        eye: Eye,
        width_px: f64,
        /// Largest width of edges in used images.
        limit_px: f64,
    },
    /// The corners do not fit one camera: the board is bent, or the corners belong to something else.
    Misfit {
        /// The view.
        eye: Eye,
        /// Root mean square of the reprojection error in pixels.
        rms_px: f64,
        /// The same error for most pairs.
        usual_px: f64,
    },
    /// Each view fits, but not both together: the board moved in between.
    Moved {
        /// Root mean square of the reprojection error in pixels.
        rms_px: f64,
        /// The same error for most pairs.
        usual_px: f64,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(words) => f.write_str(words),
            Self::Alone(eye) => write!(f, "only the {eye} view has this picture"),
            Self::Size { eye, size, usual } => write!(
                f,
                "the {eye} picture has {}x{} pixels, most have {}x{}",
                size.0, size.1, usual.0, usual.1
            ),
            Self::NotFound { eye: Some(eye), seen } => write!(f, "in the {eye} view {seen}"),
            Self::NotFound { eye: None, seen } => write!(f, "in both views {seen}"),
            Self::Line(eye) => {
                write!(
                    f,
                    "only one line of corners is seen in the {eye} view; show more of the board"
                )
            }
            Self::Blurred { eye, width_px, limit_px } => write!(
                f,
                "the {eye} picture is blurred: edges are {width_px:.1} px wide, up to \
                 {limit_px:.1} are sharp"
            ),
            Self::Misfit { eye, rms_px, usual_px } => write!(
                f,
                "the corners in the {eye} view do not fit ({}): is the board bent or partly hidden?",
                error(*rms_px, *usual_px)
            ),
            Self::Moved { rms_px, usual_px } => write!(
                f,
                "the views do not see the board in the same place ({}): it moved, or the pictures are not of one \
                 moment",
                error(*rms_px, *usual_px)
            ),
        }
    }
}

/// Formats an error; one without a solution has no number.
fn error(rms_px: f64, usual_px: f64) -> String {
    match rms_px < 1e5 {
        true => format!("RMS {rms_px:.2} px, usual {usual_px:.2}"),
        false => "by no pose of the board".into(),
    }
}

impl Reason {
    /// Returns the kind in one word, for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "unreadable",
            Self::Alone(_) => "alone",
            Self::Size { .. } => "size",
            Self::NotFound { .. } => "not-found",
            Self::Line(_) => "line",
            Self::Blurred { .. } => "blurred",
            Self::Misfit { .. } => "misfit",
            Self::Moved { .. } => "moved",
        }
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Reason", 2)?;
        fields.serialize_field("kind", self.kind())?;
        fields.serialize_field("words", &self.to_string())?;
        fields.end()
    }
}

pub(super) fn points(board: &Board, seen: &Detection) -> Vec<(Vector3<f64>, Vector2<f64>)> {
    let corners = seen.corners.iter();
    corners.map(|corner| (board.point(corner.id), Vector2::from(corner.pixel))).collect()
}
