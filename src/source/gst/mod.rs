//! x
#![allow(dead_code)]
mod plane;
