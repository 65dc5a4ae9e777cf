//! Reads and sets the controls of cameras while they stream, on threads of their own, because a driver may block on any
//! request.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, Sender, bounded};

use super::controls::{copy_exposure, set_all};
use super::device::{Device, reason};
use crate::camera::CameraReport;
use stereod_core::thread::{self, locked};

/// Polling interval of a watched camera with automatic modes.
const PERIOD: Duration = Duration::from_secs(1);

const CLOSING: Duration = Duration::from_millis(500);

#[derive(Default)]
struct Requests {
    /// Values by control, in the order of their requests; a newer value takes the place of an older one.
    values: Vec<(u32, i32)>,
    number: u64,
    is_watched: bool,
    is_ended: bool,
}

/// Thread that reads and sets the controls of a camera; dropping this ends it. A thread that a driver blocks
/// is left behind.
pub struct Adjuster {
    requests: Arc<(Mutex<Requests>, Condvar)>,
    thread: JoinHandle<()>,
}

impl Adjuster {
    /// Starts the thread for the camera `name`. It calls `report` after each request, and every second while
    /// the camera is watched.
    pub fn start(
        name: &str,
        mut report: impl FnMut(CameraReport) + Send + 'static,
    ) -> std::io::Result<Self> {
        let requests = Arc::new((Mutex::new(Requests::default()), Condvar::new()));
        let (name, taken) = (name.to_owned(), requests.clone());
        let work = move || {
            while let Some((number, values)) = next(&taken) {
                let mut done = look(&name, &values);
                done.number = number;
                report(done);
            }
        };
        let failed = |broken| tracing::error!("the camera's controls: {broken}");
        let thread = thread::spawn("controls", work, failed)?;
        Ok(Self { requests, thread })
    }

    /// Starts or ends the reports of every second.
    pub fn watch(&self, is_watched: bool) {
        self.change(|requests| requests.is_watched = is_watched);
    }

    /// Requests values of controls. Never waits.
    pub fn set(&self, number: u64, values: &[(u32, i32)]) {
        self.change(|requests| {
            requests.values.retain(|(id, _)| values.iter().all(|(other, _)| other != id));
            requests.values.extend(values);
            requests.number = number;
        });
    }

    fn change(&self, change: impl FnOnce(&mut Requests)) {
        change(&mut locked(&self.requests.0));
        self.requests.1.notify_one();
    }
}

impl Drop for Adjuster {
    fn drop(&mut self) {
        self.change(|requests| requests.is_ended = true);
        thread::wait_for(&self.thread, |waited| waited > CLOSING);
    }
}

/// Waits for the next request or poll. Returns its number and values; `None` at the end.
fn next((requests, news): &(Mutex<Requests>, Condvar)) -> Option<(u64, Vec<(u32, i32)>)> {
    let mut requests = locked(requests);
    let was_watched = requests.is_watched;
    loop {
        if requests.is_ended {
            return None;
        }
        let begins = requests.is_watched && !was_watched;
        if begins || !requests.values.is_empty() {
            break;
        }
        let (woken, waited) =
            news.wait_timeout(requests, PERIOD).unwrap_or_else(PoisonError::into_inner);
        requests = woken;
        if waited.timed_out() && requests.is_watched {
            break;
        }
    }
    Some((requests.number, std::mem::take(&mut requests.values)))
}

/// Sets values of the camera's controls and reads all of them. The node is opened each time, because a camera
/// that is held open does not get its name back when it is plugged in again.
fn look(name: &str, values: &[(u32, i32)]) -> CameraReport {
    let looked = Device::open(Path::new(name)).and_then(|mut device| {
        let card = device.identity()?.card;
        let refused = set_all(&mut device, values);
        Ok((card, device.controls(), refused))
    });
    let (seen, problem) = match looked {
        Ok((card, controls, refused)) => {
            let problem = refused.map(|(id, value, error)| {
                let control = controls.iter().find(|control| control.id == id);
                let name = control.map_or("a control", |control| control.name.as_str());
                format!("{name} cannot be {value}: {error}")
            });
            (Ok((card, controls)), problem)
        }
        Err(error) => (Err(reason(&error)), None),
    };
    CameraReport { number: 0, seen, problem }
}

/// Polling interval of a camera whose exposure is copied; it changes little within a few frames.
const COPY_PERIOD: Duration = Duration::from_millis(200);

const COPY_CLOSING: Duration = Duration::from_secs(2);

