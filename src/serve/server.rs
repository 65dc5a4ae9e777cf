//! The HTTP server and its connections.

use std::convert::Infallible;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{sleep, timeout};

use super::answers::{Site, answer};
use crate::core::thread;

/// Time in which a client must send its request.
const REQUEST_TIME: Duration = Duration::from_secs(2);

/// Time in which a client must have sent its request and received the answer.
const CONNECTION_TIME: Duration = Duration::from_secs(10);

/// Connections at once; more wait for their turn, which the times above bound.
const CONNECTIONS: usize = 16;

/// Largest request in bytes, without its body.
const LONGEST_REQUEST: usize = 16 << 10;

/// A bound address that is not served yet.
#[derive(Debug)]
pub struct Listener(TcpListener);

impl Listener {
    /// Takes the address.
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
    /// Starts to serve a site.
    pub fn start(Listener(listener): Listener, site: Site) -> Result<Self> {
        let address = listener.local_addr().context("a listening socket")?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (end, ended) = oneshot::channel();
        let serve = async move {
            match tokio::net::TcpListener::from_std(listener) {
                Ok(listener) => {
                    // The runtime ends its tasks when it is dropped.
                    tokio::spawn(accept(listener, site));
                    let _ = ended.await;
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
        ErrorKind::AddrNotAvailable => "this machine has no such address; 0.0.0.0 means all it has",
        _ => return anyhow!("cannot listen on {address}: {error}"),
    };
    anyhow!("cannot listen on {address}: {cure}")
}

async fn accept(listener: tokio::net::TcpListener, site: Site) {
    let connections = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let permit = connections.clone().acquire_owned().await;
        match listener.accept().await {
            Ok((stream, _)) => {
                let serve = serve(stream, site.clone());
                tokio::spawn(async move {
                    // Clients that are too slow or hang up are no trouble of ours.
                    let _ = timeout(CONNECTION_TIME, serve).await;
                    drop(permit);
                });
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
async fn serve(stream: tokio::net::TcpStream, site: Site) -> hyper::Result<()> {
    // Frames and their acknowledgements are single messages that must not wait for more.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request: Request<Incoming>| {
        let site = site.clone();
        async move { Ok::<_, Infallible>(answer(request, site).await) }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_TIME)
        .max_buf_size(LONGEST_REQUEST)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await
}
