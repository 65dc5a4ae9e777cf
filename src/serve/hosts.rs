//! Check of the name by which a request calls this machine: a number, or one of its own names.
//!
//! A page in a browser can make its own name resolve to this machine (DNS rebinding) and then read
//! the metrics. The browser still sends that name. A number is safe, because no name was resolved.

use std::net::IpAddr;

use hyper::header::HOST;
use hyper::{Request, StatusCode, Version};

/// Names of this machine in addition to its own.
#[derive(Clone, Debug, Default)]
pub struct Hosts(Vec<String>);

impl Hosts {
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        Self(names.into_iter().map(|name| plain(&name)).collect())
    }

    /// Checks that a request calls this machine; else returns the status and text of the refusal.
    pub fn check<B>(&self, request: &Request<B>) -> Result<(), (StatusCode, String)> {
        let bad = |text: &str| Err((StatusCode::BAD_REQUEST, text.to_owned()));
        let headers: Vec<_> = request.headers().get_all(HOST).iter().collect();
        let called = match (request.uri().authority(), &headers[..]) {
            // A whole address in the first line comes before the header (RFC 9112, 3.2.2).
            (Some(authority), [] | [_]) => authority.as_str(),
            (None, [header]) => header.to_str().unwrap_or_default(),
            // Browsers have always named the host; scripts with HTTP 1.0 need not.
            (None, []) if request.version() <= Version::HTTP_10 => return Ok(()),
            (None, []) => return bad("the request has no Host"),
            (_, [_, _, ..]) => "",
        };
        match without_port(called) {
            None => bad("the request's Host cannot be understood"),
            Some(name) if self.include(name) => Ok(()),
            Some(name) => Err((
                StatusCode::MISDIRECTED_REQUEST,
                format!(
                    "this machine is not known as {name}; where it is, add that to `hosts` in [metrics]"
                ),
            )),
        }
    }

    pub fn are_called(&self, called: &str) -> bool {
        without_port(called).is_some_and(|name| self.include(name))
    }

    fn include(&self, name: &str) -> bool {
        let number = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        // An address of a link may name the interface of the caller.
        let number =
            number.map(|number| number.split_once('%').map_or(number, |(number, _)| number));
        let is_number = number.unwrap_or(name).parse::<IpAddr>().is_ok();
        let name = plain(name);
        is_number || name == "localhost" || self.0.contains(&name) || is_own(&name)
    }
}

/// Makes names comparable: capitals and the dot of the root at the end do not count.
fn plain(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

/// Returns the host of `host:port`, if it consists of valid characters.
fn without_port(called: &str) -> Option<&str> {
    let (host, port) = match called.rsplit_once(':') {
        Some(parts) if !called.ends_with(']') => parts,
        _ => (called, ""),
    };
    let letters = |c: char| c.is_ascii_alphanumeric() || ".-_[]:%".contains(c);
    let fits = !host.is_empty() && host.chars().all(letters);
    (fits && port.chars().all(|c| c.is_ascii_digit())).then_some(host)
}

/// Reports whether a name is this machine's own: whole, its first part, or that as mDNS has it. The
/// system is asked each time, because machines are renamed while they run.
fn is_own(name: &str) -> bool {
    let whole = plain(&gethostname::gethostname().to_string_lossy());
    let first = whole.split('.').next().unwrap_or_default();
    !whole.is_empty() && (name == whole || name.strip_suffix(".local").unwrap_or(name) == first)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(version: Version, uri: &str, hosts: &[&str]) -> Result<(), (StatusCode, String)> {
        let mut request = Request::builder().version(version).uri(uri);
        for host in hosts {
            request = request.header(HOST, *host);
        }
        Hosts::new(["Rig.example.org".to_owned()]).check(&request.body(()).unwrap())
    }

    #[test]
    fn numbers_and_own_names_are_ours() {
        let own = gethostname::gethostname().into_string().unwrap();
        for host in [
            "localhost",
            "LOCALHOST:9100",
            "localhost.",
            "127.0.0.1:80",
            "192.168.0.7",
            "[::1]:9100",
            "[fe80::1]",
            "[fe80::1%25eth0]:9100",
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
            let (status, text) = check(Version::HTTP_11, "/metrics", &[host]).unwrap_err();
            assert_eq!(status, StatusCode::MISDIRECTED_REQUEST, "{host}");
            assert!(text.contains("`hosts` in [metrics]"), "{text}");
        }
        let refusal = check(Version::HTTP_11, "http://evil.example/metrics", &["localhost"]);
        assert!(refusal.unwrap_err().1.contains("not known as evil.example;"));
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
        let (status, text) = check(Version::HTTP_11, "/metrics", &[]).unwrap_err();
        assert!(status == StatusCode::BAD_REQUEST && text.contains("no Host"), "{text}");
        for hosts in
            [&["localhost", "evil.example"][..], &[""], &["a b"], &["x:y"], &["@"], &[":80"]]
        {
            let (status, text) = check(Version::HTTP_11, "/", hosts).unwrap_err();
            assert_eq!(status, StatusCode::BAD_REQUEST, "{hosts:?}");
            assert!(text.contains("cannot be understood"), "{text}");
        }
    }
}
