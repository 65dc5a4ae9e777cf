//! `[metrics]`: metrics for Prometheus over HTTP.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use serde::Deserialize;

use stereod_core::settings::row::Plain::Real;
use stereod_core::settings::row::{Conflict, OUTPUT, Row};

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metrics {
    pub listen: String,
    pub hosts: String,
    pub unhealthy_s: f64,
}

pub(in crate::settings) const ROWS: &[Row] = &[
    Row::text("listen", "", check_address)
    .flag(OUTPUT, "--metrics", "PORT|ADDRESS:PORT")
    .help("Publish metrics for Prometheus over HTTP: a port of this machine, or ADDRESS:PORT.")
    .more(
        "/metrics has the metrics, /healthz a health check. A port (\"9100\") serves this machine alone, \
         \"0.0.0.0:9100\" every machine that can reach it.",
    ),
    Row::text("hosts", "", |text| {
        let letters = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
        match names(text).all(|name| name.chars().all(letters)) {
            true => Ok(()),
            false => Err("names without ports, such as `rig.example.org, rig2.example.org`".into()),
        }
    })
    .help("Names of this machine on the network, besides its own and localhost.")
    .more(
        "An example is \"rig.example.org, rig2\". A request for another name is refused (421), so that \
         no web page can read the metrics.",
    ),
    Row::real("unhealthy_s", Real(5.0), [0.1, 86_400.0])
        .help(
            "/healthz reports a failure (503) this many seconds after the last pair of a live source.",
        )
        .live(),
];

impl Metrics {
    /// Checks that the live page has another address.
    pub(in crate::settings) fn check(&self, page: Option<SocketAddr>) -> Result<(), Conflict> {
        let (Some(own), Some(page)) = (self.listen(), page) else { return Ok(()) };
        let is_same = own.ip() == page.ip()
            || own.is_ipv4() == page.is_ipv4()
                && (own.ip().is_unspecified() || page.ip().is_unspecified());
        match is_same && own.port() == page.port() && own.port() != 0 {
            true => Err(Conflict::new("listen", "another port than that of [serve]")),
            false => Ok(()),
        }
    }

    /// Returns the address to listen on. A port alone is one of this machine only.
    pub fn listen(&self) -> Option<SocketAddr> {
        address(&self.listen)
    }

    pub fn hosts(&self) -> Vec<String> {
        names(&self.hosts).map(str::to_owned).collect()
    }

    /// Returns the time after the last pair from which the run is unhealthy.
    pub fn unhealthy(&self) -> Duration {
        Duration::from_secs_f64(self.unhealthy_s)
    }
}

fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split([' ', ',']).filter(|name| !name.is_empty())
}

/// Parses an address to listen on. A port alone is one of this machine only.
pub(super) fn address(text: &str) -> Option<SocketAddr> {
    let port = text.strip_prefix(':').or_else(|| text.strip_prefix("localhost:")).unwrap_or(text);
    match port.parse() {
        // `+9100` is a number for Rust only.
        Ok(number) if port.starts_with(|first: char| first.is_ascii_digit()) => {
            Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), number))
        }
        _ => text.parse().ok().or_else(|| of_interface(text)),
    }
}

/// Parses an IPv6 address of a link with the name of its interface, `[fe80::1%eth0]:9100`. Only the system knows the
/// interface's number.
fn of_interface(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.strip_prefix('[')?.split_once("]:")?;
    let (number, _) = host.split_once('%')?;
    number.parse::<Ipv6Addr>().ok()?;
    (host, port.parse::<u16>().ok()?).to_socket_addrs().ok()?.next()
}

/// Fails with a message if a text is no address to listen on.
pub(super) fn check_address(text: &str) -> Result<(), String> {
    if text.is_empty() || address(text).is_some() {
        return Ok(());
    }
    let host = text.strip_prefix('[').and_then(|rest| Some(rest.split_once("]:")?.0));
    Err(match host.and_then(|host| host.split_once('%')) {
        Some((number, name)) if number.to_ascii_lowercase().starts_with("fe80:") => format!(
            "an IPv6 address with an interface of this machine, such as `[fe80::1%eth0]:9100`; there is no `{name}`"
        ),
        Some((number, _)) => {
            format!("`[{number}]` and a port: only addresses of a link, fe80::, have an interface")
        }
        None => {
            "a port such as `9100`, or a numeric address and a port such as `0.0.0.0:9100`".into()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use crate::settings::tests::refused;

    #[test]
    fn a_port_alone_is_of_this_machine() {
        for (text, expected) in [
            ("9100", "127.0.0.1:9100"),
            (":9100", "127.0.0.1:9100"),
            ("localhost:0", "127.0.0.1:0"),
            ("0.0.0.0:9100", "0.0.0.0:9100"),
            ("[::1]:80", "[::1]:80"),
        ] {
            let metrics = Metrics { listen: text.into(), ..Settings::default().metrics };
            assert_eq!(metrics.listen().unwrap().to_string(), expected);
            assert!(!refused("metrics", "listen", text));
        }
        assert_eq!(Settings::default().metrics.listen(), None);
        for wrong in ["x", "70000", "+9100", "-1", "0.0.0.0", "host:80", "::", " 9100"] {
            assert!(refused("metrics", "listen", wrong), "{wrong}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_address_of_a_link_names_its_interface() {
        let listen =
            |text: &str| Metrics { listen: text.into(), ..Settings::default().metrics }.listen();
        let of = |text: &str| listen(text).map(|address| address.to_string());
        // Each Linux has this interface, with the number 1.
        assert_eq!(of("[fe80::1%lo]:80").as_deref(), Some("[fe80::1%1]:80"));
        assert_eq!(of("[fe80::1%1]:80").as_deref(), Some("[fe80::1%1]:80"));
        for wrong in
            ["[fe80::1%nothing0]:80", "[fe80::1%lo]", "[fe80::1%lo]:x", "[x%lo]:80", "[%]:1"]
        {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        let error = check_address("[fe80::1%nothing0]:80").unwrap_err();
        assert!(error.contains("there is no `nothing0`"), "{error}");
        let error = check_address("[::1%lo]:80").unwrap_err();
        assert!(error.contains("`[::1]` and a port: only addresses of a link"), "{error}");
    }

    #[test]
    fn page_and_metrics_have_ports_of_their_own() {
        let check = |own: &str, page: &str| {
            let metrics = Metrics { listen: own.into(), ..Settings::default().metrics };
            metrics.check(address(page)).is_ok()
        };
        for (own, page) in [("9100", "9101"), ("0", "0"), ("9100", ""), ("", "9100")] {
            assert!(check(own, page), "{own} {page}");
        }
        for (own, page) in [("9100", "9100"), ("0.0.0.0:9100", "9100"), ("9100", "0.0.0.0:9100")] {
            assert!(!check(own, page), "{own} {page}");
        }
    }

    #[test]
    fn hosts_are_names() {
        let of = |hosts: &str| Metrics { hosts: hosts.into(), ..Settings::default().metrics };
        assert_eq!(of("").hosts(), Vec::<String>::new());
        assert_eq!(of("a.example,b  c-1.example").hosts(), ["a.example", "b", "c-1.example"]);
        assert!(!refused("metrics", "hosts", "a.example, b"));
        for wrong in ["http://a", "a:80", "*.a"] {
            assert!(refused("metrics", "hosts", wrong), "{wrong}");
        }
    }

    #[test]
    fn the_time_is_a_time() {
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(refused("metrics", "unhealthy_s", wrong));
        }
    }
}
