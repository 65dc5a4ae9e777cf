//! Copies one camera's automatic exposure to the other. With independent automatic exposure, the
//! same wall has a different brightness in each view, and both change at different times.

use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

use super::controls::copy_exposure;
use super::device::Device;
use stereod_core::control::Switch;
use stereod_core::thread;

/// Polling interval of the leader; its exposure changes little within a few frames.
const PERIOD: Duration = Duration::from_millis(200);

/// Timeout for the end of the thread.
const CLOSING: Duration = Duration::from_secs(2);

/// Polling interval of the end switch.
const TICK: Duration = Duration::from_millis(20);

/// Thread that copies the exposure; dropping this ends it. A thread that a driver blocks is left
/// behind.
pub struct Following {
    end: Switch,
    thread: JoinHandle<()>,
}

impl Following {
    /// Copies exposure, gain and white balance of `leader` to `follower` from now on. A lost camera
    /// is skipped until it is back.
    pub fn start(leader: &str, follower: &str) -> std::io::Result<Self> {
        let (leader, follower) = (leader.to_owned(), follower.to_owned());
        let end = Switch::default();
        let ended = end.clone();
        let follow = move || {
            while !ended.is_set() {
                // Reopened each time, because a camera that is held open does not get its name
                // back when it is plugged in again.
                if let (Ok(leader), Ok(mut follower)) =
                    (Device::open(Path::new(&leader)), Device::open(Path::new(&follower)))
                    && copy_exposure(&leader, &mut follower)
                {
                    tracing::debug!("the cameras have one exposure again");
                }
                let mut left = PERIOD;
                while !left.is_zero() && !ended.is_set() {
                    std::thread::sleep(TICK);
                    left = left.saturating_sub(TICK);
                }
            }
        };
        let failed = |broken| tracing::error!("the cameras' exposure goes apart: {broken}");
        let thread = thread::spawn("exposure", follow, failed)?;
        Ok(Self { end, thread })
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.end.set(true);
        thread::wait_for(&self.thread, |waited| waited > CLOSING);
    }
}
