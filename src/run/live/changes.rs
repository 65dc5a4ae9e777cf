//! Changes of settings by viewers: which are allowed, and how those of several viewers are carried out.

use anyhow::{Context, Result, bail};

use super::requests::{Change, Wanted};
use crate::settings::{Loaded, row};
use crate::viewer::{RequestId, Wish};

pub type Answer = (RequestId, Result<()>);

/// A run whose settings change.
pub trait Tunable {
    fn in_effect(&self) -> Loaded;

    /// Returns these settings with the values of the configuration.
    fn reset(&self, now: &Loaded) -> Result<Loaded>;

    /// Fails if the run cannot have these settings in place of the present ones, as far as this is known
    /// without an engine for them.
    fn check(&self, now: &Loaded, next: &Loaded) -> Result<()>;

    fn put_in_effect(&self, next: Loaded) -> Result<()>;
}

/// Carries out changes one after the other, as if each was alone: one that makes the settings impossible is refused
/// with its own reason and changes nothing. One engine is made for the outcome. If that fails, each half of the
/// changes gets an engine of its own, down to the change that no engine can be made for.
pub fn carry_out(changes: &[Change], run: &dyn Tunable) -> Vec<Answer> {
    let mut now = run.in_effect();
    let mut answers: Vec<Answer> = Vec::new();
    for Change { id, to } in changes {
        answers.push((*id, changed(&now, to, run).map(|next| now = next)));
    }
    let Some(last) = answers.iter().rposition(|(_, done)| done.is_ok()) else { return answers };
    let Err(error) = run.put_in_effect(now) else { return answers };
    if changes.len() == 1 {
        answers[last].1 = Err(error);
        return answers;
    }
    let (first, second) = changes.split_at(changes.len() / 2);
    let mut answers = carry_out(first, run);
    answers.extend(carry_out(second, run));
    answers
}

fn changed(now: &Loaded, to: &Wanted, run: &dyn Tunable) -> Result<Loaded> {
    let next = match to {
        Wanted::Values(values) => with_values(now, values)?,
        Wanted::Configured => run.reset(now)?,
    };
    run.check(now, &next)?;
    Ok(next)
}

