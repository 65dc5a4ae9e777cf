//! Changes of settings by viewers: which are allowed, and how those of several viewers are carried out.

use std::slice;

use anyhow::{Context, Result, bail};

use super::requests::Change;
use crate::settings::{Loaded, row};
use crate::viewer::{RequestId, Wish};

pub type Answer = (Vec<RequestId>, Result<()>);

/// Carries out changes, and returns the answers. They take effect at once, so that one engine is made for
/// all. If that fails, each takes effect by itself, so that none is refused because of another one.
pub fn carry_out(
    changes: &[Change],
    in_effect: &dyn Fn() -> Loaded,
    put_in_effect: &dyn Fn(Loaded) -> Result<()>,
) -> Vec<Answer> {
    let one_after_the_other = |now: Loaded, change: &Change| changed(&now, &change.values);
    let next = changes.iter().try_fold(in_effect(), one_after_the_other);
    match next.and_then(put_in_effect) {
        Err(_) if changes.len() > 1 => {
            let alone = |change| carry_out(slice::from_ref(change), in_effect, put_in_effect);
            changes.iter().flat_map(alone).collect()
        }
        done => vec![(changes.iter().flat_map(|it| it.ids.clone()).collect(), done)],
    }
}

fn changed(now: &Loaded, values: &[Wish]) -> Result<Loaded> {
    let mut texts = Vec::new();
    for (path, text) in values {
        let name = path
            .split_once('.')
            .filter(|(section, key)| row(section, key).is_some_and(|row| row.panel.is_some()));
        let (section, key) = name.with_context(|| format!("there is no parameter {path}"))?;
        texts.push((section, key, text.as_str()));
    }
    // A preset takes back earlier values, but none of its own change.
    let (preset, others): (Vec<_>, Vec<_>) =
        texts.into_iter().partition(|(_, key, _)| *key == "preset");
    let next = now.with_texts(preset)?.with_texts(others)?;
    for (section, key) in now.differences(&next) {
        if let Some(why) = crate::settings::why_fixed(now, &section, &key) {
            bail!("{section}.{key} cannot change in this run: {why}");
        }
    }
    Ok(next)
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::path::Path;

    use anyhow::ensure;

    use super::*;
    use crate::commands::run::live::requests::{Request, Requests};
    use crate::settings::Layers;
    use crate::viewer::{Ask, ClientId, ViewerId};

    /// The window, a ROS 2 graph, and clients of the server: pages and Foxglove.
    const FACES: [ViewerId; 4] = [
        ViewerId::Window,
        ViewerId::Ros2,
        ViewerId::Client(ClientId(1)),
        ViewerId::Client(ClientId(2)),
    ];

    /// A run whose engine takes costs up to a limit.
    struct Run {
        requests: Requests,
        in_effect: RefCell<Loaded>,
        engines: Cell<usize>,
    }

    impl Run {
        fn new(text: &str) -> Self {
            let mut layers = Layers::new();
            layers.file_text(Path::new("rig.toml"), text);
            let in_effect = RefCell::new(layers.finish().unwrap());
            Self { requests: Requests::default(), in_effect, engines: Cell::new(0) }
        }

        fn ask(&self, viewer: ViewerId, number: u32, values: &[(&str, &str)]) {
            let wish = |(path, text): &(&str, &str)| (String::from(*path), String::from(*text));
            let values = values.iter().map(wish).collect();
            self.requests.ask(Ask::Values { id: RequestId { viewer, number }, values });
        }

        /// Serves all requests, and returns the ids that were answered, with the problem.
        fn serve(&self) -> Vec<(ViewerId, u32, Option<String>)> {
            let Some(Request::Change(changes)) = self.requests.next(None) else { panic!() };
            let put = |next: Loaded| {
                ensure!(next.params.range.count < 512, "no memory");
                self.engines.set(self.engines.get() + 1);
                *self.in_effect.borrow_mut() = next;
                Ok(())
            };
            let answers = carry_out(&changes, &|| self.in_effect.borrow().clone(), &put);
            let answers = answers.into_iter().flat_map(|(ids, done)| {
                let problem = done.err().map(|error| error.to_string());
                ids.into_iter().map(move |id| (id.viewer, id.number, problem.clone()))
            });
            answers.collect()
        }

        fn value(&self, key: &str) -> String {
            self.in_effect.borrow().given("matching", key).to_string()
        }
    }

    #[test]
    fn two_faces_that_change_different_settings_both_keep_their_change() {
        for first in FACES {
            for second in FACES {
                let run = Run::new("");
                run.ask(first, 1, &[("matching.p1", "7")]);
                run.ask(second, 2, &[("matching.uniqueness", "23")]);
                assert_eq!(run.serve(), [(first, 1, None), (second, 2, None)]);
                assert_eq!((run.value("p1"), run.value("uniqueness")), ("7".into(), "23".into()));
                assert_eq!(run.engines.get(), 1, "one engine for both");
            }
        }
    }

    #[test]
    fn the_last_of_two_faces_wins_a_setting_and_both_are_answered() {
        for first in FACES {
            for second in FACES {
                let run = Run::new("");
                run.ask(first, 1, &[("matching.p1", "7"), ("matching.uniqueness", "23")]);
                run.ask(second, 2, &[("matching.p1", "9")]);
                assert_eq!(run.serve(), [(first, 1, None), (second, 2, None)]);
                assert_eq!((run.value("p1"), run.value("uniqueness")), ("9".into(), "23".into()));
            }
        }
    }

    #[test]
    fn a_refused_change_costs_no_other_face_its_own() {
        for (wrong, reason) in [
            (("matching.p1", "x"), "p1"),
            (("matching.p3", "1"), "there is no parameter matching.p3"),
            (("output.record", "o.mkv"), "there is no parameter output.record"),
            (("p1", "1"), "there is no parameter p1"),
            (("matching.disparities", "1024"), "no memory"),
        ] {
            for [first, second] in [[FACES[0], FACES[2]], [FACES[2], FACES[1]]] {
                let run = Run::new("");
                run.ask(first, 1, &[wrong, ("matching.speckle_range", "3")]);
                run.ask(second, 1, &[("matching.uniqueness", "23")]);
                let [(at, 1, Some(problem)), (other, 1, None)] = &run.serve()[..] else {
                    panic!("{wrong:?}")
                };
                assert!((*at, *other) == (first, second) && problem.contains(reason), "{problem}");
                assert_eq!(run.value("uniqueness"), "23");
                // All values of a change are set, or none.
                assert_eq!(run.value("speckle_range"), "2.0");
            }
        }
    }

    #[test]
    fn a_fixed_setting_can_be_set_to_its_own_value_only() {
        let run = Run::new("[output]\nrecord = 'a.mkv'\n[matching]\ndisparities = 64\n");
        run.ask(FACES[1], 1, &[("matching.disparities", "64"), ("matching.p1", "7")]);
        assert_eq!(run.serve(), [(FACES[1], 1, None)]);
        run.ask(FACES[1], 2, &[("matching.disparities", "32")]);
        let problem = run.serve().remove(0).2.unwrap();
        assert!(problem.contains("matching.disparities cannot change in this run: "), "{problem}");
    }

    #[test]
    fn values_of_one_change_hold_besides_its_preset_in_any_order() {
        let run = Run::new("");
        run.ask(FACES[0], 1, &[("matching.fill", "row"), ("matching.preset", "accurate")]);
        run.serve();
        assert_eq!(run.value("fill"), "\"row\"");
        // Also one that was in effect before.
        run.ask(FACES[0], 1, &[("matching.fill", "row"), ("matching.preset", "dense")]);
        run.serve();
        assert_eq!(
            (run.value("fill"), run.value("preset")),
            ("\"row\"".into(), "\"dense\"".into())
        );
        run.ask(FACES[1], 1, &[("matching.fill", "rays")]);
        run.ask(FACES[0], 2, &[("matching.preset", "dense")]);
        run.ask(FACES[0], 3, &[("matching.preset", "accurate")]);
        run.serve();
        assert_eq!(run.value("fill"), "\"off\"", "a later preset takes it back");
    }
}
