//! The topics of a ROS 2 graph, read live: like the topics of a recording, or one alone.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result};
use crossbeam_channel::{Receiver, Sender, bounded};
use ros2_client::dds::rustdds::no_key::{
    Decode, DefaultDecoder, DeserializerAdapter, SimpleDataReader,
};
use ros2_client::dds::rustdds::policy::{Durability, History, Reliability};
use ros2_client::dds::rustdds::{
    Duration as DdsDuration, QosPolicies, QosPolicyBuilder, RTPSEntity, RepresentationIdentifier,
    TopicKind,
};

use crate::control::Switch;
use crate::ros2::dds::{self, Member, PacketLoss};
use crate::source::interface::Unavailable;
use crate::source::recording::interface::{Encoding, Message, Reader, Topic, check_length};

/// Longest time to look for topics with images.
const SEARCH: Duration = Duration::from_secs(10);

/// Time without a new topic after which all are taken to be known.
const SETTLED: Duration = Duration::from_millis(1500);

/// Default duration of reading messages without a stop.
const SAMPLE: Duration = Duration::from_secs(5);

/// Time without a message before a warning.
const SILENCE: Duration = Duration::from_secs(5);

/// Interval of checks for lost packets.
const LOSSES_EVERY: Duration = Duration::from_secs(1);

/// Messages of a topic that wait to be read.
const DEPTH: i32 = 8;

const TICK: Duration = Duration::from_millis(100);

pub struct GraphReader {
    member: Member,
    topics: Vec<Topic>,
    /// Properties of each topic that its subscription needs.
    offers: Vec<Offer>,
    subscribed: Vec<(usize, TopicReader)>,
    bell: Bell,
    stop: Option<Switch>,
    /// End of a reading that nothing stops.
    until: Instant,
    heard: Instant,
    loss: PacketLoss,
    looked: Instant,
}

/// A topic as its publishers offer it.
struct Offer {
    kind: String,
    /// Whether every publisher resends lost messages.
    is_reliable: bool,
}

/// Finds topics with names that begin with `prefix`.
pub fn open(prefix: &str) -> Result<Box<dyn Reader>> {
    let member = dds::join()?;
    let (begin, mut known, mut since) = (Instant::now(), 0, Instant::now());
    let found = loop {
        let found = offered(&member, prefix);
        let images = found.keys().filter(|topic| topic.has_images()).count();
        if images != known {
            (known, since) = (images, Instant::now());
        }
        if (known > 0 && since.elapsed() > SETTLED) || begin.elapsed() > SEARCH {
            break found;
        }
        std::thread::sleep(TICK);
    };
    if known == 0 {
        let below = if prefix.is_empty() { String::new() } else { format!(" below {prefix}") };
        let (domain, reach) = (member.domain, member.reach.name());
        let reason = format!(
            "nobody publishes images{below} in ROS 2 domain {domain} on {reach}: start the cameras' node, and \
             give its ROS_DOMAIN_ID, or the keys `domain` and `discovery` of [ros2]"
        );
        return Err(Unavailable { reason }.into());
    }
    dds::warn_of_little_room();
    let (topics, offers) = found.into_iter().unzip();
    Ok(Box::new(GraphReader {
        member,
        topics,
        offers,
        subscribed: Vec::new(),
        bell: Bell::new(),
        stop: None,
        until: Instant::now(),
        heard: Instant::now(),
        loss: PacketLoss::start(),
        looked: Instant::now(),
    }))
}

fn offered(member: &Member, prefix: &str) -> BTreeMap<Topic, Offer> {
    let own = member.participant.guid().prefix;
    let mut found: BTreeMap<Topic, Offer> = BTreeMap::new();
    for writer in member.participant.discovered_writers() {
        let data = writer.publication_topic_data;
        let (Some(name), Some(kind)) = (data.topic_name.strip_prefix("rt"), kind(&data.type_name))
        else {
            continue;
        };
        if data.key.prefix == own || !name.starts_with(prefix) {
            continue;
        }
        let is_reliable = matches!(data.reliability, Some(Reliability::Reliable { .. }));
        let topic = Topic::new(name, &kind, Encoding::Cdr, None);
        let offer = Offer { kind: data.type_name, is_reliable };
        found.entry(topic).and_modify(|offer| offer.is_reliable &= is_reliable).or_insert(offer);
    }
    found
}

