//! Cameras of a run and their controls, as their drivers report them.

use stereod_core::frame::Eye;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CameraInput {
    /// The view that it delivers; the left one for both in one stream.
    pub eye: Eye,
    /// Name as given by the user.
    pub name: String,
    /// Format, size and rate: "GREY 640x480 at 30/s".
    pub mode: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CameraControl {
    /// The driver's number, equal on all cameras.
    pub id: u32,
    /// The driver's name.
    pub name: String,
    pub kind: ControlKind,
    pub least: i32,
    pub largest: i32,
    /// Distance between two values, at least 1.
    pub step: i32,
    pub default: i32,
    pub value: i32,
    /// True if it cannot be set, or not while frames flow.
    pub is_read_only: bool,
    /// True if it has no effect now, because an automatic mode is on.
    pub is_inactive: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlKind {
    Number,
    Switch,
    Menu(Vec<(i32, String)>),
}

impl CameraControl {
    /// Reports whether it can be set now.
    pub fn is_settable(&self) -> bool {
        !self.is_read_only && !self.is_inactive
    }

    /// Returns the value as text, with its name in a menu.
    pub fn text_of(&self, value: i32) -> String {
        match &self.kind {
            ControlKind::Number => value.to_string(),
            ControlKind::Switch => if value == 0 { "off" } else { "on" }.to_owned(),
            ControlKind::Menu(names) => names
                .iter()
                .find(|(number, _)| *number == value)
                .map_or_else(|| value.to_string(), |(_, name)| name.clone()),
        }
    }
}

/// State of a camera, after the values of a request were set or at its turn to be polled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CameraReport {
    /// Number of the last request that was carried out.
    pub number: u64,
    /// The name it calls itself, and its controls; or why it does not answer.
    pub seen: Result<(String, Vec<CameraControl>), String>,
    /// Reason why a value was not set.
    pub problem: Option<String>,
}
