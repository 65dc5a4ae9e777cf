//! Reads files that the user names, with a timeout, because a name may lead to a pipe without a
//! writer or to an endless device.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::time::{Duration, Instant};

/// Read timeout for anything that is not a regular file.
const PATIENCE: Duration = Duration::from_secs(5);

/// Largest number of bytes read from anything that is not a regular file.
const PIPE_MAX: u64 = 64 << 20;

/// Number of files that loading a library may open at once, with a reserve.
const SPARE: usize = 8;

/// Checks that this process may open a few more files. Otherwise a library that cannot be opened
/// would look as if it were not installed.
pub fn require_spare_files() -> io::Result<()> {
    let opened: io::Result<Vec<File>> = (0..SPARE).map(|_| File::open("/dev/null")).collect();
    opened.map(drop)
}

/// Reads a file of at most `longest` bytes. A pipe is read as well (`--config <(command)`) if its
/// writer finishes within five seconds.
pub fn read(path: &Path, longest: u64) -> io::Result<Vec<u8>> {
    let file = open_any(path)?;
    let about = file.metadata()?;
    if about.is_dir() {
        return Err(refused("it is a folder, not a file"));
    }
    if !about.is_file() {
        return read_pipe(file, longest.min(PIPE_MAX), PATIENCE);
    }
    let mut bytes = Vec::new();
    if about.len() <= longest {
        bytes.reserve(usize::try_from(about.len()).unwrap_or(0));
        // Files of procfs are longer than their stated length.
        (&file).take(longest.saturating_add(1)).read_to_end(&mut bytes)?;
    }
    if about.len() > longest || bytes.len() as u64 > longest {
        return Err(too_long(longest));
    }
    Ok(bytes)
}

/// Opens a regular file for reading and refuses everything else.
pub fn open(path: &Path) -> io::Result<File> {
    let file = open_any(path)?;
    let about = file.metadata()?;
    if about.is_file() {
        return Ok(file);
    }
    Err(refused(kind(&about)))
}

fn kind(about: &std::fs::Metadata) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if about.file_type().is_fifo() {
            return "it is a pipe (FIFO), not a file";
        }
    }
    if about.is_dir() { "it is a folder, not a file" } else { "it is a device, not a file" }
}

/// Opens without waiting for the other end of a pipe. For regular files it makes no difference.
fn open_any(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        libc::O_NONBLOCK | libc::O_NOCTTY,
    );
    let opened = options.open(path);
    #[cfg(unix)]
    if opened.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::ENXIO)) {
        return Err(refused("it is a socket, or a device that is not there"));
    }
    opened
}

fn read_pipe(mut file: File, longest: u64, patience: Duration) -> io::Result<Vec<u8>> {
    let deadline = Instant::now() + patience;
    let mut bytes = Vec::new();
    let mut part = [0; 16 << 10];
    while wait_for_input(&file, deadline)? {
        match file.read(&mut part) {
            Ok(0) => return Ok(bytes),
            Ok(length) => bytes.extend(&part[..length]),
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
        if bytes.len() as u64 > longest {
            return Err(too_long(longest));
        }
    }
    let seconds = patience.as_secs();
    Err(refused(format!(
        "it is no regular file, and what it has did not come to an end within {seconds} s"
    )))
}

/// Waits until there is data or the writer is gone. Returns false after the deadline.
#[cfg(unix)]
fn wait_for_input(file: &File, deadline: Instant) -> io::Result<bool> {
    use std::os::fd::AsRawFd;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        let mut waited = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let ms = left.as_millis().clamp(1, 60_000) as libc::c_int;
        // SAFETY: one descriptor, which lives as long as the call.
        match unsafe { libc::poll(&mut waited, 1, ms) } {
            0 => return Ok(false),
            -1 => {
                let error = io::Error::last_os_error();
                if error.kind() != ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            _ => return Ok(true),
        }
    }
}

#[cfg(not(unix))]
fn wait_for_input(_: &File, deadline: Instant) -> io::Result<bool> {
    Ok(Instant::now() < deadline)
}

fn refused(why: impl Into<String>) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, why.into())
}

fn too_long(longest: u64) -> io::Error {
    let (size, unit) =
        if longest < 1 << 20 { (longest >> 10, "KiB") } else { (longest >> 20, "MiB") };
    io::Error::new(ErrorKind::FileTooLarge, format!("it is longer than {size} {unit}"))
}

#[cfg(all(test, unix))]
mod tests {
    use std::ffi::CString;
    use std::io::Write;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    fn make_pipe(path: &Path) {
        let name = CString::new(path.as_os_str().as_bytes()).unwrap();
        // SAFETY: the name ends in a zero and outlives the call.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    }

    #[test]
    fn files_are_read_up_to_a_length() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, [7; 2048]).unwrap();
        assert_eq!(read(&path, 2048).unwrap(), [7; 2048]);
        let error = read(&path, 2047).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        assert!(read(folder.path(), 1).unwrap_err().to_string().contains("folder"));
        assert_eq!(read(&folder.path().join("b"), 1).unwrap_err().kind(), ErrorKind::NotFound);
        assert!(!read(Path::new("/proc/self/status"), 1 << 20).unwrap().is_empty());
        assert!(open(&path).is_ok());
    }

    #[test]
    fn pipes_are_read_but_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        make_pipe(&path);
        assert!(open(&path).unwrap_err().to_string().contains("a pipe"));
        // Nobody writes.
        let second = Duration::from_secs(1);
        assert!(
            read_pipe(open_any(&path).unwrap(), 10, second)
                .unwrap_err()
                .to_string()
                .contains("within 1 s")
        );
        let to = path.clone();
        let writer = std::thread::spawn(move || {
            let mut pipe = OpenOptions::new().write(true).open(to).unwrap();
            for part in ["a long ", "text"] {
                pipe.write_all(part.as_bytes()).unwrap();
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        assert_eq!(read_pipe(open_any(&path).unwrap(), 100, 120 * second).unwrap(), b"a long text");
        writer.join().unwrap();
    }

    #[test]
    fn devices_end_too() {
        assert_eq!(read(Path::new("/dev/null"), 10).unwrap(), b"");
        let error = read(Path::new("/dev/zero"), 1 << 20).unwrap_err();
        assert!(error.to_string().contains("longer than 1 MiB"), "{error}");
        assert!(open(Path::new("/dev/zero")).unwrap_err().to_string().contains("device"));
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert!(read(&socket, 10).unwrap_err().to_string().contains("socket"));
    }
}
