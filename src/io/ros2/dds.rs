//! Membership in a ROS 2 graph by DDS (docs/ros2.md): the domain, and who is looked for.
//!
//! A process is one member, whatever it publishes and receives.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::{Mutex, Once};

use anyhow::{Context as _, Result, bail, ensure};
use ros2_client::dds::rustdds::{DomainParticipant, DomainParticipantBuilder};

use stereod_core::thread::locked;

/// Bytes of room that a socket for messages is given, if the system allows that much.
const RECEIVE_ROOM: usize = 32 << 20;

#[derive(Clone, Debug)]
pub struct Graph {
    /// Domain; `None` for that of ROS_DOMAIN_ID.
    pub domain: Option<u8>,
    /// Networks in which others are looked for; `None`: as the variables of ROS say.
    pub reach: Option<Reach>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    Localhost,
    Subnet,
    Interfaces(Vec<Ipv4Addr>),
}

impl Reach {
    pub fn name(&self) -> String {
        match self {
            Reach::Localhost => "this machine".into(),
            Reach::Subnet => "the networks of this machine".into(),
            Reach::Interfaces(addresses) => {
                let addresses: Vec<String> = addresses.iter().map(Ipv4Addr::to_string).collect();
                format!("the networks of {}", addresses.join(", "))
            }
        }
    }
}

static CHOSEN: Mutex<Graph> = Mutex::new(Graph { domain: None, reach: None });

/// This process as a member of it.
static MEMBER: Mutex<Option<Member>> = Mutex::new(None);

#[derive(Clone)]
pub struct Member {
    pub participant: DomainParticipant,
    pub domain: u8,
    pub reach: Reach,
}

/// Chooses the graph that [`join`] joins.
pub fn choose(graph: Graph) {
    *locked(&CHOSEN) = graph;
}

/// Returns the domain and the networks of the graph that [`join`] joins. Fails if a variable of ROS has a wrong value.
pub fn chosen() -> Result<(u8, Reach)> {
    let chosen = locked(&CHOSEN).clone();
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let domain = match (chosen.domain, variable("ROS_DOMAIN_ID")) {
        (Some(domain), _) => domain,
        (None, Some(text)) => domain_id(&text)?,
        (None, None) => 0,
    };
    let range = variable("ROS_AUTOMATIC_DISCOVERY_RANGE");
    let reach = match chosen.reach {
        Some(reach) => reach,
        None => match is_localhost(variable("ROS_LOCALHOST_ONLY").as_deref(), range.as_deref())? {
            true => Reach::Localhost,
            false => Reach::Subnet,
        },
    };
    Ok((domain, reach))
}

/// Joins the graph, once.
pub fn join() -> Result<Member> {
    let mut member = locked(&MEMBER);
    if let Some(member) = &*member {
        return Ok(member.clone());
    }
    let (domain, reach) = chosen()?;
    if std::env::var_os("ROS_STATIC_PEERS").is_some_and(|peers| !peers.is_empty()) {
        tracing::warn!(
            "ROS 2: ROS_STATIC_PEERS is not followed: set it on the other machines, with the address of \
             this one (docs/ros2.md)"
        );
    }
    let mut builder = DomainParticipantBuilder::new(domain.into());
    builder = builder.socket_receive_buffer_size(RECEIVE_ROOM);
    builder = match &reach {
        Reach::Subnet => builder,
        Reach::Localhost => builder.with_only_networks([Ipv4Addr::LOCALHOST]),
        Reach::Interfaces(addresses) => {
            addresses.iter().try_for_each(|address| is_own(*address))?;
            builder.with_only_networks(addresses.iter().copied())
        }
    };
    let participant = builder.build().context("cannot join the ROS 2 graph")?;
    Ok(member.insert(Member { participant, domain, reach }).clone())
}

/// Fails if no interface of this machine has the address.
fn is_own(address: Ipv4Addr) -> Result<()> {
    let bound = UdpSocket::bind((address, 0));
    bound.map(drop).with_context(|| {
        format!(
            "no interface has the address {address} of [ros2] discovery; `ip address` lists them"
        )
    })
}

/// Warns once if sockets have less room for messages than they are given where the system allows it.
pub fn warn_of_little_room() {
    static TOLD: Once = Once::new();
    let Some(room) = limit("rmem_max").filter(|room| *room < RECEIVE_ROOM) else { return };
    TOLD.call_once(|| {
        tracing::warn!(
            "ROS 2: the system gives a socket room for {room} bytes of the {RECEIVE_ROOM} that were asked \
             for, and large images are lost: `sysctl -w net.core.rmem_max={RECEIVE_ROOM}` (docs/ros2.md)"
        );
    });
}

