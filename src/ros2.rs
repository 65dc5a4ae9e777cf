//! Matched pairs as messages of a ROS 2 graph, without a ROS installation: DDS by the crates ros2-client
//! and RustDDS (docs/ros2.md).
//!
//! A message is encoded while its topic has a subscriber. The crates send on threads of their own and keep
//! the newest messages only, so that a slow or absent subscriber costs nothing.

mod detections;
mod node;
mod services;

use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use ros2_client::dds::rustdds::policy::{Durability, History, Reliability, ResourceLimits};
use ros2_client::dds::rustdds::{
    DomainParticipant, Duration, QosPolicies, QosPolicyBuilder, RTPSEntity, TopicKind,
};
use ros2_client::{Context, MessageTypeName, NodeName, NodeOptions, Publisher, WriteError};
use serde::ser::{Serialize, SerializeTuple, Serializer};

pub use detections::subscribe as subscribe_boxes;
use node::Service;
pub use node::{Exchange, Links};
use stereod_core::frame::Matched;
use stereod_io::clock::CaptureClock;
use stereod_io::ros2::dds;
use stereod_io::sink::messages::{Heading, Placed, Topic, chosen, placed, stamp};
use stereod_io::sink::{Losses, Sink, StreamInfo};

/// Topics if none are chosen, as far as the cameras are known, a network is checked, obstacles are found and the motion is
/// followed.
const DEFAULT: &str = "left, left-jpeg, right, disparity, disparity-jpeg, depth, depth-png, points, \
                       verdicts, scan, obstacles, odometry";

/// Messages of a topic that are kept for subscribers.
const DEPTH: i32 = 5;

const DIAGNOSTICS: &str = "diagnostic_msgs/DiagnosticArray";

const NODE: &str = "stereod";

#[derive(Clone, Debug)]
pub struct Ros2Options {
    /// Namespace with a slash before each of its names; empty for none.
    pub namespace: String,
    /// Names of the topics, separated by commas; empty for the default.
    pub topics: String,
    /// Text before the names of coordinate frames.
    pub prefix: String,
    /// Whether messages that a subscriber has missed are repeated.
    pub reliable: bool,
}

pub struct Ros2Sink {
    name: String,
    participant: DomainParticipant,
    exchange: Exchange,
    _service: Service,
    published: Vec<Published>,
    clock: Option<CaptureClock>,
    prefix: String,
    /// Whether the place on the vehicle is that of each pair.
    tracks_ground: bool,
    /// The cameras of the last transform that holds, and their place on the vehicle.
    placed: Placed,
    losses: Losses,
}

struct Published {
    topic: &'static Topic,
    name: String,
    publisher: Publisher<Encoded>,
}

