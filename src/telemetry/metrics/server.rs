//! The HTTP server: `/metrics` for Prometheus, `/healthz` for whoever restarts what hangs.

use std::convert::Infallible;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::{Semaphore, oneshot};

use super::{Process, Reading, text};

/// The text format that Prometheus, Grafana Agent, VictoriaMetrics and others read.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Whoever takes longer to send a request is cut off.
const REQUEST_TIME: Duration = Duration::from_secs(10);

/// A connection lasts no longer than this, whatever it does.
const CONNECTION_TIME: Duration = Duration::from_secs(120);

/// Connections at once; more wait.
const CONNECTIONS: usize = 32;

/// Whether pairs flow, and if not, why not.
pub type Health = Result<String, String>;

/// Where a server learns how things stand; asked on the server's thread.
pub trait State: Send + Sync + 'static {
    /// Everything that is measured.
    fn reading(&self) -> Reading;
    /// Whether pairs flow.
    fn health(&self) -> Health;
}

/// An address that is ours, at which nobody answers yet.
#[derive(Debug)]
pub struct Listener(TcpListener);

impl Listener {
    /// Takes the address.
    ///
    /// # Errors
    /// Where it cannot be had; the message says what to do.
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
    /// Starts to answer.
    ///
    /// # Errors
    /// Where the thread cannot be started.
    pub fn start(Listener(listener): Listener, state: Arc<dyn State>) -> Result<Self> {
        let address = listener.local_addr().context("a listening socket")?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (end, ended) = oneshot::channel();
        let serve = async move {
            match tokio::net::TcpListener::from_std(listener) {
                Ok(listener) => {
                    tokio::spawn(accept(listener, state));
                    // Either word: that it is over, or that nobody is left to say so.
                    let _ = ended.await;
                }
                Err(error) => tracing::error!("no metrics: {error}"),
            }
        };
        let thread = std::thread::Builder::new().name("metrics".into());
        let thread = thread.spawn(move || runtime.block_on(serve));
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

async fn accept(listener: tokio::net::TcpListener, state: Arc<dyn State>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of files, most likely: there may be some again later.
                tracing::debug!("metrics: {error}");
                tokio::time::sleep(Duration::from_millis(200)).await;
                continue;
            }
        };
        let state = state.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let answer = answer(&request, &*state);
                async move { Ok::<_, Infallible>(answer) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(REQUEST_TIME)
                .serve_connection(TokioIo::new(stream), service);
            // Clients that hang up in the middle are their own affair.
            let _ = tokio::time::timeout(CONNECTION_TIME, connection).await;
            drop(place);
        });
    }
}

fn answer(request: &Request<Incoming>, state: &dyn State) -> Response<Full<Bytes>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n".into());
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match request.uri().path() {
        "/metrics" => match text(state.reading(), Process::now()) {
            Ok(text) => {
                let mut response = plain(StatusCode::OK, text);
                let format = HeaderValue::from_static(OPEN_METRICS);
                response.headers_mut().insert(CONTENT_TYPE, format);
                response
            }
            Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
        },
        "/healthz" => match state.health() {
            Ok(how) => plain(StatusCode::OK, format!("ok: {how}\n")),
            Err(reason) => plain(StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")),
        },
        "/" => plain(StatusCode::OK, "stereod: /metrics, /healthz\n".into()),
        _ => plain(StatusCode::NOT_FOUND, "there are /metrics and /healthz\n".into()),
    }
}

fn plain(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let format = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, format);
    response
}
