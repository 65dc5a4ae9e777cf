//! Explains why a server sends no stream: its host is unknown, nothing answers there, or its answer is an error.

use std::io::ErrorKind;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use gstreamer as gst;
use gstreamer::prelude::*;

use stereod_core::thread;

/// Longest search for a host, and longest wait for its answer.
const LONGEST: Duration = Duration::from_secs(2);

/// Returns the error that a server of HTTP or RTSP answered, with the cure.
pub(in crate::source::gst) fn refusal(error: &gst::message::Error) -> Option<String> {
    let details = error.details()?;
    let code = |protocol: &str| details.get::<u32>(&format!("{protocol}-status-code")).ok();
    let (protocol, code) = match code("http") {
        Some(code) => ("HTTP", code),
        None => ("RTSP", code("rtsp")?),
    };
    Some(format!("the server answers with the error {code} of {protocol}: {}", cure(code)))
}

fn cure(code: u32) -> &'static str {
    match code {
        401 | 407 => {
            "it wants a user and a password, or others than these; give them as \
             ://USER:PASSWORD@HOST (in them %40 for @, %3A for :, %2F for /)"
        }
        403 => "it refuses this address to this user or computer; check the server's settings",
        404 | 410 | 454 => "it has nothing at this path; check what follows the host",
        429 | 453 | 503 => "it is busy; many cameras serve one client at a time",
        461 => "it does not send by this transport; try \"rtspsrc location=ADDRESS protocols=tcp\"",
        500..600 => "it failed; its own log or a restart of the camera may help",
        _ => "check the address in another player",
    }
}

/// Returns the reason why a pipeline has no first frame: that of its server if it is reached by TCP and does not
/// answer, else the one that is known.
pub(in crate::source::gst) fn explained(pipeline: &gst::Pipeline, reason: String) -> String {
    let mut elements = pipeline.iterate_recurse().into_iter().flatten();
    let Some((host, port)) = elements.find_map(|element| address(&element)) else { return reason };
    match why_unreachable(&host, port) {
        Some(why) => why,
        // The element keeps the reason to itself.
        None if NOTHING_CAME.iter().any(|text| reason.contains(text)) => HUNG_UP.to_owned(),
        None => reason,
    }
}

/// Errors of GStreamer if a server ends the connection at once.
const NOTHING_CAME: [&str; 2] = ["Can't typefind stream", "Internal data stream error"];

const HUNG_UP: &str = "the server ended the connection without a picture; check that a browser shows this address, \
                       whether it begins with http: or https:, and that no other client is served; a certificate \
                       that is not trusted is accepted by \"souphttpsrc ssl-strict=false location=ADDRESS ! decodebin\"";

/// Returns host and port of the server that an element asks, unless it asks a proxy.
fn address(element: &gst::Element) -> Option<(String, u16)> {
    let text = |name: &str| element.property_value(name).get::<Option<String>>().ok().flatten();
    if element.factory()?.name() == "tcpclientsrc" {
        return Some((text("host")?, u16::try_from(element.property::<i32>("port")).ok()?));
    }
    let has_proxy = element.has_property("proxy") && text("proxy").is_some_and(|p| !p.is_empty());
    let handler = element.dynamic_cast_ref::<gst::URIHandler>().filter(|_| !has_proxy)?;
    of_uri(&handler.uri()?).filter(|_| handler.uri_type() == gst::URIType::Src)
}

