//! Result of a run of the program.

use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Time after which whatever should take seconds is taken to hang.
pub const LIMIT: Duration = Duration::from_secs(120);

/// Rounds of a loop.
const UNIT: u64 = 100_000_000;

/// A limit for hangs, which is no measure of speed: [`LIMIT`], and more on a machine that is slow or busy.
pub struct Patience {
    begun: Instant,
    longest: Duration,
}

impl Patience {
    pub fn begin() -> Self {
        Self { begun: Instant::now(), longest: LIMIT }
    }

    /// Reports whether it has come to its end.
    pub fn is_over(&mut self) -> bool {
        if self.begun.elapsed() < self.longest {
            return false;
        }
        // About 50 ms on an idle machine: long enough to be interrupted by others.
        let start = Instant::now();
        std::hint::black_box((0..UNIT).fold(0, |sum, i| std::hint::black_box(sum ^ i)));
        self.longest = self.longest.max(1000 * start.elapsed());
        self.begun.elapsed() >= self.longest
    }
}

/// Exit status, standard output and standard error of a command that is run to its end.
pub fn outcome(command: &mut Command) -> (i32, String, String) {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    outcome_of(ended(child.expect("the binary starts")))
}

/// What a process has written when it has ended. One that does not end is killed.
pub fn ended(child: Child) -> Output {
    let id = child.id();
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    let mut patience = Patience::begin();
    loop {
        match receiver.recv_timeout(LIMIT) {
            Ok(output) => return output.expect("the process is ours"),
            Err(_) if patience.is_over() => {
                kill(id);
                let Output { stderr, .. } = receiver.recv().unwrap().expect("the process is ours");
                panic!("process {id} does not end; it said {}", String::from_utf8_lossy(&stderr));
            }
            Err(_) => {}
        }
    }
}

/// Kills a child that did not end.
pub fn kill(id: u32) {
    // SAFETY: the process is our child and was not yet waited for.
    unsafe { libc::kill(id as i32, libc::SIGKILL) };
}

/// Exit status, standard output and standard error of a process that has ended.
pub fn outcome_of(Output { status, stdout, stderr }: Output) -> (i32, String, String) {
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
    let (stdout, stderr) = (text(stdout), text(stderr));
    assert!(!stderr.contains("panicked"), "{stderr}");
    (status.code().expect("no signal"), stdout, stderr)
}

/// Waits until `is_so`.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let mut patience = Patience::begin();
    while !is_so() {
        assert!(!patience.is_over(), "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
