//! Disk cache of compiled kernels, so that a start needs no compilation.
//!
//! One file per entry, named by the hash of everything that the code depends on. A file is written under a
//! temporary name and renamed, so that programs that start at once never see a partial file; its checksum
//! detects damage by a full or failing disk. The folder's size is bounded. A failure of the cache costs time,
//! never the run.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::reading;

/// First bytes of an entry; the number changes with its layout.
const MAGIC: &[u8; 16] = b"stereod cubin 1\n";

/// Bytes before the code: the magic, the key, the checksum of the code.
const HEADER: usize = 16 + 32 + 32;

/// Largest size of all entries together; the least recently used are deleted first.
pub const LIMIT: u64 = 64 << 20;

/// Age of temporary files of killed programs, after which they are deleted.
const STALE: Duration = Duration::from_secs(3600);

/// Hash of all inputs of an entry's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key([u8; 32]);

impl Key {
    /// Hashes a list of parts, including their boundaries.
    pub fn of<'a>(parts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        Key(*hasher.finalize().as_bytes())
    }

    fn file_name(&self) -> String {
        let digits: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{digits}.cubin")
    }
}

/// Folder of compiled kernels, or none.
#[derive(Clone, Debug, PartialEq)]
pub struct Cache {
    /// `None`: nothing is stored.
    folder: Option<PathBuf>,
    limit: u64,
}

impl Cache {
    /// A cache in `folder`, which is made on first use.
    pub fn new(folder: PathBuf) -> Self {
        Cache { folder: Some(folder), limit: LIMIT }
    }

    /// A cache that stores nothing.
    pub fn off() -> Self {
        Cache { folder: None, limit: 0 }
    }

    /// A cache in the user's cache folder, or none for a user without one.
    pub fn of_user() -> Self {
        let absolute = |name: &str| {
            std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
        };
        let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
        base.map_or_else(Self::off, |base| Self::new(base.join("stereod").join("kernels")))
    }

    /// Returns the code of this key. A damaged entry is removed.
    pub fn load(&self, key: &Key) -> Option<Vec<u8>> {
        let path = self.folder.as_ref()?.join(key.file_name());
        let mut entry = reading::read(&path, LIMIT).ok()?;
        let whole = entry.len() > HEADER
            && entry[..16] == *MAGIC
            && entry[16..48] == key.0
            && entry[48..HEADER] == *blake3::hash(&entry[HEADER..]).as_bytes();
        if !whole {
            tracing::warn!("{} is damaged; compiling again", path.display());
            let _ = fs::remove_file(&path);
            return None;
        }
        // Marks the entry as recently used. If the time cannot be set, the oldest entry goes first.
        let file = fs::File::options().append(true).open(&path);
        let _ = file.and_then(|file| file.set_modified(SystemTime::now()));
        entry.drain(..HEADER);
        Some(entry)
    }

    pub fn store(&self, key: &Key, code: &[u8]) {
        let Some(folder) = &self.folder else { return };
        if let Err(error) = self.write(folder, key, code) {
            tracing::debug!("compiled kernels are not kept in {}: {error}", folder.display());
            return;
        }
        self.shrink(folder);
    }

    fn write(&self, folder: &Path, key: &Key, code: &[u8]) -> std::io::Result<()> {
        use std::sync::atomic::{AtomicU64, Ordering};
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        fs::create_dir_all(folder)?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!(".{}.{}.{number}.tmp", key.file_name(), std::process::id());
        let temporary = folder.join(name);
        let written = fs::File::options()
            .write(true)
            .create_new(true)
            .open(&temporary)
            .and_then(|mut file| {
                file.write_all(MAGIC)?;
                file.write_all(&key.0)?;
                file.write_all(blake3::hash(code).as_bytes())?;
                file.write_all(code)
            })
            .and_then(|()| fs::rename(&temporary, folder.join(key.file_name())));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written
    }

