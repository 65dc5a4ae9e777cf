//! Result of a run of the program.

use std::process::{Command, Output};

/// Exit status, standard output and standard error of a command that is run to its end.
pub fn outcome(command: &mut Command) -> (i32, String, String) {
    outcome_of(command.output().expect("the binary starts"))
}

/// Exit status, standard output and standard error of a process that has ended.
pub fn outcome_of(Output { status, stdout, stderr }: Output) -> (i32, String, String) {
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
    let (stdout, stderr) = (text(stdout), text(stderr));
    assert!(!stderr.contains("panicked"), "{stderr}");
    (status.code().expect("no signal"), stdout, stderr)
}
