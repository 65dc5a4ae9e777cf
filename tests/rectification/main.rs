//! Rectification: against OpenCV's pictures and numbers of recorded rigs, and the command.

mod command;
mod datasets;
mod recorded;
mod register;
#[path = "../test_data/mod.rs"]
mod test_data;
