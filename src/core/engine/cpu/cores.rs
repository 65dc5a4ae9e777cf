//! Sets of processor cores and thread affinity.

use std::fmt;
use std::str::FromStr;

use anyhow::Context;

use crate::engine::interface::Refusal;

/// Largest number of cores in a set, as in the system's own sets.
const MOST: usize = 1024;

/// A set of processor cores by their numbers, such as `0-3,6`; never empty if parsed from a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cores([u64; MOST / 64]);

/// Error for a text that is no set of cores; it states the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`auto`, or numbers of cores below {MOST} and ranges of them such as `0-3,6`")]
pub struct NoCores;

impl FromStr for Cores {
    type Err = NoCores;

    /// Parses comma-separated numbers and ranges; duplicates count once.
    fn from_str(text: &str) -> Result<Self, NoCores> {
        let number = |text: &str| {
            // Rust's `parse` would accept a sign.
            let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
            let core = text.parse().ok().filter(|core: &usize| is_number && *core < MOST);
            core.ok_or(NoCores)
        };
        let mut cores = Self([0; MOST / 64]);
        for part in text.split(',').map(str::trim) {
            let (first, last) = match part.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(part)?, number(part)?),
            };
            if first > last {
                return Err(NoCores);
            }
            (first..=last).for_each(|core| cores.add(core));
        }
        Ok(cores)
    }
}

impl Cores {
    /// The cores that the calling thread may run on.
    pub fn allowed() -> anyhow::Result<Self> {
        system::allowed().context("asking which cores there are")
    }

    pub fn hold_this_thread(self) -> anyhow::Result<()> {
        system::hold_this_thread(self).with_context(|| format!("running on cores {self} only"))?;
        // The system silently omits cores that a control group forbids.
        self.check_within(Self::allowed()?)
    }

    /// Checks that the calling thread may run on all of them.
    pub fn check(self) -> anyhow::Result<()> {
        self.check_within(Self::allowed()?)
    }

    fn check_within(self, allowed: Self) -> anyhow::Result<()> {
        let mut missing = self;
        missing.0.iter_mut().zip(allowed.0).for_each(|(cores, allowed)| *cores &= !allowed);
        anyhow::ensure!(
            missing.len() == 0,
            Refusal::Parameter(format!(
                "of the cores {self} this process may not run on {missing}: there are {allowed} for it (`cores` or \
                 [engine] cores; `taskset` and the control group of a service or container narrow them down)"
            ))
        );
        Ok(())
    }

    pub fn len(self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Their numbers, in order.
    pub fn numbers(self) -> impl Iterator<Item = usize> {
        (0..MOST).filter(move |core| self.holds(*core))
    }

    pub fn overlaps(self, other: Self) -> bool {
        self.0.iter().zip(other.0).any(|(own, other)| own & other != 0)
    }

    fn holds(self, core: usize) -> bool {
        self.0[core / 64] >> (core % 64) & 1 == 1
    }

    fn add(&mut self, core: usize) {
        self.0[core / 64] |= 1 << (core % 64);
    }
}

impl fmt::Display for Cores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut numbers, mut comma) = (self.numbers().peekable(), "");
        while let Some(first) = numbers.next() {
            let mut last = first;
            while let Some(next) = numbers.next_if_eq(&(last + 1)) {
                last = next;
            }
            match first == last {
                true => write!(f, "{comma}{first}")?,
                false => write!(f, "{comma}{first}-{last}")?,
            }
            comma = ",";
        }
        Ok(())
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::io::{Error, Result};

    use super::{Cores, MOST};

    const SIZE: usize = size_of::<libc::cpu_set_t>();

    pub fn allowed() -> Result<Cores> {
        // SAFETY: the set is plain integers, and 0 is a valid value.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: the set has this size; 0 is the calling thread.
        if unsafe { libc::sched_getaffinity(0, SIZE, &mut set) } != 0 {
            return Err(Error::last_os_error());
        }
        let mut cores = Cores([0; MOST / 64]);
        // SAFETY: every number lies in the set.
        let is_set = |core: &usize| unsafe { libc::CPU_ISSET(*core, &set) };
        (0..MOST.min(8 * SIZE)).filter(is_set).for_each(|core| cores.add(core));
        Ok(cores)
    }

    pub fn hold_this_thread(cores: Cores) -> Result<()> {
        // SAFETY: as above.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: every number lies in the set.
        cores.numbers().for_each(|core| unsafe { libc::CPU_SET(core, &mut set) });
        // SAFETY: the set has this size; 0 is the calling thread.
        match unsafe { libc::sched_setaffinity(0, SIZE, &set) } {
            0 => Ok(()),
            _ => Err(Error::last_os_error()),
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::io::{Error, ErrorKind, Result};

    use super::Cores;

    pub fn allowed() -> Result<Cores> {
        Err(Error::new(ErrorKind::Unsupported, "cores can be chosen on Linux only"))
    }

    pub fn hold_this_thread(_: Cores) -> Result<()> {
        allowed().map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cores(text: &str) -> Cores {
        text.parse().unwrap()
    }

    #[test]
    fn lists_are_read_and_shown() {
        for (text, numbers, shown) in [
            ("0", vec![0], "0"),
            ("6,0-3", vec![0, 1, 2, 3, 6], "0-3,6"),
            (" 2 , 3", vec![2, 3], "2-3"),
            ("1,1,0-1", vec![0, 1], "0-1"),
            ("5-5", vec![5], "5"),
            ("63-65,1023", vec![63, 64, 65, 1023], "63-65,1023"),
        ] {
            let read = cores(text);
            assert_eq!(read.numbers().collect::<Vec<_>>(), numbers, "{text}");
            assert_eq!((read.len(), read.to_string()), (numbers.len(), shown.to_owned()));
        }
        for nonsense in
            ["", ",", "1,", "-1", "1-", "3-1", "0-1024", "1024", "+1", "0x1", "all", "1 2", "1-2-3"]
        {
            assert_eq!(nonsense.parse::<Cores>(), Err(NoCores), "{nonsense}");
        }
    }

    #[test]
    fn sets_overlap_if_they_have_a_core_in_common() {
        assert!(cores("0-3,70").overlaps(cores("70-71")));
        assert!(!cores("0-3").overlaps(cores("4-7,64")));
    }

    #[test]
    fn what_is_missing_is_named_beside_what_there_is() {
        let check = |wanted: &str| cores(wanted).check_within(cores("0-3"));
        check("1,3").unwrap();
        let error = check("2-5").unwrap_err().to_string();
        for part in ["of the cores 2-5", "not run on 4-5:", "there are 0-3 for it", "`cores`"] {
            assert!(error.contains(part), "{error}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_is_held_to_its_cores() {
        let before = Cores::allowed().unwrap();
        let last = before.numbers().last().unwrap();
        let one = cores(&last.to_string());
        let inherited = std::thread::spawn(move || {
            one.hold_this_thread().unwrap();
            assert_eq!(Cores::allowed().unwrap(), one);
            std::thread::spawn(|| Cores::allowed().unwrap()).join().unwrap()
        });
        assert_eq!(inherited.join().unwrap(), one);
        assert_eq!(Cores::allowed().unwrap(), before, "no other thread is touched");
        // No machine has this many.
        assert!(cores("1023").check().is_err());
    }
}
