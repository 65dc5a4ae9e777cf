//! Finds the processes that have a device open.

use std::fmt;
use std::path::Path;

/// A process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub pid: u32,
    pub name: String,
}

/// "ffmpeg (process 4711)".
impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {})", self.name, self.pid)
    }
}

/// Returns the other processes that have the device `node` open, by number. Only root sees other users'
/// processes. `proc` is the mount point of procfs.
pub(super) fn users(proc: &Path, node: &Path) -> Vec<User> {
    let has_open = |pid: u32| {
        let files = std::fs::read_dir(proc.join(format!("{pid}/fd"))).into_iter().flatten();
        files.flatten().any(|file| std::fs::read_link(file.path()).is_ok_and(|to| to == node))
    };
    let entries = std::fs::read_dir(proc).into_iter().flatten().flatten();
    let mut users: Vec<User> = entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|&pid| pid != std::process::id() && has_open(pid))
        .map(|pid| {
            let name = std::fs::read_to_string(proc.join(format!("{pid}/comm")));
            User { pid, name: name.map_or_else(|_| "a process".into(), |n| n.trim().to_owned()) }
        })
        .collect();
    users.sort_by_key(|user| user.pid);
    users
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_it_open() {
        let folder = tempfile::tempdir().unwrap();
        for (pid, name, target) in
            [("12", "cheese", "/dev/video0"), ("7", "ffmpeg", "/dev/video0"), ("9", "x", "/tmp/a")]
        {
            let at = folder.path().join(pid);
            std::fs::create_dir_all(at.join("fd")).unwrap();
            std::fs::write(at.join("comm"), format!("{name}\n")).unwrap();
            std::os::unix::fs::symlink(target, at.join("fd/3")).unwrap();
        }
        std::fs::create_dir_all(folder.path().join("self/fd")).unwrap();
        let seen = users(folder.path(), Path::new("/dev/video0"));
        let text: Vec<String> = seen.iter().map(ToString::to_string).collect();
        assert_eq!(text, ["ffmpeg (process 7)", "cheese (process 12)"]);
        assert_eq!(users(folder.path(), Path::new("/dev/video1")), []);
    }
}
