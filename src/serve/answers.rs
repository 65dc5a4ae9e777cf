//! Answers to requests.

use std::borrow::Cow;
use std::sync::Arc;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, REFERRER_POLICY, RETRY_AFTER,
    SEC_WEBSOCKET_PROTOCOL, UPGRADE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
use hyper_tungstenite::HyperWebsocket;

use super::State;
use super::access::{Access, Rights, check_origin};
use super::hosts::Hosts;
use super::live::connection::{self, Visit};
use super::live::{Ending, Live, client, foxglove, recordings, snapshot};
use super::metrics::{Process, text};
use super::runs::{Place, Run, Runs};
use super::wire::{Body, Peer};
use crate::keys;
use stereod_io::text::on_one_line;

/// The text format that Prometheus, Grafana Agent, VictoriaMetrics and others read.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Sources of the page: itself alone.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self' blob: data:; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The files of the page: path, kind and content.
const PAGE: [(&str, &str, &str); 16] = [
    ("/", "text/html; charset=utf-8", include_str!("live/page.html")),
    ("/page.css", "text/css; charset=utf-8", include_str!("live/page.css")),
    ("/page.js", SCRIPT, include_str!("live/page.js")),
    ("/page/connection.js", SCRIPT, include_str!("live/page/connection.js")),
    ("/page/controls.js", SCRIPT, include_str!("live/page/controls.js")),
    ("/page/frames.js", SCRIPT, include_str!("live/page/frames.js")),
    ("/page/paint.js", SCRIPT, include_str!("live/page/paint.js")),
    ("/page/painters.js", SCRIPT, include_str!("live/page/painters.js")),
    ("/page/scan.js", SCRIPT, include_str!("live/page/scan.js")),
    ("/page/points.js", SCRIPT, include_str!("live/page/points.js")),
    ("/page/space.js", SCRIPT, include_str!("live/page/space.js")),
    ("/page/state.js", SCRIPT, include_str!("live/page/state.js")),
    ("/page/status.js", SCRIPT, include_str!("live/page/status.js")),
    ("/page/timeline.js", SCRIPT, include_str!("live/page/timeline.js")),
    ("/page/tuning.js", SCRIPT, include_str!("live/page/tuning.js")),
    ("/page/zones.js", SCRIPT, include_str!("live/page/zones.js")),
];

#[derive(Clone)]
pub struct Site {
    pub hosts: Arc<Hosts>,
    pub access: Access,
    pub runs: Runs,
}

pub async fn answer(mut request: Request<Incoming>, site: Site, peer: Peer) -> Response<Body> {
    let place = site.runs.place(&mut request);
    if let Err(refusal) = check(&request, &site) {
        return *refusal;
    }
    let path = request.uri().path();
    let rights = match site.access.rights(&request) {
        Ok(rights) => Some(rights),
        // The page itself holds no secrets, and a browser shows a page no reason for a refused WebSocket.
        Err(_) if is_page(path) || is_socket(path) => None,
        Err((status, text)) => return plain(status, format!("{text}\n")),
    };
    let Run { state, live } = match place {
        Place::Run(run) => run,
        Place::Away(_) if site.access.token.is_some() && is_page(path) => return of_page(path),
        Place::Away(reason) => return of_away(&mut request, &reason, rights, &site),
        Place::Root => return of_all(path, request.uri().query(), &site),
    };
    if let (Some(live), true) = (&live, is_socket(path)) {
        let visit = Visit { live: live.clone(), state, rights, peer };
        return upgrade(&mut request, |socket, is_foxglove| match is_foxglove {
            true => drop(tokio::spawn(foxglove::serve(socket, visit))),
            false => drop(tokio::spawn(client::serve(socket, visit))),
        });
    }
    if let (Some(live), Some(name)) = (&live, path.strip_prefix("/snapshot/")) {
        // They may hold secrets, such as addresses of cameras.
        return match (name, rights.is_some_and(|rights| rights.may_change)) {
            ("settings.toml", true) => {
                let text = state.settings();
                attached(with_kind(StatusCode::OK, "application/toml", text), "stereod.toml")
            }
            ("zones.toml", true) => match live.zones_file() {
                Ok(text) => {
                    attached(with_kind(StatusCode::OK, "application/toml", text), "zones.toml")
                }
                Err(error) => plain(StatusCode::CONFLICT, format!("{error}\n")),
            },
            ("settings.toml" | "zones.toml", false) => {
                plain(StatusCode::UNAUTHORIZED, "the settings need the token\n".into())
            }
            _ => snapshot_of(live, name).await,
        };
    }
    if let (Some(live), Some(name)) = (&live, path.strip_prefix("/recordings")) {
        return match rights.is_some_and(|rights| rights.may_change) {
            true => recordings_of(live, name).await,
            false => plain(StatusCode::UNAUTHORIZED, "recordings need the token\n".into()),
        };
    }
    respond(path, &*state, process(&site), live.is_some())
}

