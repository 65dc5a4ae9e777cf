//! Placement of the engine's threads: their cores and their niceness. On Linux both are per thread and
//! inherited, so a placed thread starts the team and computes in place of the caller, whose own cores and
//! niceness stay unchanged for the threads that it starts later (encoders, a window).

use std::fmt;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, bail};

use super::cores::Cores;
use super::team::Team;
use crate::thread::locked;

/// Range of niceness: highest to lowest priority.
pub const NICE: [i64; 2] = [-20, 19];

/// Cores and niceness of the engine's threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// Cores of the threads; `None`: all cores of the process.
    pub cores: Option<Cores>,
    /// Niceness, [`NICE`]; `None`: that of the process.
    pub nice: Option<i32>,
}

impl Placement {
    pub fn team(self, threads: usize) -> anyhow::Result<(Team, Host)> {
        let start = |threads| {
            Team::new(threads).with_context(|| format!("starting {threads} matcher threads"))
        };
        if self == Self::default() {
            return Ok((start(threads)?, Host(None)));
        }
        let placed = || {
            self.take_effect()?;
            Ok((start(threads)?, Host(Some(start(2)?))))
        };
        std::thread::scope(|scope| {
            let starter = std::thread::Builder::new().name("match-placing".to_owned());
            let starter = starter.spawn_scoped(scope, placed).context("starting a thread")?;
            starter.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Places the calling thread and the threads that it starts later.
    fn take_effect(self) -> anyhow::Result<()> {
        if let Some(cores) = self.cores {
            cores.hold_this_thread()?;
        }
        if let Some(nice) = self.nice {
            system::set_nice(nice)?;
        }
        Ok(())
    }
}

impl fmt::Display for Placement {
    /// Describes the placement, to follow a number of threads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(cores) = self.cores {
            let plural = if cores.len() == 1 { "" } else { "s" };
            write!(f, " on core{plural} {cores}")?;
        }
        self.nice.map_or(Ok(()), |nice| write!(f, ", nice {nice}"))
    }
}

/// A placed thread that works in place of the caller; without a placement, the caller itself.
#[derive(Default)]
pub struct Host(Option<Team>);

impl Host {
    /// Runs the work, waits for it and returns its result.
    ///
    /// # Panics
    /// If the work does.
    pub fn run<T: Send>(&mut self, work: impl FnOnce() -> T + Send) -> T {
        let Some(team) = &mut self.0 else { return work() };
        let slots = (Mutex::new(Some(work)), Mutex::new(None));
        team.run(&|thread| {
            // Thread 0 is the caller, which waits.
            if thread == 1
                && let Some(work) = locked(&slots.0).take()
            {
                *locked(&slots.1) = Some(work());
            }
        });
        let done = slots.1.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.expect("a team runs its task on every thread")
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::io::{Error, ErrorKind};

    use super::{Context, bail};

    pub fn set_nice(nice: i32) -> anyhow::Result<()> {
        // SAFETY: numbers only; 0 is the calling thread, and on Linux the call affects that thread alone.
        if unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) } == 0 {
            return Ok(());
        }
        let error = Error::last_os_error();
        if error.kind() == ErrorKind::PermissionDenied {
            bail!(
                "nice {nice} is refused: to be less nice than the program was started (nice {}) needs CAP_SYS_NICE, or \
                 an RLIMIT_NICE that allows it (`LimitNICE=` of a service); a larger `nice` of [engine] needs \
                 neither",
                nice_of_this_thread()
            );
        }
        Err(error).with_context(|| format!("setting nice {nice}"))
    }

    pub fn nice_of_this_thread() -> i32 {
        // SAFETY: numbers only. It cannot fail for the calling thread.
        unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::bail;

    pub fn set_nice(_: i32) -> anyhow::Result<()> {
        bail!("niceness can be set on Linux only: leave `nice` at `auto`")
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Cores and niceness of the calling thread.
    fn here() -> (String, i32) {
        (Cores::allowed().unwrap().to_string(), system::nice_of_this_thread())
    }

    #[test]
    fn the_team_is_placed_and_its_caller_is_not() {
        let before = here();
        let core = Cores::allowed().unwrap().numbers().last().unwrap();
        let nice = (before.1 + 3).min(19);
        let cores = Some(core.to_string().parse().unwrap());
        let placement = Placement { cores, nice: Some(nice) };
        let (mut team, mut host) = placement.team(3).unwrap();
        let found = Mutex::new(Vec::new());
        let number = host.run(|| {
            team.run(&|_| found.lock().unwrap().push(here()));
            7
        });
        assert_eq!(number, 7);
        let found = found.into_inner().unwrap();
        assert_eq!(found.len(), 3);
        assert_eq!(BTreeSet::from_iter(found), BTreeSet::from([(core.to_string(), nice)]));
        assert_eq!(here(), before);
    }

    #[test]
    fn wishes_are_shown() {
        let shown = |cores: Option<&str>, nice| {
            let cores = cores.map(|cores| cores.parse().unwrap());
            Placement { cores, nice }.to_string()
        };
        assert_eq!(shown(None, None), "");
        assert_eq!(shown(Some("0-2,5"), Some(-1)), " on cores 0-2,5, nice -1");
        assert_eq!(shown(Some("4"), None), " on core 4");
    }

    #[test]
    fn without_a_wish_the_caller_computes() {
        let (_, mut host) = Placement::default().team(1).unwrap();
        let caller = std::thread::current().id();
        assert_eq!(host.run(|| std::thread::current().id()), caller);
    }

    #[test]
    fn cores_that_there_are_not_are_refused() {
        let cores = Some("1023".parse().unwrap());
        let error = Placement { cores, nice: None }.team(1).err().unwrap();
        assert!(format!("{error:#}").contains("1023"), "{error:#}");
    }

    #[test]
    fn being_less_nice_is_granted_or_explained() {
        let wanted = -20;
        let placement = Placement { cores: None, nice: Some(wanted) };
        match placement.team(1) {
            Ok((_, mut host)) => assert_eq!(host.run(system::nice_of_this_thread), wanted),
            Err(error) => {
                let error = error.to_string();
                for part in ["nice -20", "CAP_SYS_NICE", "RLIMIT_NICE"] {
                    assert!(error.contains(part), "{error}");
                }
            }
        }
    }
}
