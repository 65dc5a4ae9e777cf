//! Boxes of a detector: JSON lines over UDP or standard input, or what a thread of the caller receives, kept for the
//! pairs that ask for them.

use std::io::{BufRead, BufReader, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use stereod_core::thread;

/// Longest message in bytes.
pub const LONGEST: usize = 64 << 10;

/// Most boxes in a message.
pub const MOST_BOXES: usize = 256;

/// Default of the largest difference between the stamps of boxes and of the pair that asks for them.
pub const FRESH: Duration = Duration::from_millis(500);

/// Longest label or id in bytes.
const LONGEST_NAME: usize = 256;

/// A stamp beyond it, in seconds since 1970, was meant in milliseconds: the year is 5138.
const LAST_STAMP: f64 = 1e11;

/// Pause between looks at whether the source was dropped.
const LOOK: Duration = Duration::from_millis(200);

/// Box that a detector draws round a thing in the left image.
#[derive(Clone, Debug, PartialEq)]
pub struct DetectorBox {
    /// Class of the thing, such as "person".
    pub label: String,
    /// Number or name of the thing in a track.
    pub id: Option<String>,
    /// Certainty of the detector, from 0 to 1.
    pub score: Option<f64>,
    /// Left, top, right and bottom edge as fractions of the image's width and height, clipped to 0..1.
    pub edges: [f64; 4],
    /// Time of the image since the Unix epoch, or of the message's arrival if the message names none.
    pub stamp: Duration,
}

/// Reason for which a message with boxes is not used.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("it is longer than {LONGEST} bytes")]
    TooLong,
    #[error(
        "it is not JSON of the form {{\"boxes\": [{{\"label\": \"person\", \"box\": [0.1, 0.2, 0.3, 0.4]}}]}}: {0}"
    )]
    Json(#[from] serde_json::Error),
    #[error("it is not a {kind}: {fault}")]
    Message { kind: &'static str, fault: String },
    #[error("it has {0} boxes, and {MOST_BOXES} are the most")]
    TooMany(usize),
    #[error("its stamp of {0} is not in seconds since 1970")]
    Stamp(f64),
    #[error("its size of {0} x {1} is not that of an image")]
    Size(f64, f64),
    #[error("box {0} (counted from 0) {1}")]
    Box(usize, String),
}

#[derive(Deserialize)]
struct Message {
    stamp: Option<f64>,
    boxes: Vec<Entry>,
    size: Option<[f64; 2]>,
}

#[derive(Deserialize)]
struct Entry {
    label: String,
    id: Option<Id>,
    score: Option<f64>,
    #[serde(rename = "box")]
    edges: [f64; 4],
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Id {
    Number(serde_json::Number),
    Text(String),
}

/// Reads a message `{"stamp": S, "boxes": [{"label": "person", "id": "7", "score": 0.9, "box": [x0, y0, x1, y1]}],
/// "size": [w, h]}`. Without `size` the edges are fractions of the image, otherwise pixels of an image of that size.
/// `stamp`, `id`, `score` and `size` may be missing; boxes without a stamp get the time of `arrival`. Other keys are
/// ignored.
///
/// # Errors
/// Fails if the message is longer than [`LONGEST`], is not such JSON, or has a box, stamp or size that makes no sense.
pub fn read_boxes(message: &[u8], arrival: Duration) -> Result<Vec<DetectorBox>, Refusal> {
    if message.len() > LONGEST {
        return Err(Refusal::TooLong);
    }
    let Message { stamp, boxes, size } = serde_json::from_slice(message)?;
    let stamp =
        stamp.map_or(Ok(arrival), |stamp| read_stamp(stamp).ok_or(Refusal::Stamp(stamp)))?;
    if let Some([width, height]) = size
        && !(1.0..=1e6).contains(&width.min(height))
    {
        return Err(Refusal::Size(width, height));
    }
    let found = boxes.into_iter().map(|Entry { label, id, score, edges }| {
        let id = id.map(|id| match id {
            Id::Number(number) => number.to_string(),
            Id::Text(text) => text,
        });
        DetectorBox { label, id, score, edges, stamp }
    });
    check_boxes(found.collect(), size)
}

/// Checks the boxes of a message, whose edges are in pixels of an image of `size`, or fractions of it. Returns them with
/// edges as fractions that are clipped to the image.
///
/// # Errors
/// Fails if there are more than [`MOST_BOXES`], or if one makes no sense.
pub fn check_boxes(
    boxes: Vec<DetectorBox>,
    size: Option<[f64; 2]>,
) -> Result<Vec<DetectorBox>, Refusal> {
    if boxes.len() > MOST_BOXES {
        return Err(Refusal::TooMany(boxes.len()));
    }
    let check = |(number, found)| checked(found, size).map_err(|fault| Refusal::Box(number, fault));
    boxes.into_iter().enumerate().map(check).collect()
}

/// Returns a stamp in seconds since the Unix epoch as a duration, if it is one.
pub(crate) fn read_stamp(seconds: f64) -> Option<Duration> {
    (0.0..LAST_STAMP).contains(&seconds).then(|| Duration::from_secs_f64(seconds))
}

fn checked(found: DetectorBox, size: Option<[f64; 2]>) -> Result<DetectorBox, String> {
    let DetectorBox { label, id, score, edges, stamp } = found;
    if label.len().max(id.as_ref().map_or(0, String::len)) > LONGEST_NAME {
        return Err(format!("has a label or an id of more than {LONGEST_NAME} bytes"));
    }
    if let Some(score) = score.filter(|score| !(0.0..=1.0).contains(score)) {
        return Err(format!("has a score of {score}, which is not from 0 to 1"));
    }
    Ok(DetectorBox { label, id, score, edges: fractions(edges, size)?, stamp })
}

/// Returns edges in pixels of an image of `size`, or in fractions, as fractions that are clipped to the image.
///
/// # Errors
/// Fails, with words that follow "the box", if the edges are no numbers, are reversed or lie outside the image.
pub(crate) fn fractions(edges: [f64; 4], size: Option<[f64; 2]>) -> Result<[f64; 4], String> {
    let [left, top, right, bottom] = edges;
    if !edges.iter().all(|edge| edge.is_finite()) {
        return Err("has an edge that is not a number".into());
    }
    if left >= right || top >= bottom {
        return Err(format!("has reversed edges or no area: left, top, right, bottom = {edges:?}"));
    }
    let [width, height] = size.unwrap_or([1.0; 2]);
    let parts = [left / width, top / height, right / width, bottom / height];
    // Detectors place edges a little outside of the image; far outside they are mistakes, most often pixels.
    if size.is_none() && parts.iter().any(|part| part.abs() > 2.0) {
        return Err(format!(
            "is far outside of the image, from 0 to 1: {edges:?}; pixels need \"size\": [width, height]"
        ));
    }
    let [left, top, right, bottom] = parts.map(|part| part.clamp(0.0, 1.0));
    if left >= right || top >= bottom {
        return Err(format!("lies outside of the image: {edges:?}"));
    }
    Ok([left, top, right, bottom])
}

/// Returns the time since the Unix epoch; 0 if the clock is before it.
pub fn unix_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Newest boxes of a detector.
pub struct BoxSource {
    inbox: Arc<Inbox>,
    address: Option<SocketAddr>,
    /// Only of UDP: a read of standard input cannot be interrupted, so its thread ends with the input or the program.
    thread: Option<JoinHandle<()>>,
}

impl BoxSource {
    /// Opens `udp://127.0.0.1:PORT`, a message as [`read_boxes`] reads it a datagram, or `stdin`, a message a line.
    /// `fresh` is the largest difference between the stamps of boxes and of the pair that asks; [`FRESH`] fits most
    /// detectors.
    ///
    /// There is no authentication: whoever can send to the port can place boxes. An address other than the machine's own
    /// is therefore refused; a detector on another machine sends its boxes through MQTT or an SSH tunnel.
    ///
    /// # Errors
    /// Fails if the address is neither of these, is not one of the machine's own, or its port is taken.
    pub fn open(address: &str, fresh: Duration) -> Result<Self> {
        if address == "stdin" {
            let read = |inbox: &Inbox| read_lines(BufReader::new(std::io::stdin()), inbox);
            let mut source = Self::receive(fresh, read)?;
            source.thread = None;
            return Ok(source);
        }
        let socket = bind(address)?;
        let own = socket.local_addr()?;
        let mut source = Self::receive(fresh, move |inbox| listen(&socket, inbox))?;
        source.address = Some(own);
        Ok(source)
    }

    /// Starts a thread that takes boxes until [`Inbox::is_closed`].
    ///
    /// # Errors
    /// Fails if the system starts no thread.
    pub fn receive(
        fresh: Duration,
        receiver: impl FnOnce(&Inbox) + Send + 'static,
    ) -> std::io::Result<Self> {
        let inbox = Arc::new(Inbox::new(fresh));
        let of_thread = inbox.clone();
        let work = move || receiver(&of_thread);
        let thread = thread::spawn("boxes", work, |broken| tracing::error!("{broken}"))?;
        Ok(Self { inbox, address: None, thread: Some(thread) })
    }

    /// Returns the newest message's boxes for a pair that was captured at this time since the Unix epoch, or none if
    /// they are too old for it, or too new.
    pub fn newest(&self, capture: Duration) -> Vec<DetectorBox> {
        self.inbox.get(capture)
    }

    /// Returns the number of messages that were not understood; the first one's fault was logged.
    pub fn refused(&self) -> u64 {
        self.inbox.refused.load(Ordering::Relaxed)
    }

    /// Returns the address at which datagrams are received.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }
}

impl Drop for BoxSource {
    fn drop(&mut self) {
        self.inbox.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
        let refused = self.refused();
        if refused > 1 {
            tracing::warn!("{refused} messages with boxes were refused");
        }
    }
}

/// The newest message's boxes, and counts.
pub struct Inbox {
    set: Mutex<Set>,
    fresh: Duration,
    refused: AtomicU64,
    /// Whether it was logged that boxes do not fit the pairs' times.
    told: AtomicBool,
    stop: AtomicBool,
}

#[derive(Default)]
struct Set {
    boxes: Vec<DetectorBox>,
    /// Whether a pair asked for them.
    asked: bool,
}

impl Inbox {
    fn new(fresh: Duration) -> Self {
        let (refused, told, stop) =
            (AtomicU64::new(0), AtomicBool::new(false), AtomicBool::new(false));
        Self { set: Mutex::default(), fresh, refused, told, stop }
    }

    /// Reports whether the boxes are wanted no more.
    pub fn is_closed(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Takes a message's boxes instead of those before, or counts it; the first one's fault is logged.
    pub fn take(&self, message: Result<Vec<DetectorBox>, Refusal>) {
        match message {
            Ok(boxes) => {
                *self.set.lock().unwrap_or_else(PoisonError::into_inner) =
                    Set { boxes, asked: false };
            }
            Err(refusal) if self.refused.fetch_add(1, Ordering::Relaxed) == 0 => {
                tracing::warn!(
                    "a message with boxes is refused: {refusal}; further ones are counted"
                );
            }
            Err(_) => {}
        }
    }

    fn get(&self, capture: Duration) -> Vec<DetectorBox> {
        let mut set = self.set.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(stamp) = set.boxes.first().map(|found| found.stamp) else {
            return Vec::new();
        };
        let is_first = !std::mem::replace(&mut set.asked, true);
        let difference = stamp.abs_diff(capture);
        if difference <= self.fresh {
            return set.boxes.clone();
        }
        // Boxes grow old when a detector ends. If they never fitted, its clock or its speed is at fault.
        if is_first && !self.told.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "boxes are {:.3} s {} than the images, of {:.3} s allowed, and are not used: compare the detector's \
                clock and its delay",
                difference.as_secs_f64(),
                if stamp < capture { "older" } else { "newer" },
                self.fresh.as_secs_f64()
            );
        }
        Vec::new()
    }
}

fn bind(address: &str) -> Result<UdpSocket> {
    let (host, port) = address
        .strip_prefix("udp://")
        .and_then(|rest| rest.rsplit_once(':'))
        .with_context(|| {
            format!(
                "boxes come from \"stdin\", \"udp://127.0.0.1:PORT\", \"frigate:CAMERA:WxH\" or \"ros2:/TOPIC\", not from \"{address}\""
            )
        })?;
    let port: u16 =
        port.parse().with_context(|| format!("\"{port}\" in \"{address}\" is not a port"))?;
    let ip: IpAddr = match host.trim_start_matches('[').trim_end_matches(']') {
        "localhost" => Ipv4Addr::LOCALHOST.into(),
        host => host
            .parse()
            .with_context(|| format!("\"{host}\" in \"{address}\" is not an IP address"))?,
    };
    if !ip.is_loopback() {
        bail!(
            "boxes are taken from this machine only (udp://127.0.0.1:{port}), because anybody who reaches {ip} could \
            place some: there is no authentication. Use MQTT or an SSH tunnel for a detector on another machine"
        );
    }
    let socket =
        UdpSocket::bind((ip, port)).with_context(|| format!("{address} cannot be listened to"))?;
    socket.set_read_timeout(Some(LOOK))?;
    Ok(socket)
}

fn listen(socket: &UdpSocket, inbox: &Inbox) {
    let mut datagram = vec![0; LONGEST + 1];
    while !inbox.is_closed() {
        match socket.recv(&mut datagram) {
            Ok(length) => inbox.take(read_boxes(&datagram[..length], unix_time())),
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) => {}
            Err(error) => return tracing::warn!("no more boxes are received: {error}"),
        }
    }
}

/// Takes a message from each line until the input ends or the source was dropped.
fn read_lines(mut input: impl BufRead, inbox: &Inbox) {
    let mut line = Vec::new();
    while !inbox.is_closed() {
        match read_line(&mut input, &mut line) {
            Ok(0) => return tracing::info!("no more boxes: the input ended"),
            Ok(_) if line.len() > LONGEST => inbox.take(Err(Refusal::TooLong)),
            Ok(_) if line.trim_ascii().is_empty() => {}
            Ok(_) => inbox.take(read_boxes(&line, unix_time())),
            Err(error) => return tracing::warn!("no more boxes are read: {error}"),
        }
    }
}

/// Reads a line without its end, but not more than a byte beyond [`LONGEST`]; the rest of a longer one is skipped.
/// Returns 0 at the end of the input.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> std::io::Result<usize> {
    line.clear();
    let length = std::io::Read::take(&mut *input, LONGEST as u64 + 1).read_until(b'\n', line)?;
    if line.pop_if(|last| *last == b'\n').is_none() && line.len() > LONGEST {
        input.skip_until(b'\n')?;
    }
    Ok(length)
}

#[cfg(test)]
mod tests;