/// Thread that copies one camera's automatic exposure to the other; dropping this ends it. A thread that a driver
/// blocks is left behind. With independent automatic exposure, the same wall has a different brightness in each view,
/// and both change at different times.
pub struct Following {
    /// The thread lives as long as this.
    end: Option<Sender<()>>,
    thread: JoinHandle<()>,
}

impl Following {
    /// Copies exposure, gain and white balance of `leader` to `follower` from now on. A lost camera
    /// is skipped until it is back.
    pub fn start(leader: &str, follower: &str) -> std::io::Result<Self> {
        let (leader, follower) = (leader.to_owned(), follower.to_owned());
        let (end, ended) = bounded(0);
        let follow = move || {
            loop {
                // Reopened each time, as in `look`.
                if let (Ok(leader), Ok(mut follower)) =
                    (Device::open(Path::new(&leader)), Device::open(Path::new(&follower)))
                    && copy_exposure(&leader, &mut follower)
                {
                    tracing::debug!("the cameras have one exposure again");
                }
                if ended.recv_timeout(COPY_PERIOD) == Err(RecvTimeoutError::Disconnected) {
                    break;
                }
            }
        };
        let failed = |broken| tracing::error!("the cameras' exposure goes apart: {broken}");
        let thread = thread::spawn("exposure", follow, failed)?;
        Ok(Self { end: Some(end), thread })
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.end = None;
        thread::wait_for(&self.thread, |waited| waited > COPY_CLOSING);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::camera::ControlKind;

    #[test]
    fn every_request_is_answered_by_its_number() {
        let (send, reports) = channel();
        let adjuster = Adjuster::start("/dev/null", move |report| send.send(report).unwrap());
        let adjuster = adjuster.unwrap();
        adjuster.set(3, &[(1, 2)]);
        let report = reports.recv().unwrap();
        assert_eq!(report.number, 3);
        assert!(report.seen.unwrap_err().contains("no camera"));
        // Watching begins with a report.
        adjuster.watch(true);
        assert_eq!(reports.recv().unwrap().number, 3);
        drop(adjuster);
        assert!(reports.try_iter().count() < 3);
        assert!(reports.recv().is_err(), "the thread has ended");
    }

    #[test]
    fn newer_values_of_a_control_void_older_ones() {
        let requests = (Mutex::new(Requests::default()), Condvar::new());
        let adjuster = Adjuster {
            requests: Arc::new(requests),
            thread: thread::spawn("test", || (), |_| ()).unwrap(),
        };
        adjuster.set(1, &[(10, 1), (11, 1)]);
        adjuster.set(2, &[(10, 5)]);
        assert_eq!(next(&adjuster.requests), Some((2, vec![(11, 1), (10, 5)])));
    }

    /// Needs cameras, for example of the kernel's vivid driver: their names separated by spaces.
    #[test]
    fn controls_of_real_cameras_are_read_and_set() {
        let Ok(names) = std::env::var("STEREOD_TEST_CAMERAS") else {
            return println!("skipped: STEREOD_TEST_CAMERAS names no cameras");
        };
        for name in names.split_whitespace() {
            let (send, reports) = channel();
            let adjuster = Adjuster::start(name, move |report| send.send(report).unwrap()).unwrap();
            adjuster.watch(true);
            let (card, controls) = reports.recv().unwrap().seen.unwrap();
            println!("{name}: {card}");
            let mut set = 0;
            for control in &controls {
                println!("  {control:?}");
                let mut values = match &control.kind {
                    ControlKind::Menu(names) => names.iter().map(|&(value, _)| value).collect(),
                    _ => vec![control.least, control.largest],
                };
                values.retain(|value| *value != control.value);
                let Some(&other) = values.first().filter(|_| control.is_settable()) else {
                    continue;
                };
                adjuster.set(1, &[(control.id, other)]);
                let report = reports.iter().find(|report| report.number == 1).unwrap();
                let seen = report.seen.unwrap().1;
                let now = seen.iter().find(|now| now.id == control.id).unwrap();
                if report.problem.is_none() && now.value == other {
                    set += 1;
                } else {
                    println!(
                        "  {}: {} instead of {other}: {:?}",
                        control.name, now.value, report.problem
                    );
                }
                adjuster.set(2, &[(control.id, control.value)]);
                reports.iter().find(|report| report.number == 2).unwrap();
                adjuster.set(0, &[]);
            }
            println!("{name}: {set} of {} controls set", controls.len());
            assert!(set >= 2, "{set}");
        }
    }
}
