//! The `stereod` command.

fn main() {}
