//! A connection of a client with its signs of life, and the content of an answer.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};

use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::sleep;

use stereod_core::thread::locked;

/// Content of an answer: a text or file in memory, or a file that is read as it is sent.
pub type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// Time without a sign of life after which a client is gone.
pub const SILENCE: Duration = Duration::from_secs(30);

/// Bytes that the system takes for a connection before it has sent those before them. Otherwise megabytes
/// wait there on a slow link, which makes images old and hides whether the client still takes any.
#[cfg(target_os = "linux")]
const UNSENT: u32 = 64 << 10;

/// The other side of a connection. Clones share it.
#[derive(Clone)]
pub struct Peer {
    /// Its address; that of a proxy, if there is one.
    pub address: SocketAddr,
    lived: Arc<Mutex<Instant>>,
}

impl Peer {
    pub fn watch(stream: TcpStream, address: SocketAddr) -> (Self, Observed) {
        // Frames and their acknowledgements are single messages that must not wait for more.
        let _ = stream.set_nodelay(true);
        #[cfg(target_os = "linux")]
        let _ = socket2::SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT);
        let peer = Self { address, lived: Arc::new(Mutex::new(Instant::now())) };
        (peer.clone(), Observed { stream, peer, is_full: false })
    }

    /// Returns the time since the last sign of life.
    pub fn silence(&self) -> Duration {
        locked(&self.lived).elapsed()
    }

    /// Waits until the client has given no sign of life for [`SILENCE`].
    pub async fn gone(&self) {
        while let Some(left) = SILENCE.checked_sub(self.silence()).filter(|left| !left.is_zero()) {
            sleep(left).await;
        }
    }
}

/// A connection whose signs of life are noted: bytes from the client, and room for more after its buffers
/// were full, which shows that it has taken some. So a long message may take any time while it progresses.
pub struct Observed {
    stream: TcpStream,
    peer: Peer,
    is_full: bool,
}

impl Observed {
    fn lives(&self) {
        *locked(&self.peer.lived) = Instant::now();
    }

    fn written(&mut self, polled: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        let was_full = std::mem::replace(&mut self.is_full, polled.is_pending());
        if was_full && matches!(polled, Poll::Ready(Ok(1..))) {
            self.lives();
        }
        polled
    }
}

impl AsyncRead for Observed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.lives();
        }
        polled
    }
}

impl AsyncWrite for Observed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.written(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
