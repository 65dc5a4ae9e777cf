//! The way to the autopilot: a UDP socket or a serial port, with a thread that listens.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ::mavlink::dialects::ardupilotmega::{MavMessage, TIMESYNC_DATA};
use ::mavlink::error::MessageReadError;
use ::mavlink::{MavHeader, MavlinkReader};
use anyhow::{Context, bail, ensure};
use crossbeam_channel::Sender;
use serialport::{ClearBuffer, SerialPort, TTYPort};

/// Bits a second unless the address says otherwise: what autopilots advise for companion computers.
const BAUD: u32 = 921_600;
/// How long a message may wait for room on the line.
const SENDING: Duration = Duration::from_millis(100);
/// How long the listening thread waits before it looks whether it should end.
const LISTENING: Duration = Duration::from_millis(100);
/// Bytes that may still wait in the port when the next obstacles come: an answer about time, not old obstacles.
const BACKLOG: u32 = 128;

/// Address of an autopilot or a router: `udp://127.0.0.1:14550` or `serial:///dev/ttyUSB0?baud=921600`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Host and port, as in `localhost:14550`.
    Udp(String),
    Serial {
        path: String,
        baud: u32,
    },
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Udp(peer) => write!(f, "udp://{peer}"),
            Self::Serial { path, baud } => write!(f, "serial://{path}?baud={baud}"),
        }
    }
}

impl FromStr for Address {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        if let Some(peer) = text.strip_prefix("udp://") {
            let port = peer.rsplit_once(':').filter(|(host, _)| !host.is_empty());
            let port = port.and_then(|(_, port)| port.parse::<u16>().ok()).filter(|port| *port > 0);
            ensure!(
                port.is_some(),
                "the MAVLink address {text} needs a host and a port, as in udp://127.0.0.1:14550"
            );
            return Ok(Self::Udp(peer.into()));
        }
        let Some(port) = text.strip_prefix("serial://") else {
            bail!(
                "the MAVLink address {text} begins with neither udp:// nor serial://: write \
                 udp://127.0.0.1:14550 or serial:///dev/ttyUSB0?baud={BAUD}"
            );
        };
        let (path, baud) = match port.split_once('?') {
            None => (port, Some(BAUD)),
            Some((path, query)) => {
                (path, query.strip_prefix("baud=").and_then(|baud| baud.parse().ok()))
            }
        };
        match baud.filter(|baud| *baud > 0 && !path.is_empty()) {
            Some(baud) => Ok(Self::Serial { path: path.into(), baud }),
            None => bail!(
                "the MAVLink address {text} needs a device and a baud rate, as in \
                 serial:///dev/ttyUSB0?baud={BAUD}"
            ),
        }
    }
}

/// Why a message did not go out.
#[derive(Debug)]
pub enum Fault {
    /// There was no room for it in time.
    Blocked,
    /// Nobody listens at the address, or no network leads there.
    NoPeer(io::Error),
    /// The serial port has vanished.
    Gone(io::Error),
}

/// What the listening thread hears.
#[derive(Debug)]
pub enum Heard {
    Timesync {
        from: MavHeader,
        data: TIMESYNC_DATA,
        unix_ns: i64,
        at: Instant,
    },
    NoPeer(io::Error),
    /// The line with this number has vanished.
    Gone(u64, io::Error),
}

/// An open line. It ends its thread when it is dropped.
pub struct Line {
    wire: Wire,
    should_end: Arc<AtomicBool>,
    listener: Option<JoinHandle<()>>,
}

enum Wire {
    Udp(UdpSocket),
    Serial { port: TTYPort, writer: Box<dyn Write + Send> },
}

impl Line {
    /// Opens the address and listens there. The number tells this line from those that vanished before.
    ///
    /// Fails if a host is unknown or if a serial port is missing, forbidden or in use.
    pub fn open(address: &Address, number: u64, heard: &Sender<Heard>) -> anyhow::Result<Self> {
        let should_end = Arc::new(AtomicBool::new(false));
        let (wire, source) = match address {
            Address::Udp(peer) => open_udp(peer)?,
            Address::Serial { path, baud } => open_serial(path, *baud)?,
        };
        let listener = Listener {
            number,
            is_udp: matches!(wire, Wire::Udp(_)),
            should_end: should_end.clone(),
            heard: heard.clone(),
        };
        let listener = std::thread::Builder::new()
            .name("mavlink-in".into())
            .spawn(move || listener.listen(source))
            .context("MAVLink: no thread to listen")?;
        Ok(Self { wire, should_end, listener: Some(listener) })
    }

    /// Reports whether the port still holds what was sent before, so that more would only grow old in it.
    pub fn is_backed_up(&self) -> bool {
        match &self.wire {
            Wire::Udp(_) => false,
            Wire::Serial { port, .. } => port.bytes_to_write().is_ok_and(|bytes| bytes > BACKLOG),
        }
    }

