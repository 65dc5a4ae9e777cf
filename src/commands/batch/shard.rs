//! Shards: the part of a batch for a worker.

use serde::{Deserialize, Serialize};

use crate::cli::batch::Shard;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shards {
    pub count: u64,
    pub base: u64,
}

/// Returns a worker's shard, counted from 0, and the shards. `base` is the user's. `pinned` are the shards of
/// the first call for the folder, which a restarted part of an array does not know.
pub fn resolve(
    shard: Shard,
    base: Option<u64>,
    pinned: Option<Shards>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<(u64, Shards), String> {
    let number = |name: &str| -> Result<Option<u64>, String> {
        let Some(text) = variable(name) else { return Ok(None) };
        let parsed = text.trim().parse().ok();
        parsed.map(Some).ok_or_else(|| format!("--shard auto: {name} is `{text}`, no number"))
    };
    let count = match shard {
        Shard::Given(number, count) => {
            return within(number, Shards { count, base: base.unwrap_or(1) });
        }
        Shard::Auto(count) => count,
    };
    if let Some(task) = number("SLURM_ARRAY_TASK_ID")? {
        let array = Array {
            task,
            min: number("SLURM_ARRAY_TASK_MIN")?,
            max: number("SLURM_ARRAY_TASK_MAX")?,
            tasks: number("SLURM_ARRAY_TASK_COUNT")?,
            step: number("SLURM_ARRAY_TASK_STEP")?.unwrap_or(1),
        };
        let (number, shards) = array.shard(count, base, pinned)?;
        within(number, shards)
    } else if let Some(index) = number("JOB_COMPLETION_INDEX")? {
        let count = count.or(pinned.map(|pinned| pinned.count)).ok_or(
            "--shard auto: Kubernetes does not tell a pod how many completions there are: give --shard \
             auto/N with N of `completions`",
        )?;
        within(index, Shards { count, base: base.unwrap_or(0) })
    } else {
        Err("--shard auto: neither SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX is set; give --shard I/N"
            .to_owned())
    }
}

/// A task of a job array of Slurm, and the array as far as the task knows it.
struct Array {
    task: u64,
    /// Smallest and largest number of a task.
    min: Option<u64>,
    max: Option<u64>,
    tasks: Option<u64>,
    step: u64,
}

impl Array {
    fn shard(
        &self,
        count: Option<u64>,
        base: Option<u64>,
        pinned: Option<Shards>,
    ) -> Result<(u64, Shards), String> {
        if let Some((index, tasks)) = self.stepped(count.or(pinned.map(|pinned| pinned.count))) {
            let base = base.unwrap_or(1);
            return Ok((index.saturating_add(base), Shards { count: tasks, base }));
        }
        let known = match count {
            Some(count) => {
                pinned.into_iter().chain(self.whole()).find(|known| known.count == count)
            }
            None => pinned.or(self.whole()),
        };
        let count = count.or(known.map(|known| known.count)).ok_or(
            "--shard auto: SLURM_ARRAY_TASK_COUNT does not tell the number of shards, because tasks of \
             the array are left out: give --shard auto/N and --shard-base 0 or 1",
        )?;
        let base = base.or(known.map(|known| known.base)).ok_or(
            "--shard auto: the number of the first shard is not known, because tasks of the array are \
             left out: give --shard-base 0 or 1",
        )?;
        Ok((self.task, Shards { count, base }))
    }

    /// Returns the number of tasks before this one, and that of all, in a whole array with a step: the tasks of
    /// --array=0-8:4 are the shards 1 to 3. An array that is started again for a few shards may look alike, but
    /// has fewer tasks than there are shards.
    fn stepped(&self, count: Option<u64>) -> Option<(u64, u64)> {
        let (min, tasks) = (self.min?, self.tasks?);
        let is_whole = self.step > 1
            && self.max?.checked_sub(min)? / self.step + 1 == tasks
            && count.is_none_or(|count| count == tasks);
        let distance = self.task.checked_sub(min).filter(|_| is_whole)?;
        Some((distance / self.step, tasks))
    }

    /// Returns the shards if the array has no gaps: it is the whole one, unless one was started before.
    fn whole(&self) -> Option<Shards> {
        let (min, count) = (self.min?, self.tasks?);
        let has_gaps =
            self.max.is_some_and(|max| max.checked_sub(min).map(|last| last + 1) != Some(count));
        (!has_gaps).then_some(Shards { count, base: min })
    }
}

/// Returns a shard, counted from 0, and the shards, if the number is valid.
fn within(number: u64, shards: Shards) -> Result<(u64, Shards), String> {
    let Shards { count, base } = shards;
    match number.checked_sub(base) {
        Some(index) if index < count => Ok((index, shards)),
        _ => Err(format!(
            "--shard: there is no shard {number} of {count}: they are {base} to {}{}",
            base.saturating_add(count) - 1,
            if number == 0 { "; --shard-base 0 counts from 0" } else { "" }
        )),
    }
}

/// Formats numbers in rising order as an array expression: 3,7-9.
pub fn array(numbers: &[u64]) -> String {
    let mut parts: Vec<(u64, u64)> = Vec::new();
    for &number in numbers {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => parts.push((number, number)),
        }
    }
    let text = parts.into_iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        _ => format!("{first}-{last}"),
    });
    text.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(
        shard: &str,
        base: Option<u64>,
        pinned: Option<(u64, u64)>,
        variables: &[(&str, &str)],
    ) -> Result<(u64, u64, u64), String> {
        let variable = |wanted: &str| {
            let found = variables.iter().find(|(name, _)| *name == wanted);
            found.map(|(_, value)| (*value).to_owned())
        };
        let pinned = pinned.map(|(count, base)| Shards { count, base });
        let (index, shards) = resolve(shard.parse().unwrap(), base, pinned, variable)?;
        Ok((index, shards.count, shards.base))
    }

    #[test]
    fn given_shards_count_from_one_unless_told() {
        assert_eq!(found("3/8", None, None, &[]), Ok((2, 8, 1)));
        assert_eq!(found("8/8", None, Some((4, 0)), &[]), Ok((7, 8, 1)));
        assert_eq!(found("0/8", Some(0), None, &[]), Ok((0, 8, 0)));
        assert!(found("0/8", None, None, &[]).unwrap_err().contains("--shard-base 0"));
        assert!(found("9/8", None, None, &[]).unwrap_err().contains("1 to 8"));
        assert!(found("8/8", Some(0), None, &[]).unwrap_err().contains("0 to 7"));
    }

    #[test]
    fn the_environment_tells_the_shard() {
        let slurm = |id, min, max, count| {
            [
                ("SLURM_ARRAY_TASK_ID", id),
                ("SLURM_ARRAY_TASK_MIN", min),
                ("SLURM_ARRAY_TASK_MAX", max),
                ("SLURM_ARRAY_TASK_COUNT", count),
            ]
        };
        assert_eq!(found("auto", None, None, &slurm("5", "1", "8", "8")), Ok((4, 8, 1)));
        assert_eq!(found("auto", None, None, &slurm("5", "0", "7", "8")), Ok((5, 8, 0)));
        // Some tasks of an array are restarted.
        let some = slurm("7", "3", "9", "4");
        assert_eq!(found("auto", None, Some((12, 1)), &some), Ok((6, 12, 1)));
        assert_eq!(found("auto/12", None, Some((12, 0)), &some), Ok((7, 12, 0)));
        assert_eq!(found("auto/12", Some(1), None, &some), Ok((6, 12, 1)));
        assert!(found("auto", None, None, &some).unwrap_err().contains("auto/N"));
        assert!(found("auto/12", None, None, &some).unwrap_err().contains("--shard-base"));
        // --array=0-4:4, also after the first of its tasks has pinned the number of shards.
        for pinned in [None, Some((2, 1))] {
            for (task, index) in [("0", 0), ("4", 1)] {
                let strided = [&slurm(task, "0", "4", "2")[..], &[("SLURM_ARRAY_TASK_STEP", "4")]];
                assert_eq!(found("auto", None, pinned, &strided.concat()), Ok((index, 2, 1)));
            }
        }
        // The third and the seventh of 12 shards are restarted.
        let some = [&slurm("7", "3", "7", "2")[..], &[("SLURM_ARRAY_TASK_STEP", "4")]].concat();
        assert_eq!(found("auto", None, Some((12, 1)), &some), Ok((6, 12, 1)));
        let one = slurm("7", "7", "7", "1");
        assert_eq!(found("auto", None, Some((12, 1)), &one), Ok((6, 12, 1)));
        let pod = [("JOB_COMPLETION_INDEX", "63")];
        assert_eq!(found("auto/64", None, None, &pod), Ok((63, 64, 0)));
        assert_eq!(found("auto", None, Some((64, 0)), &pod), Ok((63, 64, 0)));
        assert!(found("auto", None, None, &pod).unwrap_err().contains("completions"));
        assert!(found("auto/63", None, None, &pod).unwrap_err().contains("0 to 62"));
        assert!(found("auto", None, None, &[]).unwrap_err().contains("JOB_COMPLETION_INDEX"));
        assert!(found("auto", None, None, &slurm("a", "1", "8", "8")).unwrap_err().contains("`a`"));
        assert!(found("auto", None, None, &slurm("1", "1", "8", "0")).is_err());
    }

    #[test]
    fn arrays_as_slurm_writes_them() {
        assert_eq!(array(&[]), "");
        assert_eq!(array(&[3, 7, 8, 9]), "3,7-9");
        assert_eq!(array(&[0, 1, 4]), "0-1,4");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn arrays_hold_every_number_once(numbers in prop::collection::btree_set(0u64..200, 0..60)) {
            let numbers: Vec<u64> = numbers.into_iter().collect();
            let text = array(&numbers);
            let parts = text.split(',').filter(|part| !part.is_empty());
            let back: Vec<u64> = parts
                .flat_map(|part| {
                    let (first, last) = part.split_once('-').unwrap_or((part, part));
                    first.parse().unwrap()..=last.parse::<u64>().unwrap()
                })
                .collect();
            prop_assert_eq!(back, numbers);
        }
    }
}
