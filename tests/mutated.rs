//! Damaged files. Thousands of them found the defects that these tests guard against.
//!
//! `bad_files/mutate.rs` damages good files, the same way in every run. `inside.rs` feeds them to
//! the library's entry points, where many cases take little time; `program.rs` feeds a few to the
//! whole program under a memory limit. `budget.rs` has inputs that ask for too much on purpose.
//! Whatever the input: no panic, no hang, bounded memory, an exit status of 0, 1 or 2, and no file
//! destroyed. An executable of its own, because it sets the memory budget of its process.

#![cfg(all(feature = "cli", feature = "window", feature = "serve"))]

mod common {
    pub mod program;
    pub mod video_file;
}
mod bad_files {
    mod budget;
    mod inside;
    mod mutate;
    mod program;
}

use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

/// Timeout of a case. The slowest case takes less than a second on an idle machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs a case on a thread of its own; `name` identifies it if it panics or hangs.
fn within_patience<T: Send + 'static>(
    name: String,
    case: impl FnOnce() -> T + Send + 'static,
) -> T {
    let (done, end) = mpsc::channel();
    let thread = std::thread::spawn(move || done.send(case()));
    match end.recv_timeout(PATIENCE) {
        Ok(value) => value,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("{name}: hangs"),
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            let panic = thread.join().err();
            let text = panic.as_deref().and_then(|panic| {
                panic
                    .downcast_ref::<String>()
                    .cloned()
                    .or(panic.downcast_ref::<&str>().map(|&s| s.into()))
            });
            panic!("{name}: {}", text.unwrap_or_default())
        }
    }
}

/// Messages of a run of the program.
struct Ended {
    status: i32,
    stdout: String,
    stderr: String,
}

/// Limit of the program's address space under test: it, its libraries and its threads' stacks need
/// less than half.
const ADDRESSES: u64 = 6 << 30;

/// Runs `stereod` in `folder` without a display, under a limit of memory and time.
fn stereod(folder: &Path, arguments: &[&str]) -> Ended {
    use std::os::unix::process::CommandExt;
    let mut command = common::program::stereod(arguments);
    command.current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env("MALLOC_ARENA_MAX", "2");
    let limit = libc::rlimit { rlim_cur: ADDRESSES, rlim_max: ADDRESSES };
    // SAFETY: setrlimit may be called between fork and exec.
    unsafe {
        command.pre_exec(move || match libc::setrlimit(libc::RLIMIT_AS, &limit) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    let child = command.spawn().unwrap();
    let (id, named) = (child.id() as i32, format!("{arguments:?}"));
    let (done, end) = mpsc::channel();
    std::thread::spawn(move || done.send(child.wait_with_output()));
    let output = end.recv_timeout(PATIENCE).unwrap_or_else(|_| {
        // SAFETY: the process is our child and has not been waited for.
        unsafe { libc::kill(id, libc::SIGKILL) };
        panic!("{named}: hangs")
    });
    let output = output.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(!stderr.contains("panicked"), "{named}: {stderr}");
    let status =
        output.status.code().unwrap_or_else(|| panic!("{named}: {}: {stderr}", output.status));
    assert!((0..=2).contains(&status), "{named}: {status}: {stderr}");
    assert!(status == 0 || !stderr.trim().is_empty(), "{named}: {status} without a word");
    Ended { status, stdout, stderr }
}

/// An image with enough texture to match.
fn scene(width: u32, height: u32, shift: u32) -> image::GrayImage {
    image::GrayImage::from_fn(width, height, |x, y| {
        let at = (x + shift).wrapping_mul(2_654_435_761).wrapping_add(y.wrapping_mul(40_503)) >> 7;
        image::Luma([at as u8])
    })
}

/// Writes a short video of a view by a coding such as "jpegenc ! avimux".
fn write_video(path: &Path, shift: u32, coding: &str) {
    let time = |number| Duration::from_nanos(u64::from(number) * 1_000_000_000 / 30);
    let pictures = (0..6).map(|number| (scene(64, 32, shift + number).into_raw(), time(number)));
    let coding = format!("videoconvert ! {coding}");
    common::video_file::write_video(path, ("GRAY8", 64, 32), pictures.collect(), 30, &coding);
}

/// Containers and codings of the tests: extension and encoder.
const VIDEOS: [(&str, &str); 3] = [
    ("mkv", "avenc_ffv1 ! matroskamux"),
    ("avi", "jpegenc ! avimux"),
    ("mp4", "x264enc tune=zerolatency key-int-max=3 ! h264parse ! mp4mux"),
];