    /// Sends one message, and waits at most 100 ms for room.
    pub fn send(&mut self, message: &[u8]) -> Result<(), Fault> {
        match &mut self.wire {
            Wire::Udp(socket) => send_datagram(socket, message),
            Wire::Serial { writer, .. } => write_in_time(writer, message),
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.should_end.store(true, Ordering::Relaxed);
        if let Wire::Serial { port, .. } = &self.wire {
            // Closing would wait for a blocked line, up to half a minute. A port that is gone cannot be cleared.
            let _ = port.clear(ClearBuffer::Output);
        }
        // It looks every 100 ms. If it panicked, that has been printed.
        let _ = self.listener.take().map(JoinHandle::join);
    }
}

type Opened = (Wire, Box<dyn Read + Send>);

fn open_udp(peer: &str) -> anyhow::Result<Opened> {
    let unknown = || format!("udp://{peer}: no such host; write its IP address, or check its name");
    let to = peer.to_socket_addrs().with_context(unknown)?.next().with_context(unknown)?;
    let any: SocketAddr = if to.is_ipv4() { ([0; 4], 0).into() } else { ([0_u16; 8], 0).into() };
    let open = || -> io::Result<_> {
        let socket = UdpSocket::bind(any)?;
        socket.set_broadcast(true)?;
        // Connected, so that answers come from this peer only, and so that the system tells if nobody is there.
        socket.connect(to)?;
        socket.set_write_timeout(Some(SENDING))?;
        socket.set_read_timeout(Some(LISTENING))?;
        Ok((socket.try_clone()?, socket))
    };
    let (socket, source) = open()
        .with_context(|| format!("udp://{peer}: no socket; check that a network leads to {to}"))?;
    Ok((Wire::Udp(socket), Box::new(Datagrams(source))))
}

fn open_serial(path: &str, baud: u32) -> anyhow::Result<Opened> {
    let open = || -> io::Result<_> {
        let writer = writer(path)?;
        let port = serialport::new(path, baud).timeout(LISTENING).open_native()?;
        let source = port.try_clone_native()?;
        Ok((Wire::Serial { port, writer }, Box::new(source) as _))
    };
    open().with_context(|| {
        format!(
            "serial://{path}: check the name (ls /dev/serial/by-id) and the rights (group dialout); if \
             another program has the port, let that one forward MAVLink to a UDP port"
        )
    })
}

/// Opens a port for writing that never waits for a blocked line, which `TTYPort` does.
fn writer(path: &str) -> io::Result<Box<dyn Write + Send>> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = std::fs::OpenOptions::new().write(true).custom_flags(flags).open(path)?;
    Ok(Box::new(file))
}

fn send_datagram(socket: &UdpSocket, message: &[u8]) -> Result<(), Fault> {
    match socket.send(message) {
        Ok(_) => Ok(()),
        Err(error) if is_waiting(&error) => Err(Fault::Blocked),
        Err(error) => {
            // Mostly the answer to the message before, so this one was not tried yet.
            let _ = socket.send(message);
            Err(Fault::NoPeer(error))
        }
    }
}

fn write_in_time(writer: &mut dyn Write, mut message: &[u8]) -> Result<(), Fault> {
    let start = Instant::now();
    while !message.is_empty() {
        match writer.write(message) {
            Ok(0) => return Err(Fault::Gone(io::ErrorKind::WriteZero.into())),
            Ok(written) => message = &message[written..],
            Err(error) if !is_waiting(&error) => return Err(Fault::Gone(error)),
            Err(_) if start.elapsed() > SENDING => return Err(Fault::Blocked),
            Err(_) => std::thread::sleep(Duration::from_millis(2)),
        }
    }
    Ok(())
}

fn is_waiting(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

struct Datagrams(UdpSocket);

impl Read for Datagrams {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.recv(bytes)
    }
}

struct Listener {
    number: u64,
    is_udp: bool,
    should_end: Arc<AtomicBool>,
    heard: Sender<Heard>,
}

impl Listener {
    fn listen(&self, source: Box<dyn Read + Send>) {
        let mut reader = MavlinkReader::new(source);
        while !self.should_end.load(Ordering::Relaxed) {
            match reader.read_any_message::<MavMessage>() {
                Ok((from, MavMessage::TIMESYNC(data))) => self.tell(Heard::Timesync {
                    from,
                    data,
                    unix_ns: unix_ns(),
                    at: Instant::now(),
                }),
                Ok(_) | Err(MessageReadError::Parse(_)) => {}
                Err(MessageReadError::Io(error)) if is_waiting(&error) => {}
                Err(MessageReadError::Io(error)) if self.is_udp => {
                    // Not an empty datagram.
                    if error.kind() != io::ErrorKind::UnexpectedEof {
                        self.tell(Heard::NoPeer(error));
                    }
                    // An error that stays must not take a processor.
                    std::thread::sleep(Duration::from_millis(2));
                }
                Err(MessageReadError::Io(error)) => {
                    return self.tell(Heard::Gone(self.number, error));
                }
            }
        }
    }

    /// Hands on what was heard. If nobody takes it, the sender has more urgent news: it ends, or its line is blocked.
    fn tell(&self, heard: Heard) {
        let _ = self.heard.try_send(heard);
    }
}

/// Returns Unix time in nanoseconds; 0 for a clock before 1970.
pub fn unix_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
