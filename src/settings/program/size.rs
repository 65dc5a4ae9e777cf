//! Sizes of images as texts.

use std::fmt;
use std::str::FromStr;

/// Width and height in pixels, written 640x480.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
}

impl Size {
    /// Largest width and height.
    pub const MAX: usize = 16_384;
}

impl FromStr for Size {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let side = |text: &str| text.parse().ok().filter(|side| (1..=Size::MAX).contains(side));
        text.split_once(['x', 'X', '×'])
            .and_then(|(width, height)| Some(Size { width: side(width)?, height: side(height)? }))
            .ok_or_else(|| {
                format!("expected WIDTHxHEIGHT such as 640x480, each 1 to {}", Size::MAX)
            })
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!("640x480".parse(), Ok(Size { width: 640, height: 480 }));
        assert_eq!(Size { width: 640, height: 480 }.to_string(), "640x480");
        for wrong in ["640", "x", "0x1", "1x-1", "1x2x3", "99999x1", " 1x1", ""] {
            assert!(wrong.parse::<Size>().is_err(), "{wrong}");
        }
    }
}
