//! Standard error that never blocks or fails: it may lead to a full disk, into a pipe whose reader
//! is gone, or to a reader that has stopped reading.
//!
//! One thread writes; all others only hand over their lines. Lines that cannot be written, or for
//! which there is no room, are dropped and counted; the next line that gets through reports them.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::panic::PanicHookInfo;
use std::sync::{Arc, Condvar, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::ProgressDrawTarget;

use stereod_core::thread::locked;
use stereod_io::text::on_one_line;

/// Largest number of bytes that wait to be written.
const ROOM: usize = 256 << 10;

/// Longest wait for standard error without progress ...
const STALLED: Duration = Duration::from_secs(1);

const LONGEST: Duration = Duration::from_secs(5);

/// Time between two attempts at a terminal that another program has made non-blocking.
const RETRY: Duration = Duration::from_millis(20);

static OUTLET: LazyLock<Outlet> = LazyLock::new(|| Outlet::start(Raw::new()));

/// Hands over a line, without its end; returns at once.
pub fn tell(line: &str) {
    OUTLET.put(format!("{line}\n").into_bytes(), true);
}

/// Waits briefly until everything handed over so far has been written.
pub fn flush() {
    OUTLET.flush();
}

/// Reports panics this way, too: the default hook panics again if standard error fails, and blocks
/// if nobody reads it.
pub fn tell_panics() {
    std::panic::set_hook(Box::new(|panic| tell(&in_words(panic))));
}

fn in_words(panic: &PanicHookInfo<'_>) -> String {
    let thread = std::thread::current();
    let thread = thread.name().unwrap_or("unnamed");
    let place = panic.location().map_or_else(String::new, |place| format!(" at {place}"));
    let said = on_one_line(panic.payload_as_str().unwrap_or("nothing said"));
    let backtrace = Backtrace::capture();
    let trace = match backtrace.status() {
        BacktraceStatus::Captured => format!("\n{backtrace}"),
        _ => String::new(),
    };
    format!("thread '{thread}' panicked{place}: {said}{trace}")
}

/// Returns the target of progress bars: standard error if it is a terminal, else nowhere.
pub fn draw_target() -> ProgressDrawTarget {
    if !io::stderr().is_terminal() {
        return ProgressDrawTarget::hidden();
    }
    #[cfg(unix)]
    let term = console::Term::read_write_pair(io::stdin(), Drawing);
    #[cfg(not(unix))]
    let term = console::Term::stderr();
    // The rate of indicatif's own target for standard error.
    ProgressDrawTarget::term(term, 20)
}

/// Writer of log lines to standard error; never fails.
pub(super) struct Stderr;

impl Write for Stderr {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        OUTLET.put(line.to_vec(), true);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Strokes of a progress bar, which take the same way as the lines above it.
#[cfg(unix)]
#[derive(Debug)]
struct Drawing;

#[cfg(unix)]
impl Write for Drawing {
    fn write(&mut self, strokes: &[u8]) -> io::Result<usize> {
        OUTLET.put(strokes.to_vec(), false);
        Ok(strokes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(unix)]
impl std::os::fd::AsRawFd for Drawing {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        libc::STDERR_FILENO
    }
}

/// Queue whose pieces a thread writes in order.
struct Outlet(Arc<Shared>);

struct Shared {
    queue: Mutex<Queue>,
    news: Condvar,
    /// Signals written or dropped pieces.
    done: Condvar,
    out: Mutex<Box<dyn Write + Send>>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Piece>,
    /// Length of all waiting pieces.
    bytes: usize,
    writing: bool,
    /// Number of pieces written or dropped so far.
    handled: u64,
    /// Lines dropped for want of room since the newest waiting piece.
    refused: u64,
    failed: u64,
    by_hand: bool,
}

struct Piece {
    bytes: Vec<u8>,
    /// Set if its loss must be reported.
    counts: bool,
    /// Lines dropped just before it for want of room.
    refused: u64,
}

impl Outlet {
    fn start(out: impl Write + Send + 'static) -> Self {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            news: Condvar::new(),
            done: Condvar::new(),
            out: Mutex::new(Box::new(out)),
        });
        let for_thread = shared.clone();
        // Nothing in it can panic, and there is nowhere to report a panic.
        let writer = move || while for_thread.write_next(true) {};
        let started = std::thread::Builder::new().name("stderr".to_owned()).spawn(writer);
        locked(&shared.queue).by_hand = started.is_err();
        Self(shared)
    }

    fn put(&self, bytes: Vec<u8>, counts: bool) {
        let mut queue = locked(&self.0.queue);
        if queue.bytes.saturating_add(bytes.len()) > ROOM {
            queue.refused += u64::from(counts);
            return;
        }
        queue.bytes += bytes.len();
        let refused = std::mem::take(&mut queue.refused);
        queue.waiting.push_back(Piece { bytes, counts, refused });
        let by_hand = queue.by_hand;
        drop(queue);
        self.0.news.notify_one();
        while by_hand && self.0.write_next(false) {}
    }

    fn flush(&self) {
        let mut queue = locked(&self.0.queue);
        let (begun, mut moved) = (Instant::now(), Instant::now());
        let mut handled = queue.handled;
        while queue.writing || !queue.waiting.is_empty() {
            let left = STALLED.saturating_sub(moved.elapsed());
            if left.is_zero() || begun.elapsed() > LONGEST {
                return;
            }
            let waited = self.0.done.wait_timeout(queue, left);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
            if handled != queue.handled {
                (handled, moved) = (queue.handled, Instant::now());
            }
        }
    }
}

impl Shared {
    /// Writes the oldest piece, waiting for one if `wait`; returns false if there is none.
    fn write_next(&self, wait: bool) -> bool {
        let mut queue = locked(&self.queue);
        let (piece, lost) = loop {
            if let Some(piece) = queue.waiting.pop_front() {
                queue.bytes -= piece.bytes.len();
                queue.writing = true;
                let lost = piece.refused + std::mem::take(&mut queue.failed);
                break (piece, lost);
            }
            if !wait {
                return false;
            }
            queue = self.news.wait(queue).unwrap_or_else(PoisonError::into_inner);
        };
        drop(queue);
        let still_lost = write_piece(&mut **locked(&self.out), &piece, lost);
        let mut queue = locked(&self.queue);
        queue.writing = false;
        queue.handled += 1;
        queue.failed += still_lost;
        self.done.notify_all();
        true
    }
}

/// Writes a piece after a note about lost lines; returns the number of lines whose loss is
/// still unreported.
fn write_piece(out: &mut dyn Write, piece: &Piece, lost: u64) -> u64 {
    if lost > 0 {
        let lines = if lost == 1 { "line is" } else { "lines are" };
        let notice = format!("({lost} {lines} missing here: nobody took them in time)\n");
        if out.write_all(notice.as_bytes()).is_err() {
            return lost + u64::from(piece.counts);
        }
    }
    u64::from(out.write_all(&piece.bytes).is_err() && piece.counts)
}

/// The process's standard error itself. Not [`io::stderr`], because a blocked writer would hold its
/// lock, and every library that prints would wait. Windows has [`io::stderr`] all the same,
/// because it alone writes all characters to a console.
struct Raw(Option<std::fs::File>);

impl Raw {
    fn new() -> Self {
        #[cfg(unix)]
        let own = std::os::fd::AsFd::as_fd(&io::stderr()).try_clone_to_owned().ok();
        #[cfg(not(unix))]
        let own: Option<std::fs::File> = None;
        Self(own.map(std::fs::File::from))
    }
}

impl Write for Raw {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            let written = match &mut self.0 {
                Some(file) => file.write(bytes),
                None => io::stderr().write(bytes),
            };
            match written {
                Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(RETRY),
                other => return other,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

    use super::*;

    /// Test writer that waits for a permission before each write and reports the bytes written.
    struct Gate {
        may: Receiver<bool>,
        taken: Sender<String>,
    }

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if !self.may.recv().unwrap_or(true) {
                return Err(ErrorKind::StorageFull.into());
            }
            let _ = self.taken.send(String::from_utf8_lossy(bytes).into_owned());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn gated() -> (Outlet, Sender<bool>, Receiver<String>) {
        let ((allow, may), (taken, told)) = (bounded(1000), unbounded());
        (Outlet::start(Gate { may, taken }), allow, told)
    }

    #[test]
    fn a_reader_that_stops_holds_nobody_up_and_learns_what_is_missing() {
        let (outlet, allow, told) = gated();
        let line = |number: usize| format!("{number:01023}\n");
        // Four times the capacity.
        for number in 0..1024 {
            outlet.put(line(number).into_bytes(), true);
        }
        // Strokes of a bar are not missed.
        outlet.put(vec![b'-'; ROOM], false);
        outlet.flush();
        drop(allow);
        outlet.flush();
        outlet.put(line(7).into_bytes(), true);
        outlet.flush();
        let told: Vec<String> = told.try_iter().collect();
        let (notices, lines): (Vec<_>, Vec<_>) = told.iter().partition(|l| l.starts_with('('));
        // Those that there is room for, one that was being written, and the last one.
        assert!((257..=258).contains(&lines.len()), "{}", lines.len());
        assert_eq!(told.last(), Some(&line(7)));
        assert!(told[told.len() - 2].ends_with("missing here: nobody took them in time)\n"));
        let missing: usize = notices
            .iter()
            .map(|l| l[1..].split(' ').next().unwrap().parse::<usize>().unwrap())
            .sum();
        assert_eq!(lines.len() - 1 + missing, 1024);
    }

    #[test]
    fn what_fails_is_counted_until_there_is_room_again() {
        let (outlet, allow, told) = gated();
        for may in [false, false, true, true] {
            allow.send(may).unwrap();
        }
        for line in ["a\n", "b\n"] {
            outlet.put(line.into(), true);
            outlet.flush();
        }
        // The word about `a` failed, so `b` was not tried.
        outlet.put("c\n".into(), true);
        outlet.flush();
        let told: Vec<String> = told.try_iter().collect();
        assert_eq!(told, ["(2 lines are missing here: nobody took them in time)\n", "c\n"]);
    }

    #[test]
    fn order_is_kept() {
        let (outlet, allow, told) = gated();
        drop(allow);
        for number in 0..100 {
            outlet.put(number.to_string().into_bytes(), number % 2 == 0);
        }
        outlet.flush();
        let told: Vec<String> = told.try_iter().collect();
        assert_eq!(told, (0..100).map(|number| number.to_string()).collect::<Vec<_>>());
    }
}
