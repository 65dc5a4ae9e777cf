//! Errors that the documents state are those of the program: a few of them; `scripts/figures.py` compares all.

use std::process::Command;

use super::root;
use crate::common::data::data;
use crate::common::outcome::outcome;

#[test]
fn errors_of_the_documents_are_measured() {
    let script = root().join("scripts/figures.py");
    let mut command = Command::new("python3");
    command.arg(script).arg(env!("CARGO_BIN_EXE_stereod"));
    let data = data("middlebury_v2");
    command.args(data.iter().flat_map(|folder| folder.parent()));
    command.args(["--check", "--only", "**Rigs that drift | 5 |"]);
    if data.is_some() {
        for only in ["## Defaults | middlebury_v2", "stereod # %"] {
            command.args(["--only", only]);
        }
    }
    let (status, differing, stderr) = outcome(&mut command);
    assert_eq!(status, 0, "measured, unlike in the documents:\n{differing}{stderr}");
}
