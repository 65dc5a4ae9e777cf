//! Sizes and colours of the overlay.

use egui::Color32;

/// Text size in points.
pub(super) const TEXT: f32 = 13.0;
pub(super) const MARGIN: f32 = 8.0;
pub(super) const PADDING: f32 = 6.0;
pub(super) const PANEL: Color32 = Color32::from_black_alpha(170);
pub(super) const BRIGHT: Color32 = Color32::from_gray(245);
pub(super) const DIM: Color32 = Color32::from_gray(190);
pub(super) const ALARM: Color32 = Color32::from_rgb(255, 190, 60);
