//! Result of a run of the program.

use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Longest time that a process may take to end: some machines are slow and busy.
pub const LIMIT: Duration = Duration::from_secs(600);

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
    receiver.recv_timeout(LIMIT).unwrap_or_else(|_| in_vain(id)).expect("the process is ours")
}

/// Kills a process that did not end.
pub fn in_vain(id: u32) -> ! {
    // SAFETY: the process is our child and was not yet waited for.
    unsafe { libc::kill(id as i32, libc::SIGKILL) };
    panic!("process {id} did not end within {} s", LIMIT.as_secs());
}

/// Exit status, standard output and standard error of a process that has ended.
pub fn outcome_of(Output { status, stdout, stderr }: Output) -> (i32, String, String) {
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
    let (stdout, stderr) = (text(stdout), text(stderr));
    assert!(!stderr.contains("panicked"), "{stderr}");
    (status.code().expect("no signal"), stdout, stderr)
}

/// Waits until `is_so`, for at most five minutes: some machines are slow and busy.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(300), "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
