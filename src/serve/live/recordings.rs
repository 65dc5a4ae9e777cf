//! Files of frames that this run has written, for download.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use futures_util::stream::try_unfold;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Bytes, Frame};
use serde::Serialize;
use tokio::task::spawn_blocking;

use super::Live;
use crate::serve::wire::Body;
use stereod_io::sink::segments;

/// Bytes that are read at once.
const CHUNK: u64 = 256 << 10;

/// Time by which the clock of a file system may be behind.
const TICK: Duration = Duration::from_millis(20);

#[derive(Debug, PartialEq, Serialize)]
pub struct Recording {
    pub name: String,
    pub bytes: u64,
    /// Its address, relative to the page.
    pub address: String,
    #[serde(skip)]
    path: PathBuf,
}

/// The files of all outputs, and the room for more.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct Listed {
    pub files: Vec<Recording>,
    /// Bytes that the fullest of their disks has free.
    pub free: Option<u64>,
}

/// Lists the files of all outputs. The error is a panic.
pub async fn list(live: &Live) -> Result<Listed, String> {
    let shared = live.0.clone();
    let all = move || {
        let Some(recorder) = &shared.source.recorder else { return Listed::default() };
        let outputs = recorder.written();
        let files = outputs.iter().enumerate();
        let files =
            files.flat_map(|(number, base)| written(number, base, shared.clock.since)).collect();
        Listed { files, free: recorder.free() }
    };
    live.0.makers.work(all).await
}

/// Returns length and content of the file with this address; `None` if there is none.
pub async fn open(live: &Live, address: &str) -> Option<io::Result<(u64, Body)>> {
    let recording = list(live).await.ok()?.files.into_iter().find(|one| one.address == address)?;
    let opened = spawn_blocking(move || File::open(recording.path)).await.ok()?;
    // The file may grow meanwhile.
    Some(opened.map(|file| (recording.bytes, content(file, recording.bytes))))
}

fn content(file: File, bytes: u64) -> Body {
    let chunks = try_unfold((file, bytes), |(mut file, left)| async move {
        if left == 0 {
            return Ok(None);
        }
        let count = left.min(CHUNK);
        let read = move || {
            let mut chunk = vec![0; count as usize];
            file.read_exact(&mut chunk).map(|()| (chunk, file))
        };
        let (chunk, file) = spawn_blocking(read).await.map_err(io::Error::other)??;
        Ok::<_, io::Error>(Some((Frame::data(Bytes::from(chunk)), (file, left - count))))
    });
    StreamBody::new(chunks).boxed_unsync()
}

/// Lists the file of an output, or its segments, as far as they were written since a moment.
fn written(number: usize, base: &Path, since: SystemTime) -> Vec<Recording> {
    let folder = base.parent().filter(|folder| !folder.as_os_str().is_empty());
    let entries = fs::read_dir(folder.unwrap_or(Path::new("."))).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries
        .filter_map(|entry| {
            let name = entry.file_name();
            // Links lead elsewhere, so only plain files count.
            let about = fs::symlink_metadata(entry.path()).ok().filter(|about| about.is_file())?;
            let is_new = about.modified().is_ok_and(|changed| changed + TICK >= since);
            let is_own = Some(&*name) == base.file_name() || segments::is_segment(base, &name);
            let address = format!("recordings/{number}/{}", encoded(&name.to_string_lossy()));
            (is_new && is_own).then(|| Recording {
                name: name.to_string_lossy().into_owned(),
                bytes: about.len(),
                address,
                path: entry.path(),
            })
        })
        .collect();
    found.sort_by(|one, other| one.name.cmp(&other.name));
    found
}

/// Writes a name as a part of an address (RFC 3986, 2.1).
fn encoded(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    name.bytes()
        .map(
            |byte| {
                if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
            },
        )
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_this_run_are_listed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("other.mkv"), "x").unwrap();
        fs::write(path("a b.mkv"), "12345").unwrap();
        let base = path("a b.mkv");
        let names = |since| {
            let found = written(3, &base, since).into_iter();
            found.map(|one| (one.address, one.bytes)).collect::<Vec<_>>()
        };
        let before = SystemTime::now() - Duration::from_secs(9);
        assert_eq!(names(before), [("recordings/3/a%20b.mkv".to_owned(), 5)]);
        assert_eq!(names(SystemTime::now() + Duration::from_secs(9)), []);
        fs::remove_file(&base).unwrap();
        std::os::unix::fs::symlink("other.mkv", &base).unwrap();
        assert_eq!(names(before), []);
    }
}
