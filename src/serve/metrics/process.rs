//! Resources of this process.

/// Resources of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Process {
    /// Resident memory in bytes.
    pub resident_bytes: u64,
    /// CPU time so far, user and system, in seconds.
    pub cpu_seconds: f64,
    /// Threads.
    pub threads: u64,
    /// Open files.
    pub open_files: u64,
}

impl Process {
    /// Returns the present state; `None` if the system does not provide it.
    #[cfg(target_os = "linux")]
    pub fn now() -> Option<Self> {
        let process = procfs::process::Process::myself().ok()?;
        let stat = process.stat().ok()?;
        Some(Self {
            resident_bytes: stat.rss * procfs::page_size(),
            cpu_seconds: (stat.utime + stat.stime) as f64 / procfs::ticks_per_second() as f64,
            threads: stat.num_threads.try_into().unwrap_or(0),
            open_files: process.fd_count().ok()? as u64,
        })
    }

    /// Returns the present state; `None` if the system does not provide it.
    #[cfg(not(target_os = "linux"))]
    pub fn now() -> Option<Self> {
        None
    }
}
