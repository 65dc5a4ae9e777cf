//! The HTTP server and its connections.

use std::convert::Infallible;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use futures_util::future::join_all;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::answers::{Site, answer};
use super::live::{self, Live};
use super::wire::{Observed, Peer};
use stereod_core::thread;

/// Time in which a client must send its request.
const REQUEST_TIME: Duration = Duration::from_secs(10);

/// Connections at once, without WebSockets. A further one takes the place of the oldest, so that nobody waits
/// for clients that do not send their request or do not take their answer.
const CONNECTIONS: usize = 128;

/// Largest request in bytes, without its body.
const LONGEST_REQUEST: usize = 16 << 10;

#[derive(Debug)]
pub struct Listener(TcpListener);

impl Listener {
    pub fn bind(address: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind(address).map_err(|error| explain(address, &error))?;
        listener.set_nonblocking(true).context("a listening socket")?;
        Ok(Self(listener))
    }

    /// Reports whether only programs of this machine can connect.
    pub fn is_loopback(&self) -> bool {
        self.0.local_addr().is_ok_and(|address| address.ip().is_loopback())
    }
}

/// A running server on its own thread; ends when dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub fn start(Listener(listener): Listener, site: Site) -> Result<Self> {
        let address = listener.local_addr().context("a listening socket")?;
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().max_blocking_threads(live::WORKERS).build()?;
        let (end, ended) = oneshot::channel();
        let serve = async move {
            match tokio::net::TcpListener::from_std(listener) {
                Ok(listener) => {
                    // The runtime ends its tasks when it is dropped.
                    let runs = site.runs.clone();
                    tokio::spawn(accept(listener, site));
                    let _ = ended.await;
                    join_all(runs.live().iter().map(Live::say_goodbye)).await;
                }
                Err(error) => tracing::error!("nothing is served: {error}"),
            }
        };
        let failed = |broken| tracing::error!("nothing is served any more: {broken}");
        let thread = thread::spawn("server", move || runtime.block_on(serve), failed);
        let thread = thread.context("cannot start the server's thread")?;
        Ok(Self { address, end: Some(end), thread: Some(thread) })
    }

    /// Returns the address that it listens on, with the port that the system chose if 0 was asked
    /// for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // If the thread has ended by itself, the send fails, and nothing is lost.
        let _ = self.end.take().map(|end| end.send(()));
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn explain(address: SocketAddr, error: &std::io::Error) -> anyhow::Error {
    let cure = match error.kind() {
        ErrorKind::AddrInUse => "another program listens there; choose another port",
        ErrorKind::PermissionDenied => "ports below 1024 are for root; choose a higher one",
        ErrorKind::AddrNotAvailable if address.is_ipv6() => {
            "this machine has no such address; [::] means all it has"
        }
        ErrorKind::AddrNotAvailable => "this machine has no such address; 0.0.0.0 means all it has",
        _ => return anyhow!("cannot listen on {address}: {error}"),
    };
    anyhow!("cannot listen on {address}: {cure}")
}

struct Open {
    task: AbortHandle,
    has_asked: Arc<AtomicBool>,
}

async fn accept(listener: tokio::net::TcpListener, site: Site) {
    let mut all: Vec<Open> = Vec::new();
    loop {
        match listener.accept().await {
            Ok((stream, address)) => {
                all.retain(|open| !open.task.is_finished());
                if all.len() >= CONNECTIONS {
                    // One that has not sent its request yet, if there is one.
                    let silent =
                        all.iter().position(|open| !open.has_asked.load(Ordering::Relaxed));
                    all.remove(silent.unwrap_or(0)).task.abort();
                }
                let has_asked = Arc::default();
                let (peer, stream) = Peer::watch(stream, address);
                let serve = serve(stream, peer, site.clone(), Arc::clone(&has_asked));
                all.push(Open { task: tokio::spawn(serve).abort_handle(), has_asked });
            }
            Err(error) => {
                // Out of files, most likely.
                tracing::debug!("server: {error}");
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// Answers one request. Answers close their connection, because an idle one would take the place of
/// others. One that becomes a WebSocket goes on by itself.
async fn serve(stream: Observed, peer: Peer, site: Site, has_asked: Arc<AtomicBool>) {
    let service = service_fn(|request: Request<Incoming>| {
        has_asked.store(true, Ordering::Relaxed);
        let (site, peer) = (site.clone(), peer.clone());
        async move { Ok::<_, Infallible>(answer(request, site, peer).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_TIME)
        .max_buf_size(LONGEST_REQUEST)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    // Clients that are gone or hang up are no trouble of ours. The work for them ends with them.
    tokio::select! {
        _ = connection => {}
        () = peer.gone() => {}
    }
}
