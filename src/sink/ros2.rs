//! Matched pairs as messages of a ROS 2 graph, without a ROS installation: DDS by the crates ros2-client
//! and RustDDS (docs/ros2.md).
//!
//! A message is encoded while its topic has a subscriber. The crates send on threads of their own and keep
//! the newest messages only, so that a slow or absent subscriber costs nothing.

use std::net::Ipv4Addr;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use ros2_client::dds::rustdds::policy::{Durability, History, Reliability, ResourceLimits};
use ros2_client::dds::rustdds::{
    DomainParticipant, DomainParticipantBuilder, Duration, QosPolicies, QosPolicyBuilder, TopicKind,
};
use ros2_client::{Context, MessageTypeName, Node, NodeName, NodeOptions, Publisher, WriteError};
use serde::ser::{Serialize, SerializeTuple, Serializer};

use super::{Losses, Sink, StreamInfo};
use crate::core::clock::CaptureClock;
use crate::core::frame::{Matched, StereoGeometry};
use crate::sink::messages::{Topic, chosen, stamp};

/// Topics if none are chosen, as far as the cameras are known.
const DEFAULT: &str = "left, left-jpeg, right, disparity, depth, depth-png, points";

/// Messages of a topic that are kept for subscribers.
const DEPTH: i32 = 5;

/// Bytes of the header before a message, which the crate writes itself.
const HEADER: usize = 4;

/// Name of the node.
const NODE: &str = "stereod";

/// Topics to publish, and their domain.
#[derive(Clone, Debug)]
pub struct Ros2Options {
    /// Namespace with a slash before each of its names; empty for none.
    pub namespace: String,
    /// Names of the topics, separated by commas; empty for the default.
    pub topics: String,
    /// Domain of DDS; `None` for that of ROS_DOMAIN_ID.
    pub domain: Option<u8>,
    /// Whether subscribers are looked for on this machine only; `None`: as the variables of ROS say.
    pub localhost: Option<bool>,
    /// Whether messages that a subscriber has missed are repeated.
    pub reliable: bool,
}

/// Publishes pairs.
pub struct Ros2Sink {
    name: String,
    participant: DomainParticipant,
    /// Tells the graph of the node while it lives.
    _node: Node,
    published: Vec<Published>,
    clock: Option<CaptureClock>,
    /// The cameras of the last transform.
    geometry: Option<StereoGeometry>,
    losses: Losses,
}

/// A topic of the graph.
struct Published {
    topic: &'static Topic,
    /// Its name in DDS.
    name: String,
    publisher: Publisher<Encoded>,
}

/// A message with its header. The crate serialises it as its bytes.
struct Encoded(Vec<u8>);

impl Serialize for Encoded {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // A tuple has no length before it. Eight bytes at once are as many calls fewer, and aligned.
        let (words, rest) = self.0[HEADER..].as_chunks();
        let mut bytes = serializer.serialize_tuple(words.len() + rest.len())?;
        words.iter().try_for_each(|word| bytes.serialize_element(&u64::from_le_bytes(*word)))?;
        rest.iter().try_for_each(|byte| bytes.serialize_element(byte))?;
        bytes.end()
    }
}

impl Ros2Sink {
    /// Joins the graph. Fails if a chosen topic needs cameras that are not known, or without a network.
    pub fn open(options: &Ros2Options, stream: &StreamInfo) -> Result<Self> {
        let topics = chosen(&options.topics, DEFAULT, stream)?;
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let domain = match (options.domain, variable("ROS_DOMAIN_ID")) {
            (Some(domain), _) => domain,
            (None, Some(text)) => domain_id(&text)?,
            (None, None) => 0,
        };
        let range = variable("ROS_AUTOMATIC_DISCOVERY_RANGE");
        let localhost = match options.localhost {
            Some(localhost) => localhost,
            None => is_localhost(variable("ROS_LOCALHOST_ONLY").as_deref(), range.as_deref())?,
        };
        let mut builder = DomainParticipantBuilder::new(domain.into());
        if localhost {
            builder = builder.with_only_networks([Ipv4Addr::LOCALHOST]);
        }
        let failed = "cannot join the ROS 2 graph";
        let participant = builder.build().context(failed)?;
        let context = Context::from_domain_participant(participant.clone()).context(failed)?;
        let namespace = if options.namespace.is_empty() { "/" } else { &options.namespace };
        let name = NodeName::new(namespace, NODE)?;
        let silent = NodeOptions::new().enable_rosout(false);
        let mut node = context.new_node(name, silent).context(failed)?;
        let mut publish = |topic: &'static Topic| -> Result<Published> {
            let (package, kind) = topic.schema.split_once('/').expect("a type has a package");
            // The transforms of all nodes are on one topic.
            let namespace = if topic.is_static() { "" } else { &options.namespace };
            let name = format!("rt{namespace}{}", topic.path);
            let kind = MessageTypeName::new(package, kind).dds_msg_type();
            let qos = quality(topic, options.reliable);
            let dds = participant.create_topic(name.clone(), kind, &qos, TopicKind::NoKey)?;
            let publisher = node.create_publisher(&dds, None)?;
            Ok(Published { topic, name, publisher })
        };
        let published = topics.into_iter().map(&mut publish).collect::<Result<_>>();
        let published = published.context(failed)?;
        let place = if localhost { "this machine" } else { "the networks of this machine" };
        tracing::info!(
            "ROS 2: publishing below {namespace} in domain {domain}, for subscribers on {place}; the \
             ports themselves are open on all interfaces (docs/ros2.md)"
        );
        let (room, message) = (receive_buffer(), 4 * stream.size.0 * stream.size.1);
        if let Some(room) = room.filter(|room| *room < message) {
            tracing::warn!(
                "ROS 2: a disparity map has {message} bytes, but a subscriber on this machine has room for \
                 {room} unless it asks for more, and loses what it has no room for; set \
                 net.core.rmem_default (docs/ros2.md)"
            );
        }
        Ok(Self {
            name: format!("ROS 2 {namespace}"),
            participant,
            _node: node,
            published,
            clock: stream.clock,
            geometry: None,
            losses: Losses::default(),
        })
    }
}

