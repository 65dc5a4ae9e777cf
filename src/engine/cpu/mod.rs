//! The CPU engine: the stages of `matching/`, vectorised and threaded.
