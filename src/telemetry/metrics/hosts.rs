//! By which names the server may be called.
//!
//! A page in somebody's browser can have its own name lead to this machine (DNS rebinding) and then
//! read what is served here as if it were its own. The browser still says by which name it calls:
//! one that is not ours is refused. A number is always ours, because no name led to it.

use std::net::IpAddr;

use hyper::header::HOST;
use hyper::{Request, StatusCode, Version};

/// The names that a server goes by.
#[derive(Clone, Debug, Default)]
pub struct Hosts {
    /// Beside this machine's own.
    configured: Vec<String>,
}

/// Why a request is not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It does not say whom it calls, though its version of HTTP demands that.
    Nameless,
    /// It does not say so in an intelligible way.
    Unintelligible,
    /// It calls somebody else.
    NotUs(String),
}

impl Refusal {
    /// The status that says so.
    pub fn status(&self) -> StatusCode {
        match self {
            Refusal::Nameless | Refusal::Unintelligible => StatusCode::BAD_REQUEST,
            Refusal::NotUs(_) => StatusCode::MISDIRECTED_REQUEST,
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::Nameless => f.write_str("the request has no Host"),
            Refusal::Unintelligible => f.write_str("the request's Host cannot be understood"),
            Refusal::NotUs(name) => write!(
                f,
                "this machine is not known as {name}; where it is, add that to `hosts` in [metrics]"
            ),
        }
    }
}

impl Hosts {
    /// These names, and this machine's own.
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        Self { configured: names.into_iter().map(|name| plain(&name)).collect() }
    }

    /// Checks that a request calls this server by one of its names.
    pub fn check<B>(&self, request: &Request<B>) -> Result<(), Refusal> {
        let mut headers = request.headers().get_all(HOST).iter();
        let header = headers.next();
        if headers.next().is_some() {
            return Err(Refusal::Unintelligible);
        }
        // A whole address in the first line comes before the header (RFC 9112, 3.2.2).
        let called = match (request.uri().authority(), header) {
            (Some(authority), _) => authority.as_str(),
            (None, Some(header)) => header.to_str().map_err(|_| Refusal::Unintelligible)?,
            // Browsers have always named the host; scripts with HTTP 1.0 need not.
            (None, None) if request.version() <= Version::HTTP_10 => return Ok(()),
            (None, None) => return Err(Refusal::Nameless),
        };
        let name = without_port(called).ok_or(Refusal::Unintelligible)?;
        if self.include(name) { Ok(()) } else { Err(Refusal::NotUs(name.to_owned())) }
    }

    fn include(&self, name: &str) -> bool {
        let number = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        if number.unwrap_or(name).parse::<IpAddr>().is_ok() {
            return true;
        }
        let name = plain(name);
        name == "localhost" || self.configured.contains(&name) || own_names().contains(&name)
    }
}

/// Names are the same in capitals, and with the dot of the root at their end.
fn plain(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

/// The host of `host:port`, where it has the letters of one.
fn without_port(called: &str) -> Option<&str> {
    let (host, port) = match called.rfind(':') {
        Some(at) if !called.ends_with(']') => (&called[..at], &called[at + 1..]),
        _ => (called, ""),
    };
    let letters = |c: char| c.is_ascii_alphanumeric() || ".-_[]:%".contains(c);
    let fits = !host.is_empty() && host.chars().all(letters);
    (fits && port.chars().all(|c| c.is_ascii_digit())).then_some(host)
}

/// The name that this machine has given itself: whole, its first part, and that as mDNS has it. Asked
/// anew each time, because machines are renamed while they run.
fn own_names() -> Vec<String> {
    let Some(name) = host_name() else { return Vec::new() };
    let whole = plain(&name);
    let first = whole.split('.').next().unwrap_or_default().to_owned();
    let local = format!("{first}.local");
    [whole, first, local].into_iter().filter(|name| !name.is_empty() && name != ".local").collect()
}

#[cfg(unix)]
fn host_name() -> Option<String> {
    let mut name = [0_u8; 256];
    // SAFETY: as many bytes as are said may be written; the last one stays zero.
    let told = unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let length = name.iter().position(|byte| *byte == 0)?;
    (told == 0).then(|| String::from_utf8_lossy(&name[..length]).into_owned())
}

#[cfg(not(unix))]
fn host_name() -> Option<String> {
    std::env::var("COMPUTERNAME").ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(version: Version, uri: &str, hosts: &[&str]) -> Result<(), Refusal> {
        let mut request = Request::builder().version(version).uri(uri);
        for host in hosts {
            request = request.header(HOST, *host);
        }
        Hosts::new(["Rig.example.org".to_owned()]).check(&request.body(()).unwrap())
    }

    #[test]
    fn numbers_and_own_names_are_ours() {
        let own = host_name().unwrap();
        for host in [
            "localhost",
            "LOCALHOST:9100",
            "localhost.",
            "127.0.0.1:80",
            "192.168.0.7",
            "[::1]:9100",
            "[fe80::1]",
            "rig.example.org:9100",
            "RIG.example.org.",
            &own,
            &format!("{own}:9100"),
        ] {
            assert_eq!(check(Version::HTTP_11, "/metrics", &[host]), Ok(()), "{host}");
        }
    }

    #[test]
    fn other_names_are_not() {
        for host in [
            "evil.example",
            "evil.example:9100",
            "rig.example.org.evil.example",
            "localhost.evil",
            "127.0.0.1.evil.example",
            "1.2.3",
            "x",
        ] {
            let refusal = check(Version::HTTP_11, "/metrics", &[host]).unwrap_err();
            assert_eq!(refusal.status(), StatusCode::MISDIRECTED_REQUEST, "{host}");
            assert!(refusal.to_string().contains("`hosts` in [metrics]"), "{refusal}");
        }
        let refusal = check(Version::HTTP_11, "http://evil.example/metrics", &["localhost"]);
        assert_eq!(refusal, Err(Refusal::NotUs("evil.example".into())));
        assert_eq!(check(Version::HTTP_11, "http://localhost:1/", &["evil.example"]), Ok(()));
    }

    proptest! {
        /// A name of somebody else may hold one of ours in any place.
        #[test]
        fn no_name_is_ours_for_what_stands_around_it(
            before in "[a-z0-9.-]{0,12}",
            after in "[a-z0-9.-]{0,12}",
            ours in prop::sample::select(vec!["localhost", "rig.example.org", "127.0.0.1"]),
        ) {
            let host = format!("{before}{ours}{after}");
            let known = host.parse::<IpAddr>().is_ok()
                || ours != "127.0.0.1" && host.strip_suffix('.').unwrap_or(&host) == ours;
            prop_assert_eq!(check(Version::HTTP_11, "/metrics", &[&host]).is_ok(), known, "{}", host);
        }

        #[test]
        fn any_text_is_a_name_or_refused(host in "[ -~]{0,60}") {
            let _ = check(Version::HTTP_11, "/metrics", &[&host]);
        }
    }

    #[test]
    fn what_says_nothing_or_nonsense_is_a_bad_request() {
        assert_eq!(check(Version::HTTP_10, "/metrics", &[]), Ok(()));
        assert_eq!(check(Version::HTTP_11, "/metrics", &[]), Err(Refusal::Nameless));
        for hosts in
            [&["localhost", "evil.example"][..], &[""], &["a b"], &["x:y"], &["@"], &[":80"]]
        {
            let refusal = check(Version::HTTP_11, "/", hosts);
            assert_eq!(refusal, Err(Refusal::Unintelligible), "{hosts:?}");
        }
    }
}
