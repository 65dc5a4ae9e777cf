//! The mouse over the points in space.

use winit::event::MouseButton;

use super::super::view::View;
use super::App;

impl App {
    /// Reports whether the mouse is over the points.
    pub(super) fn is_over_points(&self) -> bool {
        let (Some(screen), Some((x, _))) = (&self.shell.screen, self.cursor) else { return false };
        self.view == View::Points && x < f64::from(self.scene().room(screen.size()).0)
    }

    /// Moves the viewpoint with the mouse: the left button turns, the others shift.
    pub(super) fn move_viewpoint(
        &mut self,
        button: MouseButton,
        before: (f64, f64),
        now: (f64, f64),
    ) {
        let Some(screen) = &self.shell.screen else { return };
        let height = f64::from(screen.size().1.max(1));
        let [across, down] =
            [now.0 - before.0, now.1 - before.1].map(|pixels| (pixels / height) as f32);
        match button {
            MouseButton::Left => self.orbit.turn(across, down),
            _ => self.orbit.shift(across, down),
        }
    }
}
