//! Images that hold both views, as their files state it.

/// Arrangement of the views in the images of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// An image for each view.
    Alone,
    SideBySide,
    TopBottom,
}

/// Arrangement that the file of a stereo image states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stated {
    pub packing: Packing,
    pub right_first: bool,
    /// True if the views are squeezed to half their width or height.
    pub half: bool,
}

impl Stated {
    /// Arrangement of JPS and PNS files that state none: for crossed eyes.
    pub const CROSS_EYED: Self =
        Self { packing: Packing::SideBySide, right_first: true, half: false };

    /// Describes the arrangement and the flags to be given for it.
    pub fn describe(self) -> String {
        let Self { packing, right_first, half } = self;
        let (arranged, mut flags) = match packing {
            Packing::TopBottom => ("one above the other", "--top-bottom FILE".to_owned()),
            _ => ("side by side", "--side-by-side FILE".to_owned()),
        };
        let order = if right_first { ", the right one first" } else { "" };
        let squeezed = if half { ", squeezed to half their size" } else { "" };
        for (is_given, flag) in [(right_first, " --swap"), (half, " --half")] {
            flags += if is_given { flag } else { "" };
        }
        format!("it states that it holds both views {arranged}{order}{squeezed}; give `{flags}`")
    }
}
