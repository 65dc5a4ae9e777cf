//! Free memory: the least of the system's, the limits of control groups and `ulimit -v`.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the memory that is free for this process now, in bytes; `None` if the system does not tell.
pub fn free() -> Option<u64> {
    let files = free_by_files(Path::new("/"));
    // A service may see nothing of /proc but processes (ProcSubset=pid).
    let system = files.or_else(half_of_all);
    [system, left_of_address_space()].into_iter().flatten().min()
}

/// Returns the least amount that the system's files below `root` allow.
fn free_by_files(root: &Path) -> Option<u64> {
    let available = number_after(&root.join("proc/meminfo"), "MemAvailable:").map(|kib| kib << 10);
    let groups = groups(root).into_iter().filter_map(|group| group.left());
    available.into_iter().chain(groups).min()
}

/// Returns half of the machine's memory: how much of the rest could be reclaimed is unknown.
#[cfg(target_os = "linux")]
#[allow(clippy::useless_conversion, reason = "32 bits on some machines")]
fn half_of_all() -> Option<u64> {
    // SAFETY: all-zero bytes are a valid sysinfo, which the call only writes to.
    let mut about: libc::sysinfo = unsafe { std::mem::zeroed() };
    // SAFETY: `about` outlives the call.
    let told = unsafe { libc::sysinfo(&mut about) } == 0;
    told.then(|| u64::from(about.totalram).saturating_mul(u64::from(about.mem_unit)) / 2)
}

#[cfg(not(target_os = "linux"))]
fn half_of_all() -> Option<u64> {
    None
}

/// A control group's files.
struct Group {
    folder: PathBuf,
    limit: &'static str,
    used: &'static str,
    /// Key in `memory.stat` of the file pages that the kernel can reclaim.
    droppable: &'static str,
}

impl Group {
    /// Returns the memory that the group may still take; `None` without a limit.
    fn left(&self) -> Option<u64> {
        // "max" is no number: no limit.
        let limit = number(&self.folder.join(self.limit))?;
        let used = number(&self.folder.join(self.used))?;
        let droppable = number_after(&self.folder.join("memory.stat"), self.droppable);
        Some(limit.saturating_sub(used.saturating_sub(droppable.unwrap_or(0))))
    }
}

/// Returns the control groups (version 1 or 2) that may limit this process, and their parents. In a
/// container they may be mounted at the root instead of their full path.
fn groups(root: &Path) -> Vec<Group> {
    let told = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let mut groups = Vec::new();
    for line in told.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let top = root.join("sys/fs/cgroup");
        let (top, [limit, used, droppable]) = match controllers {
            "" => (top, ["memory.max", "memory.current", "inactive_file"]),
            _ if controllers.split(',').any(|name| name == "memory") => (
                top.join("memory"),
                ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"],
            ),
            _ => continue,
        };
        let inside = Path::new(path.trim_start_matches('/'));
        // A name never leads out of the groups' folder.
        if inside.components().any(|part| !matches!(part, std::path::Component::Normal(_))) {
            continue;
        }
        let folders = inside.ancestors().map(|part| top.join(part));
        groups.extend(folders.map(|folder| Group { folder, limit, used, droppable }));
    }
    groups
}

fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// Reads the number after a word at the beginning of a line.
fn number_after(file: &Path, word: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let mut lines = text.lines().map(str::split_ascii_whitespace);
    lines.find_map(|mut line| (line.next()? == word).then(|| line.next()?.parse().ok())?)
}

/// Returns the rest of this process's address limit, if it has one.
#[cfg(target_os = "linux")]
fn left_of_address_space() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is written to memory of its type.
    let told = unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) } == 0;
    if !told || limit.rlim_cur == libc::RLIM_INFINITY {
        return None;
    }
    let used = number_after(Path::new("/proc/self/status"), "VmSize:").unwrap_or(0) << 10;
    Some(limit.rlim_cur.saturating_sub(used))
}

#[cfg(not(target_os = "linux"))]
fn left_of_address_space() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(files: &[(&str, &str)]) -> Option<u64> {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        free_by_files(root.path())
    }

    const MEMINFO: (&str, &str) =
        ("proc/meminfo", "MemTotal: 4000 kB\nMemFree: 100 kB\nMemAvailable:    2000 kB\n");

    #[test]
    fn without_groups_it_is_what_the_system_has() {
        assert_eq!(system(&[MEMINFO]), Some(2000 << 10));
        assert_eq!(system(&[]), None);
        assert!(free().is_some_and(|bytes| bytes > 1 << 20));
        #[cfg(target_os = "linux")]
        assert!(half_of_all() >= free().map(|bytes| bytes / 4));
    }

    #[test]
    fn the_tightest_group_counts() {
        let unified = |inner: &'static str, outer: &'static str| {
            system(&[
                MEMINFO,
                ("proc/self/cgroup", "1:cpu:/x\n0::/a/b\n"),
                ("sys/fs/cgroup/a/b/memory.max", inner),
                ("sys/fs/cgroup/a/b/memory.current", "300000\n"),
                ("sys/fs/cgroup/a/b/memory.stat", "anon 7\ninactive_file 100000\n"),
                ("sys/fs/cgroup/a/memory.max", outer),
                ("sys/fs/cgroup/a/memory.current", "400000\n"),
            ])
        };
        // Reclaimable file pages are free.
        assert_eq!(unified("1000000\n", "max\n"), Some(800_000));
        assert_eq!(unified("1000000\n", "500000\n"), Some(100_000));
        assert_eq!(unified("max\n", "max\n"), Some(2000 << 10));
        assert_eq!(unified("1\n", "max\n"), Some(0));
    }

    #[test]
    fn groups_of_the_first_version_and_of_containers() {
        let first = [
            MEMINFO,
            ("proc/self/cgroup", "4:cpu,memory:/docker/1\n0::/\n"),
            // The group is mounted at the top.
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "900000\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "200000\n"),
        ];
        assert_eq!(system(&first), Some(700_000));
        let outside = [MEMINFO, ("proc/self/cgroup", "0::/../../etc\n")];
        assert_eq!(system(&outside), Some(2000 << 10));
    }
}
