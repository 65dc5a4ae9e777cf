//! One camera's automatic exposure for both: two cameras that each choose for themselves see the
//! same wall in different greys, and brighten and darken at different times.

use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

use super::controls::copy_exposure;
use super::device::Device;
use crate::control::Switch;
use crate::thread;

/// Time between two looks at the leader: its own control changes little within a few frames.
const PERIOD: Duration = Duration::from_millis(200);

/// Longest wait for the thread when it is to end.
const CLOSING: Duration = Duration::from_secs(2);

/// Time between two looks at the end switch.
const TICK: Duration = Duration::from_millis(20);

/// A thread that has one camera exposed as another; dropping it ends it. One that a driver holds up
/// is left behind.
pub struct Following {
    end: Switch,
    thread: JoinHandle<()>,
}

impl Following {
    /// From now on the camera of the name `follower` has exposure, gain and white balance of
    /// `leader`. One that is lost is passed over until it is back.
    pub fn start(leader: &str, follower: &str) -> std::io::Result<Self> {
        let (leader, follower) = (leader.to_owned(), follower.to_owned());
        let end = Switch::default();
        let ended = end.clone();
        let follow = move || {
            while !ended.is_set() {
                // Opened anew each time: a camera that is held open does not get its name back when
                // it is plugged in again.
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
