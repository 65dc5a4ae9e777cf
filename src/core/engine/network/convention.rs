//! How a network takes its views and gives its disparity.

use serde::{Deserialize, Serialize};

/// How the two views enter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Layout {
    /// One input, the left view's channels before the right one's.
    Stacked,
    /// An input for each view.
    Two,
    /// Both views at half size, then both at full size.
    Four,
}

/// Values of grey levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scale {
    /// 0 to 255.
    Levels,
    /// 0 to 1.
    Unit,
    /// -1 to 1.
    Signed,
    /// By the means and deviations of ImageNet's channels.
    ImageNet,
}

impl Scale {
    pub const ALL: [Self; 4] = [Self::Levels, Self::Unit, Self::Signed, Self::ImageNet];

    /// The values of all levels of red, green or blue: colours 0 to 2.
    pub fn levels(self, colour: usize) -> [f32; 256] {
        const MEANS: [f32; 3] = [0.485, 0.456, 0.406];
        const DEVIATIONS: [f32; 3] = [0.229, 0.224, 0.225];
        std::array::from_fn(|grey| match (grey as f32, self) {
            (grey, Self::Levels) => grey,
            (grey, Self::Unit) => grey / 255.0,
            (grey, Self::Signed) => grey / 127.5 - 1.0,
            (grey, Self::ImageNet) => (grey / 255.0 - MEANS[colour]) / DEVIATIONS[colour],
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Levels => "0..255",
            Self::Unit => "0..1",
            Self::Signed => "-1..1",
            Self::ImageNet => "ImageNet's",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Convention {
    pub scale: Scale,
    /// Set if blue comes first, and red last.
    pub bgr: bool,
    /// Set if the right view comes first.
    pub swapped: bool,
    /// Number of the output with the disparity.
    pub output: usize,
    /// Set if the output is minus the disparity.
    pub negative: bool,
    /// Set if the output is the disparity divided by the width.
    pub of_width: bool,
    /// Width and height must be multiples of this.
    pub multiple: usize,
}

impl Convention {
    /// Turns an output into the disparity of views of this width.
    pub fn disparity(&self, value: f32, width: usize) -> f32 {
        let value = if self.negative { -value } else { value };
        if self.of_width { value * width as f32 } else { value }
    }

    pub fn describe(&self, layout: Layout) -> String {
        let inputs = match layout {
            Layout::Stacked => "one input",
            Layout::Two => "two inputs",
            Layout::Four => "four inputs",
        };
        let colours = if self.bgr { ", blue before red" } else { "" };
        let order = if self.swapped { ", the right view first" } else { "" };
        let sign = if self.negative { "minus the disparity" } else { "the disparity" };
        let unit = if self.of_width { " as a share of the width" } else { "" };
        format!("{inputs} of {} values{colours}{order}; it gives {sign}{unit}", self.scale.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grey_levels_have_the_values_of_each_scale() {
        let ends = |scale: Scale, channel| {
            let levels = scale.levels(channel);
            [levels[0], levels[255]]
        };
        assert_eq!(ends(Scale::Levels, 1), [0.0, 255.0]);
        assert_eq!(ends(Scale::Unit, 0), [0.0, 1.0]);
        assert_eq!(ends(Scale::Signed, 2), [-1.0, 1.0]);
        // torchvision's documentation of its models.
        let [low, high] = ends(Scale::ImageNet, 0);
        assert!((low + 2.1179).abs() < 1e-4 && (high - 2.2489).abs() < 1e-4, "{low} {high}");
    }
}