/// Host and port of an address (RFC 3986, section 3.2).
fn of_uri(uri: &str) -> Option<(String, u16)> {
    let (scheme, rest) = uri.split_once("://")?;
    let usual = match scheme.to_ascii_lowercase().as_str() {
        "http" => 80,
        "https" | "rtmps" => 443,
        "rtmp" => 1935,
        scheme if scheme.starts_with("rtsps") => 322,
        scheme if scheme.starts_with("rtsp") => 554,
        _ => return None,
    };
    let authority = rest.split(['/', '?', '#']).next()?;
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    let (host, port) = match place.strip_prefix('[') {
        Some(v6) => v6.split_once(']')?,
        None => place.split_at(place.find(':').unwrap_or(place.len())),
    };
    let port = port.strip_prefix(':').filter(|port| !port.is_empty());
    let port = port.map_or(Some(usual), |port| port.parse().ok())?;
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

fn why_unreachable(host: &str, port: u16) -> Option<String> {
    let name = host.to_owned();
    let ask = move || {
        let addresses = (name.as_str(), port).to_socket_addrs().map_err(|error| (false, error))?;
        let mut last = Ok(());
        for address in addresses {
            match TcpStream::connect_timeout(&address, LONGEST) {
                Ok(_) => return Ok(()),
                Err(error) => last = Err((true, error)),
            }
        }
        last
    };
    let answer = thread::bounded("asking", ask, |waited| waited > LONGEST).ok()?;
    let shown = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let cure = "check the address, and that the camera or server runs and is in the same network";
    match answer {
        Some(Ok(())) => None,
        Some(Err((false, error))) => {
            Some(format!("the host {shown} is unknown ({error}); check its name"))
        }
        Some(Err((true, error))) if error.kind() == ErrorKind::ConnectionRefused => Some(format!(
            "{shown} refuses the connection: no program listens at port {port} there; check the port, and that the \
             camera's stream or the server is switched on"
        )),
        Some(Err((true, error))) => {
            Some(format!("nothing answers at {shown}:{port} ({error}); {cure}"))
        }
        None => Some(format!(
            "nothing answers at {shown}:{port} within {} s; {cure}",
            LONGEST.as_secs()
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_refused_connection_is_named() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(why_unreachable("127.0.0.1", port), None);
        drop(listener);
        let why = why_unreachable("127.0.0.1", port).unwrap();
        let expected =
            format!("127.0.0.1 refuses the connection: no program listens at port {port}");
        assert!(why.starts_with(&expected) && why.contains("; check the port"), "{why}");
    }

    #[test]
    fn the_server_is_that_of_the_element() {
        gst::init().unwrap();
        let of = |text: &str| address(&gst::parse::launch(text).unwrap());
        let server = |host: &str, port| Some((host.to_owned(), port));
        for (text, expected) in [
            ("souphttpsrc location=http://me:pw@cam:81/a?b=c", server("cam", 81)),
            ("souphttpsrc location=https://cam/a", server("cam", 443)),
            ("souphttpsrc location=http://[::1]:8080/a", server("::1", 8080)),
            ("souphttpsrc location=http://cam/a proxy=http://p:3128", None),
            ("rtspsrc location=rtsp://cam/a", server("cam", 554)),
            ("tcpclientsrc host=cam port=99", server("cam", 99)),
            ("udpsrc port=5000", None),
            ("filesrc location=a.mkv", None),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
    }

    #[test]
    fn each_answer_has_a_cure() {
        gst::init().unwrap();
        let told = |field: &str, code: u32| {
            let details = gst::Structure::builder("details").field(field, code).build();
            let message = gst::message::Error::builder(gst::ResourceError::Failed, "X")
                .details(details)
                .build();
            match message.view() {
                gst::MessageView::Error(error) => refusal(error),
                _ => None,
            }
        };
        for (field, code, words) in [
            ("http-status-code", 401, "error 401 of HTTP: it wants a user and a password"),
            ("http-status-code", 404, "error 404 of HTTP: it has nothing at this path"),
            ("http-status-code", 503, "one client at a time"),
            ("rtsp-status-code", 454, "error 454 of RTSP: it has nothing at this path"),
            ("rtsp-status-code", 403, "refuses this address"),
        ] {
            let told = told(field, code).unwrap();
            assert!(told.contains(words), "{told}");
        }
        assert_eq!(told("other", 401), None);
    }
}
