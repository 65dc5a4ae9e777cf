//! The size of the last caches before the memory, as the system tells it.

use std::collections::BTreeSet;
use std::path::Path;

use super::cores::Cores;

/// Bytes that the last caches of these cores hold together; `None`: of all cores that the thread
/// may run on. A cache that several cores share counts once. `None` if the system does not tell.
pub fn bytes(cores: Option<Cores>) -> Option<u64> {
    let cores = cores.or_else(|| Cores::allowed().ok())?;
    below(Path::new("/sys/devices/system/cpu"), cores)
}

fn below(folder: &Path, cores: Cores) -> Option<u64> {
    let caches: BTreeSet<(String, u64)> =
        cores.numbers().filter_map(|core| last(&folder.join(format!("cpu{core}/cache")))).collect();
    let bytes: u64 = caches.iter().map(|(_, bytes)| bytes).sum();
    (bytes > 0).then_some(bytes)
}

/// The cores that share the last cache of a core, which name it, and its bytes.
fn last(caches: &Path) -> Option<(String, u64)> {
    let text = |index: usize, name: &str| {
        let text = std::fs::read_to_string(caches.join(format!("index{index}/{name}"))).ok()?;
        Some(text.trim().to_owned())
    };
    let level = |index| text(index, "level")?.parse::<u32>().ok();
    let (_, index) = (0..).map_while(|index| Some((level(index)?, index))).max()?;
    let size = text(index, "size")?;
    let kib: u64 = size.strip_suffix('K')?.parse().ok()?;
    Some((text(index, "shared_cpu_list")?, kib << 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_cache_counts_once() {
        let folder = tempfile::tempdir().unwrap();
        let cache = |core: u32, index: u32, level: &str, size: &str, shared: &str| {
            let folder = folder.path().join(format!("cpu{core}/cache/index{index}"));
            std::fs::create_dir_all(&folder).unwrap();
            for (name, text) in [("level", level), ("size", size), ("shared_cpu_list", shared)] {
                std::fs::write(folder.join(name), format!("{text}\n")).unwrap();
            }
        };
        for core in 0..4 {
            cache(core, 0, "1", "32K", &core.to_string());
            cache(core, 1, "3", "8192K", if core < 2 { "0-1" } else { "2-3" });
        }
        let of = |list: &str| below(folder.path(), list.parse().unwrap());
        assert_eq!(of("0-1"), Some(8 << 20));
        assert_eq!(of("0-3"), Some(16 << 20));
        assert_eq!(of("1,2"), Some(16 << 20));
        assert_eq!(of("7"), None);
    }
}
