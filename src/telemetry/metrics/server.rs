//! The HTTP server: `/metrics` for Prometheus, `/healthz` for whoever restarts what hangs.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::oneshot;

use super::answers::{State, answer};
use super::connections::{Connections, LastUse};
use super::hosts::Hosts;
use crate::thread;

/// Whoever takes longer to send a request is cut off.
const REQUEST_TIME: Duration = Duration::from_secs(10);

/// A connection that nothing is asked over for so long, or that takes the answer so slowly, is closed.
const IDLE: Duration = Duration::from_secs(15);

/// Connections at once; one more takes the place of the one that has been idle for longest.
const CONNECTIONS: usize = 64;

/// A request without its body has no more bytes than this.
const LONGEST_REQUEST: usize = 16 << 10;

/// An address that is ours, at which nobody answers yet.
#[derive(Debug)]
pub struct Listener(TcpListener);

impl Listener {
    /// Takes the address.
    pub fn bind(address: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind(address).map_err(|error| explain(address, &error))?;
        listener.set_nonblocking(true).context("a listening socket")?;
        Ok(Self(listener))
    }
}

/// A server at work, on a thread of its own; ends when dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts to answer those who call it by one of its names.
    pub fn start(
        Listener(listener): Listener,
        hosts: Hosts,
        state: Arc<dyn State>,
    ) -> Result<Self> {
        let address = listener.local_addr().context("a listening socket")?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (end, ended) = oneshot::channel();
        let serve = async move {
            match tokio::net::TcpListener::from_std(listener) {
                // Either word ends it: that it is over, or that nobody is left to say so.
                Ok(listener) => either(accept(listener, Arc::new(hosts), state), ended).await,
                Err(error) => tracing::error!("no metrics: {error}"),
            }
        };
        let failed = |broken| tracing::error!("no metrics and no /healthz any more: {broken}");
        let thread = thread::spawn("metrics", move || runtime.block_on(serve), failed);
        let thread = thread.context("cannot start the metrics thread")?;
        Ok(Self { address, end: Some(end), thread: Some(thread) })
    }

    /// Where it listens; the port is the one that the system chose where 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Where the thread has ended by itself, nobody hears this, and nothing is lost.
        let _ = self.end.take().map(|end| end.send(()));
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn explain(address: SocketAddr, error: &std::io::Error) -> anyhow::Error {
    let cure = match error.kind() {
        ErrorKind::AddrInUse => "another program listens there; choose another port",
        ErrorKind::PermissionDenied => "ports below 1024 are for root; choose a higher one",
        ErrorKind::AddrNotAvailable => "this machine has no such address; 0.0.0.0 means all it has",
        _ => return anyhow!("cannot listen on {address} for metrics: {error}"),
    };
    anyhow!("cannot listen on {address} for metrics: {cure}")
}

async fn accept(listener: tokio::net::TcpListener, hosts: Arc<Hosts>, state: Arc<dyn State>) {
    let mut connections = Connections::new(CONNECTIONS);
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let last_use = LastUse::now();
                let serve = serve(stream, last_use.clone(), hosts.clone(), state.clone());
                connections.add(last_use, tokio::spawn(serve).abort_handle());
                // What it asks is heard before another one can take its place.
                tokio::task::yield_now().await;
            }
            Err(error) => {
                // Out of files, most likely; one of ours may be the one that is missing.
                tracing::debug!("metrics: {error}");
                connections.close_idlest();
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// Answers what comes over one connection, until it is closed, idle or too slow.
async fn serve(
    stream: tokio::net::TcpStream,
    last_use: LastUse,
    hosts: Arc<Hosts>,
    state: Arc<dyn State>,
) {
    let used = last_use.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        used.renew();
        let answer = answer(&request, &hosts, &*state);
        async move { Ok::<_, Infallible>(answer) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_TIME)
        .max_buf_size(LONGEST_REQUEST)
        .serve_connection(TokioIo::new(stream), service);
    // Clients that hang up in the middle are their own affair.
    either(connection, last_use.idle_for(IDLE)).await;
}

/// Waits until one of two has come to its end, and drops both.
async fn either(one: impl Future, other: impl Future) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|context| match (one.as_mut().poll(context), other.as_mut().poll(context)) {
        (Poll::Pending, Poll::Pending) => Poll::Pending,
        _ => Poll::Ready(()),
    })
    .await;
}
