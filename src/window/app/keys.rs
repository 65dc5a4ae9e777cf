//! Meaning of the keys.

use winit::keyboard::{Key, ModifiersState, NamedKey};

use super::super::options::View;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Pause,
    NextColours,
    NextView,
    Show(View),
    Points,
    Snapshot,
    PointCloud,
    BothEyes,
    Histograms,
    Compare,
    Tune,
    WriteSettings,
    FullScreen,
    Overlay,
    Help,
    /// Leaves the full screen, else quits.
    Leave,
    Quit,
    Travel(Travel),
}

/// Ways to move through a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Travel {
    Forwards,
    Backwards,
    Begin,
    End,
    MarkBegin,
    MarkEnd,
    Repeat,
    Slower,
    Faster,
}

impl Action {
    pub(super) fn of(key: &Key, modifiers: ModifiersState) -> Option<Self> {
        // Shift only makes capitals and the question mark; the others belong to the desktop.
        if !(modifiers - ModifiersState::SHIFT).is_empty() {
            return None;
        }
        match key {
            Key::Named(NamedKey::Space) => Some(Action::Pause),
            Key::Named(NamedKey::Escape) => Some(Action::Leave),
            Key::Named(NamedKey::ArrowRight) => Some(Action::Travel(Travel::Forwards)),
            Key::Named(NamedKey::ArrowLeft) => Some(Action::Travel(Travel::Backwards)),
            Key::Named(NamedKey::Home) => Some(Action::Travel(Travel::Begin)),
            Key::Named(NamedKey::End) => Some(Action::Travel(Travel::End)),
            Key::Character(character) => match character.to_lowercase().as_str() {
                " " => Some(Action::Pause),
                "c" => Some(Action::NextColours),
                "l" => Some(Action::NextView),
                // The digits are those of the live page; 5 mixes two images there.
                "1" => Some(Action::Show(View::SideBySide)),
                "2" => Some(Action::Show(View::Disparity)),
                "3" => Some(Action::Points),
                "4" => Some(Action::Show(View::Left)),
                "6" => Some(Action::Show(View::Confidence)),
                "s" => Some(Action::Snapshot),
                "p" => Some(Action::PointCloud),
                "e" => Some(Action::BothEyes),
                "g" | "i" => Some(Action::Histograms),
                "b" => Some(Action::Compare),
                "t" => Some(Action::Tune),
                "w" => Some(Action::WriteSettings),
                "f" => Some(Action::FullScreen),
                "o" => Some(Action::Overlay),
                "h" | "?" => Some(Action::Help),
                "q" => Some(Action::Quit),
                "." => Some(Action::Travel(Travel::Forwards)),
                "," => Some(Action::Travel(Travel::Backwards)),
                "[" => Some(Action::Travel(Travel::MarkBegin)),
                "]" => Some(Action::Travel(Travel::MarkEnd)),
                "r" => Some(Action::Travel(Travel::Repeat)),
                "-" => Some(Action::Travel(Travel::Slower)),
                "+" | "=" => Some(Action::Travel(Travel::Faster)),
                _ => None,
            },
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::help::{FILES, PLAYBACK, TUNING, VIEWS};
    use super::*;

    #[test]
    fn the_help_lists_every_key() {
        let action = |key: &str| {
            let named = match key {
                "Space" => NamedKey::Space,
                "Esc" => NamedKey::Escape,
                "Home" => NamedKey::Home,
                "End" => NamedKey::End,
                _ => return Action::of(&Key::Character(key.into()), ModifiersState::empty()),
            };
            Action::of(&Key::Named(named), ModifiersState::empty())
        };
        let mut listed = Vec::new();
        for (_, lines) in [VIEWS, PLAYBACK, TUNING, FILES] {
            for key in lines.iter().flat_map(|(keys, _)| keys.split(' ')) {
                listed.push(action(key).unwrap_or_else(|| panic!("{key} does nothing")));
            }
        }
        for key in ('!'..='~').map(String::from) {
            if let Some(action) = action(&key) {
                assert!(listed.contains(&action), "{key} is not listed: {action:?}");
            }
        }
    }

    #[test]
    fn keys_have_their_actions() {
        let plain = ModifiersState::empty();
        let of = |text: &str| Action::of(&Key::Character(text.into()), plain);
        assert_eq!(Action::of(&Key::Named(NamedKey::Space), plain), Some(Action::Pause));
        assert_eq!(Action::of(&Key::Named(NamedKey::Escape), plain), Some(Action::Leave));
        assert_eq!(of("c"), Some(Action::NextColours));
        assert_eq!(of("L"), Some(Action::NextView));
        assert_eq!(of("3"), Some(Action::Points));
        assert_eq!(of("s"), Some(Action::Snapshot));
        assert_eq!(of("p"), Some(Action::PointCloud));
        assert_eq!(of("e"), Some(Action::BothEyes));
        assert_eq!(of("g"), Some(Action::Histograms));
        assert_eq!(of("i"), of("g"));
        assert_eq!(of("1"), Some(Action::Show(View::SideBySide)));
        assert_eq!(of("6"), Some(Action::Show(View::Confidence)));
        assert_eq!(of("b"), Some(Action::Compare));
        assert_eq!(of("t"), Some(Action::Tune));
        assert_eq!(of("w"), Some(Action::WriteSettings));
        assert_eq!(of("f"), Some(Action::FullScreen));
        assert_eq!(of("o"), Some(Action::Overlay));
        assert_eq!(of("?"), Some(Action::Help));
        assert_eq!(of("q"), Some(Action::Quit));
        assert_eq!(of("x"), None);
        let travel = [(".", Travel::Forwards), (",", Travel::Backwards), ("[", Travel::MarkBegin)];
        let others = [("]", Travel::MarkEnd), ("r", Travel::Repeat), ("-", Travel::Slower)];
        for (key, travel) in travel.into_iter().chain(others).chain([("=", Travel::Faster)]) {
            assert_eq!(of(key), Some(Action::Travel(travel)), "{key}");
        }
        for (key, travel) in [
            (NamedKey::ArrowRight, Travel::Forwards),
            (NamedKey::ArrowLeft, Travel::Backwards),
            (NamedKey::Home, Travel::Begin),
            (NamedKey::End, Travel::End),
        ] {
            assert_eq!(Action::of(&Key::Named(key), plain), Some(Action::Travel(travel)));
        }
        let shifted = Action::of(&Key::Character("Q".into()), ModifiersState::SHIFT);
        assert_eq!(shifted, Some(Action::Quit));
        assert_eq!(Action::of(&Key::Character("f".into()), ModifiersState::ALT), None);
    }
}
