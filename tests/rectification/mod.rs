//! Rectification: against OpenCV's pictures and numbers of recorded rigs, and the command.

mod command;
mod datasets;
mod recorded;
mod register;