/// Returns the figures of the process, unless they stand above the rigs.
fn process(site: &Site) -> Option<Process> {
    if site.runs.names().len() == 1 { Process::now() } else { None }
}

/// Answers for a rig that waits or has failed. A browser shows its page only the reason of a WebSocket.
fn of_away(
    request: &mut Request<Incoming>,
    reason: &str,
    rights: Option<Rights>,
    site: &Site,
) -> Response<Body> {
    let path = request.uri().path();
    if path == "/metrics" {
        return of_metrics(text(Some((Arc::default(), false)), process(site)));
    }
    if site.access.token.is_none() || !is_socket(path) {
        return plain(StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n"));
    }
    let ending = match rights {
        Some(_) => Ending::away(reason.to_owned()),
        None => Ending::without_token(),
    };
    upgrade(request, |socket, _| drop(tokio::spawn(connection::refuse(socket, ending))))
}

/// The keys, which the window has, too.
const KEYS: &str = "/page/keys.js";

/// Returns kind and content of a file of the page.
fn page(path: &str) -> Option<(&'static str, Cow<'static, str>)> {
    if path == KEYS {
        return Some((SCRIPT, keys::script().into()));
    }
    let file = PAGE.iter().find(|(name, ..)| *name == path);
    file.map(|(_, kind, content)| (*kind, (*content).into()))
}

fn is_page(path: &str) -> bool {
    path == KEYS || PAGE.iter().any(|(name, ..)| *name == path)
}

const FOXGLOVE: &str = "/foxglove";

fn is_socket(path: &str) -> bool {
    matches!(path, "/live" | FOXGLOVE)
}

/// Begins the WebSocket of the page or of a program that speaks the Foxglove protocol, and says which.
fn upgrade(
    request: &mut Request<Incoming>,
    serve: impl FnOnce(HyperWebsocket, bool),
) -> Response<Body> {
    if !hyper_tungstenite::is_upgrade_request(request) {
        let text = "this address is for WebSockets: connect to it with ws:// in place of http://\n";
        let mut response = plain(StatusCode::UPGRADE_REQUIRED, text.into());
        response.headers_mut().insert(UPGRADE, HeaderValue::from_static("websocket"));
        return response;
    }
    let is_foxglove = request.uri().path() == FOXGLOVE;
    let offers = request.headers().get(SEC_WEBSOCKET_PROTOCOL).and_then(|it| it.to_str().ok());
    let offers = offers.unwrap_or_default().split(',').map(str::trim);
    let protocol = offers.filter_map(|it| foxglove::PROTOCOLS.iter().find(|p| **p == it)).next();
    if is_foxglove && protocol.is_none() {
        let [first, second] = foxglove::PROTOCOLS;
        let text = format!("this WebSocket needs the subprotocol {first} or {second}\n");
        return plain(StatusCode::BAD_REQUEST, text);
    }
    match hyper_tungstenite::upgrade(request, Some(connection::limits())) {
        Ok((response, socket)) => {
            let mut response =
                response.map(|body| body.map_err(|never| match never {}).boxed_unsync());
            if let Some(protocol) = protocol.filter(|_| is_foxglove) {
                let protocol = HeaderValue::from_static(protocol);
                response.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, protocol);
            }
            serve(socket, is_foxglove);
            response
        }
        Err(error) => plain(StatusCode::BAD_REQUEST, format!("{error}\n")),
    }
}

fn check<B>(request: &Request<B>, site: &Site) -> Result<(), Box<Response<Body>>> {
    // Foxglove and Lichtblick are pages of another origin. The token shows that the user wants them.
    let is_known = request.uri().path() == FOXGLOVE
        && site.access.rights(request).is_ok_and(|rights| rights.may_change);
    let origin = || if is_known { Ok(()) } else { check_origin(request, &site.hosts) };
    let checked = site.hosts.check(request).and_then(|()| origin());
    checked.map_err(|(status, text)| {
        // Not louder: anybody who calls could fill the logs.
        tracing::debug!("serve: refused: {text}");
        Box::new(plain(status, format!("{}\n", on_one_line(&text))))
    })?;
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let text = "this server answers GET and HEAD only\n";
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, text.into());
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return Err(Box::new(response));
    }
    Ok(())
}