impl Ros2Sink {
    /// Joins the graph. Fails if a chosen topic needs cameras that are not known, or without a network.
    pub fn open(options: &Ros2Options, stream: &StreamInfo, exchange: &Exchange) -> Result<Self> {
        let topics = chosen(&options.topics, DEFAULT, stream, &options.prefix)?;
        let failed = "cannot join the ROS 2 graph";
        let member = dds::join()?;
        let participant = member.participant.clone();
        let context = Context::from_domain_participant(participant.clone()).context(failed)?;
        let namespace = if options.namespace.is_empty() { "/" } else { &options.namespace };
        let name = NodeName::new(namespace, NODE)?;
        // [`Service`] serves its parameters.
        let options_of_node =
            NodeOptions::new().enable_rosout(false).start_parameter_services(false);
        let mut node = context.new_node(name, options_of_node).context(failed)?;
        let mut publish = |name: String, kind: &str, qos: QosPolicies| -> Result<_> {
            let (package, kind) = kind.split_once('/').expect("a type has a package");
            let kind = MessageTypeName::new(package, kind).dds_msg_type();
            let dds = participant.create_topic(name, kind, &qos, TopicKind::NoKey)?;
            Ok(node.create_publisher(&dds, None)?)
        };
        let own = participant.guid().prefix;
        let others = participant.discovered_writers().into_iter();
        let others: Vec<_> = others.map(|writer| writer.publication_topic_data).collect();
        let mut published = Vec::new();
        for topic in topics {
            // The transforms of all nodes are on the same topics.
            let are_transforms = topic.are_transforms();
            let namespace = if are_transforms { "" } else { &options.namespace };
            let name = format!("rt{namespace}{}", topic.path);
            // Subscribers would get the images of both, and a run might read its own.
            if let Some(path) = name.strip_prefix("rt")
                && others.iter().any(|other| other.topic_name == name && other.key.prefix != own)
                && !are_transforms
            {
                bail!(
                    "{path} of the graph is published by another node already; give --ros2 a namespace of its \
                     own, such as /stereod"
                );
            }
            let qos = quality(topic.is_kept(), options.reliable || topic.is_reliable());
            let publisher = publish(name.clone(), topic.schema, qos).context(failed)?;
            published.push(Published { topic, name, publisher });
        }
        let reliable = quality(false, true);
        let diagnostics =
            publish("rt/diagnostics".into(), DIAGNOSTICS, reliable).context(failed)?;
        let events = context.get_parameter_events_topic();
        let events = node.create_publisher(&events, None).context(failed)?;
        let service =
            Service::start(node, exchange.clone(), diagnostics, events).context(failed)?;
        say_where(namespace, member.domain, &member.reach.name(), stream.size);
        Ok(Self {
            name: format!("ROS 2 {namespace}"),
            participant,
            exchange: exchange.clone(),
            _service: service,
            published,
            clock: stream.clock,
            prefix: options.prefix.clone(),
            tracks_ground: stream.tracks_ground,
            placed: None,
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
        self.exchange.show(frame);
        let stamp = stamp(self.clock, frame.pair.timestamp);
        let tracks_ground = self.tracks_ground;
        let head = Heading { stamp, prefix: &self.prefix, tracks_ground };
        let readers = self.participant.discovered_readers();
        let placed = placed(frame, tracks_ground);
        let has_moved = self.placed != placed;
        let wanted = |published: &&Published| match published.topic.is_static() {
            // It is kept for subscribers to come.
            true => has_moved,
            false => readers
                .iter()
                .any(|reader| *reader.subscription_topic_data.topic_name() == published.name),
        };
        let mut is_lost = false;
        for Published { topic, publisher, .. } in self.published.iter().filter(wanted) {
            if !topic.is_in(frame, head) {
                continue;
            }
            match publisher.publish(Encoded(topic.encode(frame, head)?)) {
                Ok(()) => {}
                Err(WriteError::WouldBlock { .. }) => is_lost = true,
                Err(error) => bail!("cannot publish {}: {}", topic.path, error.forget_data()),
            }
        }
        self.placed = placed;
        self.losses.busy += u64::from(is_lost);
        Ok(())
    }

    fn losses(&self) -> Losses {
        self.losses
    }
}

/// Logs where messages are published, and warns if subscribers have no room for a map of this size.
fn say_where(namespace: &str, domain: u8, reach: &str, (width, height): (usize, usize)) {
    tracing::info!(
        "ROS 2: publishing below {namespace} in domain {domain}, for subscribers on {reach}; the \
         ports themselves are open on all interfaces (docs/ros2.md)"
    );
    let (room, message) = (dds::limit("rmem_default"), 4 * width * height);
    if let Some(room) = room.filter(|room| *room < message) {
        tracing::warn!(
            "ROS 2: a disparity map has {message} bytes, but a subscriber on this machine has room for \
             {room} unless it asks for more, and loses what it has no room for; set \
             net.core.rmem_default (docs/ros2.md)"
        );
    }
}

/// Returns the guarantees of a topic: as for data of sensors, unless it is kept for later subscribers or reliable.
fn quality(is_kept: bool, reliable: bool) -> QosPolicies {
    // Without a limit the crate keeps thousands of messages for a reliable subscriber that stalls.
    let limits =
        ResourceLimits { max_samples: DEPTH, max_instances: 1, max_samples_per_instance: DEPTH };
    let durability = if is_kept { Durability::TransientLocal } else { Durability::Volatile };
    let reliability = match reliable || is_kept {
        true => Reliability::Reliable { max_blocking_time: Duration::ZERO },
        false => Reliability::BestEffort,
    };
    QosPolicyBuilder::new()
        .reliability(reliability)
        .durability(durability)
        .history(History::KeepLast { depth: if is_kept { 1 } else { DEPTH } })
        .resource_limits(limits)
        .build()
}

/// Bytes of the header before a message, which the crate writes itself.
const HEADER: usize = 4;

/// A message with its header. The crate serialises it as its bytes.
pub(super) struct Encoded(pub(super) Vec<u8>);

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
