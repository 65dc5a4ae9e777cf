//! Answers to requests.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};

use super::exposition::{Reading, text};
use super::hosts::Hosts;
use super::process::Process;
use crate::core::text::on_one_line;
use crate::telemetry::progress::Health;

/// The text format that Prometheus, Grafana Agent, VictoriaMetrics and others read.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Source of the published figures; asked on the server's thread.
pub trait State: Send + Sync + 'static {
    /// Returns all figures.
    fn reading(&self) -> Reading;
    /// Returns the health of the run.
    fn health(&self) -> Health;
}

/// Answers any request.
pub fn answer<B>(request: &Request<B>, hosts: &Hosts, state: &dyn State) -> Response<Full<Bytes>> {
    if let Err((status, text)) = hosts.check(request) {
        // Not louder: anybody who calls could fill the logs.
        tracing::debug!("metrics: refused: {text}");
        return plain(status, format!("{}\n", on_one_line(&text)));
    }
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
