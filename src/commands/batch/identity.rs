//! Hashes of files (BLAKE3): of an input, large ones in parts, and of a whole file.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use stereod_core::reading;

/// Largest size of an input for hashing its whole content.
const WHOLE: u64 = 64 << 20;

/// Number and size of the hashed parts of a larger input, evenly distributed from its first to its last byte,
/// because each worker would have to read a whole archive once more.
const PARTS: u64 = 64;
const PART: u64 = 64 << 10;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub files: u64,
    /// Size of all of them in bytes.
    pub size: u64,
    /// Hash of their names, their sizes, and their content: all of it up to 64 MiB, else 64 parts of 64 KiB.
    pub blake3: String,
}

impl Identity {
    pub fn of(files: &[PathBuf]) -> io::Result<Self> {
        let mut hasher = blake3::Hasher::new();
        let mut ends = Vec::new();
        let mut size = 0;
        for path in files {
            let length = std::fs::metadata(path).map_err(|error| named(path, &error))?.len();
            hasher.update(path.file_name().unwrap_or_default().as_encoded_bytes());
            hasher.update(&length.to_le_bytes());
            size += length;
            ends.push(size);
        }
        if files.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "there is no such file"));
        }
        if size <= WHOLE {
            for path in files {
                let mut file = reading::open(path).map_err(|error| named(path, &error))?;
                hasher.update_reader(&mut file).map_err(|error| named(path, &error))?;
            }
        } else {
            for part in 0..PARTS {
                let last = u128::from(size - PART);
                let mut place = (last * u128::from(part) / u128::from(PARTS - 1)) as u64;
                let mut left = PART;
                while left > 0 {
                    let number = ends.partition_point(|&end| end <= place);
                    let Some(path) = files.get(number) else { break };
                    let begin = if number == 0 { 0 } else { ends[number - 1] };
                    let length = left.min(ends[number] - place);
                    let mut file = reading::open(path).map_err(|error| named(path, &error))?;
                    file.seek(SeekFrom::Start(place - begin))
                        .map_err(|error| named(path, &error))?;
                    hasher.update_reader(file.take(length)).map_err(|error| named(path, &error))?;
                    (place, left) = (place + length, left - length);
                }
            }
        }
        let blake3 = hasher.finalize().to_hex().to_string();
        Ok(Self { files: files.len() as u64, size, blake3 })
    }
}

/// Returns the hash of the content of a regular file, and its size. Reads at most `longest` bytes.
pub fn of_file(path: &Path, longest: u64) -> io::Result<(String, u64)> {
    let file = reading::open(path).map_err(|error| named(path, &error))?;
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file.take(longest)).map_err(|error| named(path, &error))?;
    Ok((hasher.finalize().to_hex().to_string(), hasher.count()))
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[cfg(unix)]
    #[test]
    fn any_change_of_a_small_input_and_the_ends_of_a_large_one_count() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
        let write = |path: &Path, size: u64, at: u64, byte: u8| {
            let file = File::create(path).unwrap();
            file.set_len(size).unwrap();
            std::os::unix::fs::FileExt::write_all_at(&file, &[byte], at).unwrap();
        };
        let of = || Identity::of(&[a.clone(), b.clone()]).unwrap();
        for size in [1000, WHOLE] {
            write(&b, 5, 0, 1);
            let mut seen = Vec::new();
            for (at, byte) in [(0, 1), (0, 2), (size - 1, 1)] {
                write(&a, size, at, byte);
                seen.push(of());
            }
            write(&b, 5, 4, 1);
            seen.push(of());
            for (i, one) in seen.iter().enumerate() {
                assert!(seen[..i].iter().all(|other| other != one), "{size} {i}");
            }
            assert_eq!((seen[0].files, seen[0].size), (2, size + 5));
            assert_eq!(of(), seen[3]);
        }
        assert_eq!(Identity::of(&[]).unwrap_err().kind(), io::ErrorKind::NotFound);
        let missing = Identity::of(&[folder.path().join("c")]).unwrap_err();
        assert!(missing.to_string().contains("/c: "), "{missing}");
    }
}