    /// Deletes the least recently used entries beyond the limit, and temporary files of killed programs.
    fn shrink(&self, folder: &Path) {
        let Ok(files) = fs::read_dir(folder) else { return };
        let mut entries = Vec::new();
        for file in files.flatten() {
            let (path, Ok(meta)) = (file.path(), file.metadata()) else { continue };
            let used = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("cubin") => entries.push((used, meta.len(), path)),
                Some("tmp") if used.elapsed().is_ok_and(|age| age > STALE) => {
                    let _ = fs::remove_file(path);
                }
                _ => {}
            }
        }
        entries.sort();
        let mut total: u64 = entries.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, bytes, path) in entries {
            if total <= self.limit {
                break;
            }
            if fs::remove_file(path).is_ok() {
                total -= bytes;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(limit: u64) -> (tempfile::TempDir, Cache) {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache { folder: Some(folder.path().join("a/b")), limit };
        (folder, cache)
    }

    fn file_of(cache: &Cache, key: &Key) -> PathBuf {
        cache.folder.as_ref().unwrap().join(key.file_name())
    }

    #[test]
    fn what_is_stored_is_loaded() {
        let (_folder, cache) = cache(LIMIT);
        let (key, other) = (Key::of(["a", "b"]), Key::of(["ab", ""]));
        assert_ne!(key, other);
        assert_eq!(cache.load(&key), None);
        cache.store(&key, b"code");
        assert_eq!(cache.load(&key).as_deref(), Some(&b"code"[..]));
        assert_eq!(cache.load(&other), None);
        cache.store(&key, b"newer");
        assert_eq!(cache.load(&key).as_deref(), Some(&b"newer"[..]));
        assert_eq!(fs::read_dir(cache.folder.as_ref().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn damaged_entries_are_noticed_and_removed() {
        let (_folder, cache) = cache(LIMIT);
        let key = Key::of(["k"]);
        let damages: [fn(&mut Vec<u8>); 6] = [
            |entry| entry.clear(),
            |entry| entry.truncate(HEADER),
            |entry| entry.truncate(HEADER + 3),
            |entry| entry[0] ^= 1,
            |entry| entry[20] ^= 1,
            |entry| *entry.last_mut().unwrap() ^= 1,
        ];
        for damage in damages {
            cache.store(&key, b"code that is long enough");
            let path = file_of(&cache, &key);
            let mut entry = fs::read(&path).unwrap();
            damage(&mut entry);
            fs::write(&path, entry).unwrap();
            assert_eq!(cache.load(&key), None);
            assert!(!path.exists());
        }
    }

    #[test]
    fn an_entry_under_the_wrong_name_is_not_taken() {
        let (_folder, cache) = cache(LIMIT);
        let (key, other) = (Key::of(["k"]), Key::of(["other"]));
        cache.store(&key, b"code");
        fs::rename(file_of(&cache, &key), file_of(&cache, &other)).unwrap();
        assert_eq!(cache.load(&other), None);
    }

    #[test]
    fn the_least_recently_used_go_first() {
        let entry = (HEADER + 1000) as u64;
        let (_folder, cache) = cache(3 * entry);
        let keys: Vec<Key> = ["0", "1", "2", "3"].into_iter().map(|name| Key::of([name])).collect();
        for (age, key) in keys[..3].iter().enumerate() {
            cache.store(key, &[7; 1000]);
            let file = fs::File::options().append(true).open(file_of(&cache, key)).unwrap();
            let used = SystemTime::now() - Duration::from_secs(100 - age as u64);
            file.set_modified(used).unwrap();
        }
        assert!(cache.load(&keys[0]).is_some(), "used just now");
        cache.store(&keys[3], &[7; 1000]);
        let kept: Vec<bool> = keys.iter().map(|key| file_of(&cache, key).exists()).collect();
        assert_eq!(kept, [true, false, true, true]);
    }

    #[test]
    fn leftovers_of_killed_programs_go() {
        let (_folder, cache) = cache(LIMIT);
        let folder = cache.folder.clone().unwrap();
        fs::create_dir_all(&folder).unwrap();
        for (name, age) in [(".old.tmp", 2 * STALE), (".new.tmp", Duration::ZERO)] {
            let file = fs::File::create(folder.join(name)).unwrap();
            file.set_modified(SystemTime::now() - age).unwrap();
        }
        cache.store(&Key::of(["k"]), b"code");
        assert!(!folder.join(".old.tmp").exists() && folder.join(".new.tmp").exists());
    }

    #[test]
    fn a_folder_that_cannot_be_written_costs_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "in the way").unwrap();
        let cache = Cache::new(file.join("below"));
        cache.store(&Key::of(["k"]), b"code");
        assert_eq!(cache.load(&Key::of(["k"])), None);
        Cache::off().store(&Key::of(["k"]), b"code");
        assert_eq!(Cache::off().load(&Key::of(["k"])), None);
    }

    #[test]
    fn starts_at_the_same_time_do_not_disturb_each_other() {
        let (_folder, cache) = cache(LIMIT);
        let key = Key::of(["k"]);
        let code = vec![5u8; 200_000];
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        cache.store(&key, &code);
                        assert_eq!(cache.load(&key).as_deref(), Some(&code[..]));
                    }
                });
            }
        });
    }
}
