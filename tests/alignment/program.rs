//! What the program says.