fn with_values(now: &Loaded, values: &[Wish]) -> Result<Loaded> {
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
    use proptest::prelude::*;

    use super::*;
    use crate::run::live::requests::{Request, Requests};
    use crate::settings::Layers;
    use crate::viewer::{Ask, ClientId, ViewerId};

    /// The window, a ROS 2 graph, and clients of the server: pages and Foxglove.
    const FACES: [ViewerId; 4] = [
        ViewerId::Window,
        ViewerId::Ros2,
        ViewerId::Client(ClientId(1)),
        ViewerId::Client(ClientId(2)),
    ];

    /// A run that takes fewer than 512 disparities, and whose engine is made for fewer than 256.
    struct Run {
        requests: Requests,
        configured: Loaded,
        in_effect: RefCell<Loaded>,
        engines: Cell<usize>,
    }

    impl Tunable for Run {
        fn in_effect(&self) -> Loaded {
            self.in_effect.borrow().clone()
        }

        fn reset(&self, now: &Loaded) -> Result<Loaded> {
            Ok(now.with_those_of(&self.configured, &now.differences(&self.configured))?)
        }

        fn check(&self, _: &Loaded, next: &Loaded) -> Result<()> {
            ensure!(next.params.range.count < 512, "more than the budget");
            Ok(())
        }

        fn put_in_effect(&self, next: Loaded) -> Result<()> {
            ensure!(next.params.range.count < 256, "no memory");
            self.engines.set(self.engines.get() + 1);
            *self.in_effect.borrow_mut() = next;
            Ok(())
        }
    }

    impl Run {
        fn new(text: &str) -> Self {
            let mut layers = Layers::new();
            layers.file_text(Path::new("rig.toml"), text);
            let configured = layers.finish().unwrap();
            let in_effect = RefCell::new(configured.clone());
            Self { requests: Requests::default(), configured, in_effect, engines: Cell::new(0) }
        }

        fn ask(&self, viewer: ViewerId, number: u32, values: &[(&str, &str)]) {
            let wish = |(path, text): &(&str, &str)| (String::from(*path), String::from(*text));
            let values = values.iter().map(wish).collect();
            self.requests.ask(Ask::Values { id: RequestId { viewer, number }, values });
        }

        /// Serves all requests, and returns the ids that were answered, with the problem.
        fn serve(&self) -> Vec<(ViewerId, u32, Option<String>)> {
            let Some(Request::Change(changes)) = self.requests.next(None) else { panic!() };
            let answers = carry_out(&changes, self).into_iter();
            let problem = |done: Result<()>| done.err().map(|error| error.to_string());
            answers.map(|(id, done)| (id.viewer, id.number, problem(done))).collect()
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
            (("matching.disparities", "1024"), "more than the budget"),
            (("matching.disparities", "400"), "no memory"),
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

    #[test]
    fn the_last_valid_value_of_a_knob_that_is_dragged_takes_effect() {
        for face in FACES {
            let run = Run::new("[matching]\np1 = 10\np2 = 50\n");
            let dragged: Vec<u32> = (12..70).step_by(2).collect();
            dragged.iter().for_each(|x| run.ask(face, *x, &[("matching.p1", &x.to_string())]));
            for (_, p1, problem) in run.serve() {
                let reason = (p1 > 50).then(|| format!("P2 is 50 and P1 is {p1};"));
                assert_eq!(problem.is_some(), reason.is_some(), "{p1}: {problem:?}");
                assert!(problem.is_none_or(|problem| problem.contains(&reason.unwrap())));
            }
            assert_eq!((run.value("p1"), run.engines.get()), ("50".into(), 1));
            run.ask(face, 1, &[("matching.fill", "rays")]);
            run.ask(face, 2, &[("matching.fill", "bogus")]);
            let answers = run.serve();
            assert!(answers[0].2.is_none() && answers[1].2.as_ref().unwrap().contains("bogus"));
            assert_eq!(run.value("fill"), "\"rays\"");
        }
    }

    #[test]
    fn values_that_no_engine_can_be_made_for_are_found_among_many() {
        let run = Run::new("");
        for count in 1..=40 {
            run.ask(FACES[2], count, &[("matching.disparities", &(8 * count).to_string())]);
            run.ask(FACES[3], count, &[("matching.uniqueness", &count.to_string())]);
        }
        for (face, count, problem) in run.serve() {
            let is_refused = face == FACES[2] && count >= 32;
            assert_eq!(problem.as_deref(), is_refused.then_some("no memory"), "{face:?} {count}");
        }
        assert_eq!(
            (run.value("disparities"), run.value("uniqueness")),
            ("248".into(), "40".into())
        );
        assert!(run.engines.get() < 16, "{} engines", run.engines.get());
    }

    /// Settings of the model: P1, P2, uniqueness, the number of disparities, and what fills holes.
    type Model = ([u32; 4], &'static str);

    const KEYS: [&str; 4] = ["p1", "p2", "uniqueness", "disparities"];
    const FILLS: [&str; 3] = ["off", "row", "rays"];
    const FIRST: Model = ([10, 50, 15, 64], "off");

    /// A request: values by the number of their key, 4 of what fills holes; or a reset.
    type Asked = Option<Vec<(usize, u32)>>;

    /// Returns the settings after a request, unless they are impossible.
    fn model(now: Model, asked: &Asked, cost_max: u32) -> Option<Model> {
        let Some(values) = asked else { return Some(FIRST) };
        let (mut numbers, mut fill) = now;
        for &(key, value) in values {
            match key {
                4 => fill = *FILLS.get(value as usize)?,
                key => numbers[key] = value,
            }
        }
        let [p1, p2, uniqueness, disparities] = numbers;
        // The largest cost and P2 have to fit a byte.
        let is_possible =
            p1 <= p2 && p2 + cost_max <= 255 && uniqueness < 100 && (1..512).contains(&disparities);
        is_possible.then_some((numbers, fill))
    }

    fn asked() -> impl Strategy<Value = Asked> {
        let number = prop_oneof![0_u32..8, 40_u32..60, 90_u32..110, 250_u32..260];
        let value = prop_oneof![
            4 => (0_usize..3, number),
            1 => (Just(3), prop::sample::select(vec![16, 64, 512, 1024])),
            1 => (Just(4), 0_u32..4),
        ];
        let both = (1_u32..200, 1_u32..200).prop_map(|(p1, p2)| vec![(0, p1), (1, p2)]);
        let values = prop_oneof![3 => value.prop_map(|one| vec![one]), 1 => both];
        prop_oneof![12 => values.prop_map(Some), 1 => Just(None)]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        /// Whoever asks, and however many requests wait together: the outcome and every answer are those of requests
        /// that are served one by one.
        #[test]
        fn requests_that_wait_together_are_answered_as_one_by_one(
            requests in prop::collection::vec((0_usize..FACES.len(), asked(), any::<bool>()), 1..12),
        ) {
            let run = Run::new(
                "[matching]\np1 = 10\np2 = 50\np2_mode = 'fixed'\nuniqueness = 15\ndisparities = 64\nfill = 'off'\n",
            );
            let cost_max = run.configured.params.cost_max();
            let (mut now, mut expected, mut answers) = (FIRST, Vec::new(), Vec::new());
            let last = requests.len() - 1;
            for (number, (face, asked, is_served)) in requests.iter().enumerate() {
                let (viewer, id) = (FACES[*face], number as u32);
                match asked {
                    None => run.requests.ask(Ask::Reset(RequestId { viewer, number: id })),
                    Some(values) => {
                        let text = |&(key, value): &(usize, u32)| match key {
                            4 => ("matching.fill".to_owned(), (*FILLS.get(value as usize).unwrap_or(&"x")).to_owned()),
                            key => (format!("matching.{}", KEYS[key]), value.to_string()),
                        };
                        let values = values.iter().map(text).collect();
                        run.requests.ask(Ask::Values { id: RequestId { viewer, number: id }, values });
                    }
                }
                let next = model(now, asked, cost_max);
                expected.push((viewer, id, next.is_none()));
                now = next.unwrap_or(now);
                if *is_served || number == last {
                    answers.extend(run.serve());
                }
            }
            let told: Vec<_> = answers.iter().map(|(viewer, id, problem)| (*viewer, *id, problem.is_some())).collect();
            prop_assert_eq!(told, expected);
            let values = KEYS.map(|key| run.value(key).parse().unwrap());
            prop_assert_eq!((values, run.value("fill")), (now.0, format!("{:?}", now.1)));
        }
    }
}