/// Returns ROS's name of a type of DDS: `sensor_msgs::msg::dds_::Image_` is `sensor_msgs/Image`.
fn kind(dds: &str) -> Option<String> {
    let (package, name) = dds.split_once("::msg::dds_::")?;
    Some(format!("{package}/{}", name.strip_suffix('_')?))
}

impl GraphReader {
    fn take(&mut self, message: &mut Message) -> Result<bool> {
        // The topic that was read moves to the end, so that no topic delays the others.
        for at in 0..self.subscribed.len() {
            let (topic, reader) = &self.subscribed[at];
            if let Some(data) = reader.take()? {
                *message = Message { topic: *topic, log_ns: since_1970(), data };
                check_length("a message", message.data.len() as u64)?;
                self.subscribed.rotate_left(at + 1);
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Reader for GraphReader {
    fn topics(&self) -> &[Topic] {
        &self.topics
    }

    fn begin(&mut self, topics: &[usize]) -> Result<()> {
        let mut wanted = topics.to_vec();
        wanted.sort_unstable();
        wanted.dedup();
        let mut present: Vec<usize> = self.subscribed.iter().map(|(topic, _)| *topic).collect();
        present.sort_unstable();
        if present != wanted {
            self.subscribed.clear();
            for topic in wanted {
                let (name, offer) = (&self.topics[topic].name, &self.offers[topic]);
                let reader = TopicReader::new(&self.member, name, &offer.kind, offer.is_reliable)?;
                self.subscribed.push((topic, reader));
            }
        }
        (self.until, self.heard) = (Instant::now() + SAMPLE, Instant::now());
        Ok(())
    }

    fn next(&mut self, message: &mut Message) -> Result<bool> {
        loop {
            if self.looked.elapsed() > LOSSES_EVERY {
                self.looked = Instant::now();
                self.loss.since_last();
            }
            self.subscribed.iter().for_each(|(_, reader)| reader.wakes(&self.bell));
            if self.take(message)? {
                self.heard = Instant::now();
                return Ok(true);
            }
            let is_over = match &self.stop {
                Some(stop) => stop.is_set(),
                None => Instant::now() > self.until,
            };
            if is_over {
                return Ok(false);
            }
            if self.heard.elapsed() > SILENCE && self.stop.is_some() {
                tracing::warn!("no images from the ROS 2 graph for {SILENCE:?}; waiting for them");
                // Once more only after an hour.
                self.heard += Duration::from_secs(3600);
            }
            // Nothing rings for the stop.
            self.bell.wait();
        }
    }

    fn live(&mut self, stop: &Switch) -> bool {
        self.stop = Some(stop.clone());
        true
    }
}

/// A subscription to a topic.
struct TopicReader {
    name: String,
    reader: SimpleDataReader<Vec<u8>, Bytes>,
}

impl TopicReader {
    /// `kind` is the type as DDS names it.
    fn new(member: &Member, name: &str, kind: &str, is_reliable: bool) -> Result<Self> {
        let qos = quality(is_reliable);
        let participant = &member.participant;
        let subscribe = || -> Result<_> {
            let (dds, kind) = (format!("rt{name}"), kind.to_owned());
            let topic = participant.create_topic(dds, kind, &qos, TopicKind::NoKey)?;
            let subscriber = participant.create_subscriber(&qos)?;
            Ok(subscriber.create_simple_datareader_no_key(&topic, Some(qos.clone()))?)
        };
        let reader = subscribe().with_context(|| format!("cannot subscribe to {name}"))?;
        Ok(Self { name: name.to_owned(), reader })
    }

    /// Has the next message ring the bell.
    fn wakes(&self, bell: &Bell) {
        self.reader.set_waker(Some(bell.waker.clone()));
    }

    /// Takes the oldest message that waits.
    fn take(&self) -> Result<Option<Vec<u8>>> {
        self.reader.drain_read_notifications();
        let taken = self.reader.try_take_one();
        let taken = taken.with_context(|| format!("cannot read {}", self.name))?;
        Ok(taken.map(|taken| taken.into_value()))
    }
}

/// A topic that is read by its name and type, whether somebody publishes it yet or not.
pub struct Subscription {
    member: Member,
    kind: &'static str,
    reader: TopicReader,
    bell: Bell,
}

impl Subscription {
    /// Subscribes to the topic `name`, of a type such as `vision_msgs/Detection2DArray`.
    ///
    /// # Errors
    /// Fails if the graph cannot be joined.
    pub fn open(name: &str, kind: &'static str) -> Result<Self> {
        let member = dds::join()?;
        let (package, of_package) = kind.split_once('/').context("a type has a package")?;
        let dds = format!("{package}::msg::dds_::{of_package}_");
        // Publishers that repeat messages and those that do not: the newest message is enough.
        let reader = TopicReader::new(&member, name, &dds, false)?;
        Ok(Self { member, kind, reader, bell: Bell::new() })
    }

    /// Returns the oldest message that waits, with its CDR header; `None` if none comes within 0.1 s.
    ///
    /// # Errors
    /// Fails if the topic can be read no more.
    pub fn message(&self) -> Result<Option<Vec<u8>>> {
        self.reader.wakes(&self.bell);
        if let Some(waiting) = self.reader.take()? {
            return Ok(Some(waiting));
        }
        self.bell.wait();
        self.reader.take()
    }

    /// Returns the reason why no message comes; `None` if somebody publishes the topic.
    pub fn trouble(&self) -> Option<String> {
        let (name, domain) = (&self.reader.name, self.member.domain);
        let writers = self.member.participant.discovered_writers().into_iter();
        let kinds = writers
            .map(|writer| writer.publication_topic_data)
            .filter(|data| data.topic_name.strip_prefix("rt") == Some(name.as_str()))
            .map(|data| kind(&data.type_name).unwrap_or(data.type_name));
        let mut other = None;
        for kind in kinds {
            if kind == self.kind {
                return None;
            }
            other = Some(kind);
        }
        Some(match other {
            Some(other) => format!("{name} is published as {other}, not as {}", self.kind),
            None => format!("nobody publishes {name} in ROS 2 domain {domain} yet"),
        })
    }
}

/// Returns the quality of service of a subscription: at most the publishers' offer.
fn quality(is_reliable: bool) -> QosPolicies {
    let reliability = match is_reliable {
        true => Reliability::Reliable { max_blocking_time: DdsDuration::ZERO },
        false => Reliability::BestEffort,
    };
    QosPolicyBuilder::new()
        .reliability(reliability)
        .durability(Durability::Volatile)
        .history(History::KeepLast { depth: DEPTH })
        .build()
}

fn since_1970() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    now.as_nanos() as u64
}

/// Wakes the reading thread.
struct Bell {
    waker: Waker,
    heard: Receiver<()>,
}

impl Bell {
    fn new() -> Self {
        let (ring, heard) = bounded(1);
        Self { waker: Waker::from(Arc::new(Clapper(ring))), heard }
    }

    /// Waits for a message, at most 0.1 s.
    fn wait(&self) {
        let _ = self.heard.recv_timeout(TICK);
    }
}

struct Clapper(Sender<()>);

impl Wake for Clapper {
    fn wake(self: Arc<Self>) {
        // Full: it rings already.
        let _ = self.0.try_send(());
    }
}

/// Leaves messages as their bytes, with the header that names their byte order.
struct Bytes;

impl DeserializerAdapter<Vec<u8>> for Bytes {
    type Error = Infallible;
    type Decoded = Vec<u8>;

    fn supported_encodings() -> &'static [RepresentationIdentifier] {
        &[RepresentationIdentifier::CDR_LE, RepresentationIdentifier::CDR_BE]
    }

    fn transform_decoded(decoded: Vec<u8>) -> Vec<u8> {
        decoded
    }
}

impl DefaultDecoder<Vec<u8>> for Bytes {
    type Decoder = BytesDecoder;
    const DECODER: BytesDecoder = BytesDecoder;
}

#[derive(Clone)]
struct BytesDecoder;

impl Decode<'_, Vec<u8>> for BytesDecoder {
    type Error = Infallible;

    fn decode_bytes(
        self,
        input: &[u8],
        encoding: RepresentationIdentifier,
    ) -> std::result::Result<Vec<u8>, Infallible> {
        let is_little = encoding == RepresentationIdentifier::CDR_LE;
        let mut message = Vec::with_capacity(4 + input.len());
        message.extend([0, u8::from(is_little), 0, 0]);
        message.extend_from_slice(input);
        Ok(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_dds_have_names_of_ros() {
        assert_eq!(kind("sensor_msgs::msg::dds_::Image_").as_deref(), Some("sensor_msgs/Image"));
        for other in ["HelloWorld", "a::srv::dds_::B_Request_", "a::msg::dds_::B"] {
            assert_eq!(kind(other), None, "{other}");
        }
    }
}