fn respond(
    path: &str,
    state: &dyn State,
    process: Option<Process>,
    has_page: bool,
) -> Response<Body> {
    match path {
        "/metrics" => of_metrics(text(Some((state.status(), state.health().is_ok())), process)),
        "/healthz" => match state.health() {
            Ok(how) => plain(StatusCode::OK, format!("ok: {how}\n")),
            Err(reason) => plain(StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")),
        },
        _ if has_page && is_page(path) => of_page(path),
        "/" => plain(StatusCode::OK, "stereod: /metrics, /healthz\n".into()),
        _ if has_page => {
            let text = "there is nothing here; the page is at /, and there are /metrics, /healthz, /snapshot/ and \
                        /recordings\n";
            plain(StatusCode::NOT_FOUND, text.into())
        }
        _ => {
            let text = "there is nothing here; there are /metrics and /healthz\n";
            plain(StatusCode::NOT_FOUND, text.into())
        }
    }
}

fn of_metrics(text: Result<String, std::fmt::Error>) -> Response<Body> {
    match text {
        Ok(text) => with_kind(StatusCode::OK, OPEN_METRICS, text),
        Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
    }
}

/// Answers with a file of the page.
fn of_page(path: &str) -> Response<Body> {
    let (kind, content) = page(path).expect("the path is one of the page");
    let mut response = with_kind(StatusCode::OK, kind, content.into_owned());
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-cache"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Answers above the rigs: with the health of all, and the way to the page of the first.
fn of_all(path: &str, query: Option<&str>, site: &Site) -> Response<Body> {
    match path {
        "/healthz" => {
            let (healthy, text) = site.runs.health();
            let status = if healthy { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
            plain(status, text)
        }
        "/metrics" => of_metrics(text(None, Process::now())),
        _ => {
            let is_meant = |rig: &String| path == "/" || rig.strip_suffix('/') == Some(path);
            let meant = site.runs.paths().find(is_meant).filter(|_| site.access.token.is_some());
            let query = query.map(|query| format!("?{query}")).unwrap_or_default();
            if let Some(Ok(to)) = meant.map(|rig| HeaderValue::from_str(&(rig + &query))) {
                let mut response = plain(StatusCode::TEMPORARY_REDIRECT, String::new());
                response.headers_mut().insert(LOCATION, to);
                return response;
            }
            let rigs: String = site.runs.paths().map(|path| format!("{path}\n")).collect();
            plain(StatusCode::NOT_FOUND, format!("the rigs are at\n{rigs}"))
        }
    }
}

/// Answers with a file made of the newest pair.
async fn snapshot_of(live: &Live, name: &str) -> Response<Body> {
    match snapshot::of(live, name).await {
        Ok((kind, called, file)) => attached(with_kind(StatusCode::OK, kind, file), &called),
        Err(snapshot::Refusal::Unknown) => {
            plain(StatusCode::NOT_FOUND, "there is no such snapshot\n".into())
        }
        Err(snapshot::Refusal::Busy) => {
            let text = "others are making snapshots; try again\n".into();
            let mut response = plain(StatusCode::SERVICE_UNAVAILABLE, text);
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("5"));
            response
        }
        Err(snapshot::Refusal::Failed(reason)) => {
            plain(StatusCode::CONFLICT, format!("{reason}\n"))
        }
    }
}

/// Answers with the list of recordings, or one of them.
async fn recordings_of(live: &Live, name: &str) -> Response<Body> {
    if name.is_empty() {
        let list = recordings::list(live).await.unwrap_or_default();
        return with_kind(StatusCode::OK, "application/json", serde_json::json!(list).to_string());
    }
    match recordings::open(live, &format!("recordings{name}")).await {
        None => plain(StatusCode::NOT_FOUND, "this run has written no such file\n".into()),
        Some(Err(error)) => plain(StatusCode::CONFLICT, format!("{error}\n")),
        Some(Ok((bytes, content))) => {
            let mut response = with_kind(StatusCode::OK, "application/octet-stream", "");
            *response.body_mut() = content;
            let headers = response.headers_mut();
            headers.insert(CONTENT_LENGTH, bytes.into());
            headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
            response
        }
    }
}

/// Names the file as which a browser saves an answer.
fn attached(mut response: Response<Body>, name: &str) -> Response<Body> {
    if let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"{name}\"")) {
        response.headers_mut().insert(CONTENT_DISPOSITION, value);
    }
    response
}

fn plain(status: StatusCode, text: String) -> Response<Body> {
    with_kind(status, "text/plain; charset=utf-8", text)
}

fn with_kind(status: StatusCode, kind: &'static str, content: impl Into<Bytes>) -> Response<Body> {
    let content = Full::new(content.into()).map_err(|never| match never {});
    let mut response = Response::new(content.boxed_unsync());
    *response.status_mut() = status;
    for (name, value) in [
        (CONNECTION, "close"),
        (CONTENT_TYPE, kind),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CACHE_CONTROL, "no-store"),
        // Pages of others can use nothing of it, not even as an image.
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
