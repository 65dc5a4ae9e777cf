//! Addresses at which other machines reach the server, and such an address as a QR code.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use qrcodegen::{QrCode, QrCodeEcc};

/// Returns the addresses that reach a server, the one of the default route first. A server that listens on all
/// addresses of this machine is reached by each of them.
pub fn reachable(listening: SocketAddr) -> Vec<SocketAddr> {
    if !listening.ip().is_unspecified() {
        return vec![listening];
    }
    let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
    let own = interfaces.iter().map(if_addrs::Interface::ip);
    let mut own: Vec<IpAddr> = own.filter(|&ip| listening.is_ipv6() || ip.is_ipv4()).collect();
    // IPv6 addresses of one link need the name of the interface, which no browser takes.
    own.retain(|ip| !matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local()));
    if own.is_empty() {
        return vec![listening];
    }
    let routed = routed();
    own.sort_by_key(|ip| (Some(*ip) != routed, ip.is_loopback(), ip.is_ipv6(), *ip));
    own.dedup();
    own.into_iter().map(|ip| SocketAddr::new(ip, listening.port())).collect()
}

/// Returns the address of the default route. Connecting a UDP socket sends nothing; the address is one of those
/// for documentation (RFC 5737).
fn routed() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

/// Returns a text as a QR code of half blocks, two rows a line, black on white in any terminal. `None` if the text
/// is too long for one.
pub fn qr(text: &str) -> Option<String> {
    /// Modules of the white border that a code needs.
    const BORDER: i32 = 4;
    let code = QrCode::encode_text(text, QrCodeEcc::Low).ok()?;
    let range = -BORDER..code.size() + BORDER;
    let line = |y| {
        let block = |x| match (code.get_module(x, y), code.get_module(x, y + 1)) {
            (false, false) => ' ',
            (true, false) => '\u{2580}',
            (false, true) => '\u{2584}',
            (true, true) => '\u{2588}',
        };
        format!("\x1b[38;5;16;48;5;231m{}\x1b[0m", range.clone().map(block).collect::<String>())
    };
    Some(range.clone().step_by(2).map(line).collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_addresses_are_listed_if_the_server_listens_on_all() {
        let of = |text: &str| reachable(text.parse().unwrap());
        assert_eq!(of("192.0.2.7:90"), ["192.0.2.7:90".parse().unwrap()]);
        let all = of("0.0.0.0:90");
        assert!(all.contains(&"127.0.0.1:90".parse().unwrap()), "{all:?}");
        assert!(all.iter().all(|address| address.is_ipv4() && !address.ip().is_unspecified()));
        // A phone cannot use the first one if it is of the loopback interface.
        assert!(!all[0].ip().is_loopback() || all.iter().all(|one| one.ip().is_loopback()));
        assert!(of("[::]:90").contains(&"127.0.0.1:90".parse().unwrap()));
    }

    #[test]
    fn a_code_has_its_finders_and_a_white_border() {
        let code = qr("http://192.168.0.7:8080/?token=0123456789abcdef0123456789abcdef").unwrap();
        let lines: Vec<&str> = code.lines().collect();
        let modules =
            |line: &str| line.split('m').nth(1).unwrap().split('\x1b').next().unwrap().to_owned();
        let rows: Vec<Vec<char>> =
            lines.iter().map(|line| modules(line).chars().collect()).collect();
        // Version 4 of the code has 33 modules a side.
        assert!(rows.iter().all(|row| row.len() == 33 + 8), "{}", rows[0].len());
        assert!(rows[..2].iter().flatten().all(|&block| block == ' '));
        let finder: String = rows[2][4..11].iter().collect();
        assert_eq!(finder, "\u{2588}\u{2580}\u{2580}\u{2580}\u{2580}\u{2580}\u{2588}");
        assert_eq!(qr(&"x".repeat(5000)), None);
    }
}
