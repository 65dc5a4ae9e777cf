//! Video files.
