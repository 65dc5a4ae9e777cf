//! Membership in a ROS 2 graph by DDS (docs/ros2.md): the domain, and who is looked for.
//!
//! A process is one member, whatever it publishes and receives.

use std::net::Ipv4Addr;
use std::sync::Mutex;

use anyhow::{Context as _, Result, bail, ensure};
use ros2_client::dds::rustdds::{DomainParticipant, DomainParticipantBuilder};

use super::thread::locked;

/// The graph to join.
#[derive(Clone, Copy, Debug, Default)]
pub struct Graph {
    /// Domain; `None` for that of ROS_DOMAIN_ID.
    pub domain: Option<u8>,
    /// Whether others are looked for on this machine only; `None`: as the variables of ROS say.
    pub localhost: Option<bool>,
}

/// The graph of this process.
static CHOSEN: Mutex<Graph> = Mutex::new(Graph { domain: None, localhost: None });

/// This process as a member of it.
static MEMBER: Mutex<Option<Member>> = Mutex::new(None);

/// A member of a graph.
#[derive(Clone)]
pub struct Member {
    /// Endpoints are created with it.
    pub participant: DomainParticipant,
    /// Domain.
    pub domain: u8,
    /// Whether others are looked for on this machine only.
    pub localhost: bool,
}

impl Member {
    /// Returns the place of other members, for messages.
    pub fn reach(&self) -> &'static str {
        if self.localhost { "this machine" } else { "the networks of this machine" }
    }
}

/// Chooses the graph that [`join`] joins.
pub fn choose(graph: Graph) {
    *locked(&CHOSEN) = graph;
}

/// Joins the graph, once.
pub fn join() -> Result<Member> {
    let mut member = locked(&MEMBER);
    if let Some(member) = &*member {
        return Ok(member.clone());
    }
    let chosen = *locked(&CHOSEN);
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let domain = match (chosen.domain, variable("ROS_DOMAIN_ID")) {
        (Some(domain), _) => domain,
        (None, Some(text)) => domain_id(&text)?,
        (None, None) => 0,
    };
    let range = variable("ROS_AUTOMATIC_DISCOVERY_RANGE");
    let localhost = match chosen.localhost {
        Some(localhost) => localhost,
        None => is_localhost(variable("ROS_LOCALHOST_ONLY").as_deref(), range.as_deref())?,
    };
    let mut builder = DomainParticipantBuilder::new(domain.into());
    if localhost {
        builder = builder.with_only_networks([Ipv4Addr::LOCALHOST]);
    }
    let participant = builder.build().context("cannot join the ROS 2 graph")?;
    Ok(member.insert(Member { participant, domain, localhost }).clone())
}

/// Leaves the graph, which tells the other members at once.
pub fn leave() {
    locked(&MEMBER).take();
}

/// Parses the value of ROS_DOMAIN_ID.
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