impl Sink for Ros2Sink {
    fn name(&self) -> &str {
        &self.name
    }

    fn newest_only(&self) -> bool {
        true
    }

    fn consume(&mut self, frame: &Arc<Matched>) -> Result<()> {
        let stamp = stamp(self.clock, frame.pair.timestamp);
        let readers = self.participant.discovered_readers();
        let has_moved = self.geometry != frame.geometry;
        let wanted = |published: &&Published| match published.topic.is_static() {
            // It is kept for subscribers to come.
            true => has_moved,
            false => readers
                .iter()
                .any(|reader| *reader.subscription_topic_data.topic_name() == published.name),
        };
        let mut is_lost = false;
        for Published { topic, publisher, .. } in self.published.iter().filter(wanted) {
            if !topic.is_in(frame) {
                continue;
            }
            match publisher.publish(Encoded(topic.encode(frame, stamp)?)) {
                Ok(()) => {}
                Err(WriteError::WouldBlock { .. }) => is_lost = true,
                Err(error) => bail!("cannot publish {}: {}", topic.path, error.forget_data()),
            }
        }
        self.geometry = frame.geometry;
        self.losses.busy += u64::from(is_lost);
        Ok(())
    }

    fn losses(&self) -> Losses {
        self.losses
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Returns the guarantees of a topic: as for data of sensors, unless it is static or reliable.
fn quality(topic: &Topic, reliable: bool) -> QosPolicies {
    // Without a limit the crate keeps thousands of messages for a reliable subscriber that stalls.
    let limits =
        ResourceLimits { max_samples: DEPTH, max_instances: 1, max_samples_per_instance: DEPTH };
    let durability =
        if topic.is_static() { Durability::TransientLocal } else { Durability::Volatile };
    let reliability = match reliable || topic.is_static() {
        true => Reliability::Reliable { max_blocking_time: Duration::ZERO },
        false => Reliability::BestEffort,
    };
    QosPolicyBuilder::new()
        .reliability(reliability)
        .durability(durability)
        .history(History::KeepLast { depth: if topic.is_static() { 1 } else { DEPTH } })
        .resource_limits(limits)
        .build()
}

/// Returns the bytes that a socket of this machine takes in before a program reads them; `None` if the
/// system does not tell.
fn receive_buffer() -> Option<usize> {
    std::fs::read_to_string("/proc/sys/net/core/rmem_default").ok()?.trim().parse().ok()
}

/// Parses the value of ROS_DOMAIN_ID.
fn domain_id(text: &str) -> Result<u8> {
    let number = text.parse().ok().filter(|number| *number <= 232);
    number.with_context(|| format!("ROS_DOMAIN_ID is `{text}`; give a number from 0 to 232"))
}

/// Reports whether subscribers are looked for on this machine only, by the values of ROS_LOCALHOST_ONLY
/// and ROS_AUTOMATIC_DISCOVERY_RANGE. The first has precedence, as in ROS.
fn is_localhost(only: Option<&str>, range: Option<&str>) -> Result<bool> {
    match (only, range) {
        (Some("1"), _) => Ok(true),
        (Some("0"), None) => Ok(false),
        (_, None | Some("LOCALHOST")) => Ok(true),
        (_, Some("SUBNET" | "SYSTEM_DEFAULT")) => Ok(false),
        (_, Some(range)) => {
            ensure!(
                range != "OFF",
                "ROS_AUTOMATIC_DISCOVERY_RANGE is OFF, so nobody can be found to publish to; set it to \
                 LOCALHOST or SUBNET, or [ros2] discovery"
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