/// Returns a limit of the system for sockets in bytes, such as `rmem_default`; `None` if it does not tell.
pub fn limit(name: &str) -> Option<usize> {
    std::fs::read_to_string(format!("/proc/sys/net/core/{name}")).ok()?.trim().parse().ok()
}

/// Counts the UDP packets that were lost on this machine because a socket had no room. They may be those of
/// any program.
#[derive(Debug)]
pub struct PacketLoss {
    before: u64,
    is_told: bool,
}

impl PacketLoss {
    pub fn start() -> Self {
        Self { before: lost_packets(), is_told: false }
    }

    /// Returns the packets that were lost since the last call, and warns of the first ones.
    pub fn since_last(&mut self) -> u64 {
        let now = lost_packets();
        let lost = now.saturating_sub(std::mem::replace(&mut self.before, now));
        if lost > 0 && !std::mem::replace(&mut self.is_told, true) {
            tracing::warn!(
                "ROS 2: {lost} UDP packets were lost on this machine because the socket that they were for \
                 had no room, and with each of them a message: docs/ros2.md says how to give it more"
            );
        }
        lost
    }
}

/// Returns the packets that were lost since the system started; 0 if it does not tell.
fn lost_packets() -> u64 {
    std::fs::read_to_string("/proc/net/snmp")
        .ok()
        .and_then(|text| receive_errors(&text))
        .unwrap_or(0)
}

/// Finds the count of UDP packets without room in the text of /proc/net/snmp: a line of names, then one of
/// numbers.
fn receive_errors(text: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with("Udp: "));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let mut columns = names.split(' ').zip(numbers.split(' '));
    columns.find(|(name, _)| *name == "RcvbufErrors")?.1.parse().ok()
}

/// Leaves the graph, which tells the other members at once.
pub fn leave() {
    locked(&MEMBER).take();
}

fn domain_id(text: &str) -> Result<u8> {
    let number = text.parse().ok().filter(|number| *number <= 232);
    number.with_context(|| format!("ROS_DOMAIN_ID is `{text}`; give a number from 0 to 232"))
}

/// Reports whether others are looked for on this machine only, by the values of ROS_LOCALHOST_ONLY and
/// ROS_AUTOMATIC_DISCOVERY_RANGE. The first has precedence, as in ROS.
fn is_localhost(only: Option<&str>, range: Option<&str>) -> Result<bool> {
    match (only, range) {
        (Some("1"), _) => Ok(true),
        (Some("0"), None) => Ok(false),
        (_, None | Some("LOCALHOST")) => Ok(true),
        (_, Some("SUBNET" | "SYSTEM_DEFAULT")) => Ok(false),
        (_, Some(range)) => {
            ensure!(
                range != "OFF",
                "ROS_AUTOMATIC_DISCOVERY_RANGE is OFF, so nobody can be found; set it to LOCALHOST or \
                 SUBNET, or [ros2] discovery"
            );
            bail!("ROS_AUTOMATIC_DISCOVERY_RANGE is `{range}`; give LOCALHOST or SUBNET")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_without_room_are_counted() {
        let text = "Ip: Forwarding\nIp: 1\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors \
                    SndbufErrors\nUdp: 5 6 7 8 42 9\nUdpLite: InDatagrams\nUdpLite: 0\n";
        assert_eq!(receive_errors(text), Some(42));
        assert_eq!(receive_errors("Udp: InDatagrams\nUdp: 5\n"), None);
        assert_eq!(receive_errors(""), None);
    }

    #[test]
    fn other_machines_addresses_are_refused() {
        is_own(Ipv4Addr::LOCALHOST).unwrap();
        // 192.0.2.0/24 is for documentation (RFC 5737).
        let error = is_own(Ipv4Addr::new(192, 0, 2, 7)).unwrap_err().to_string();
        assert!(error.contains("192.0.2.7"), "{error}");
    }

    #[test]
    fn the_variables_of_ros_are_understood() {
        assert_eq!((domain_id("0").unwrap(), domain_id("232").unwrap()), (0, 232));
        for wrong in ["233", "-1", "x", "1 "] {
            assert!(domain_id(wrong).is_err(), "{wrong}");
        }
        assert!(is_localhost(None, None).unwrap());
        assert!(is_localhost(None, Some("LOCALHOST")).unwrap());
        assert!(is_localhost(Some("1"), Some("SUBNET")).unwrap());
        assert!(!is_localhost(Some("0"), None).unwrap());
        assert!(!is_localhost(None, Some("SUBNET")).unwrap());
        assert!(is_localhost(None, Some("OFF")).is_err());
        assert!(is_localhost(None, Some("subnet")).is_err());
    }
}
