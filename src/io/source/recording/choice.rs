//! Choice of the topics of both views, and of their calibrations.
//!
//! A pair is two topics with images and names that differ only in a mark of the side: left and right, infra1
//! and infra2, cam0 and cam1 and the like. Pairs with the same name before the mark are of one rig. Names
//! with only words for camera images after the mark are preferred to others, such as images of events. Among
//! the variants of one kind the best is taken: rectified before raw, whole pixels before compressed ones,
//! grey before colour. Between pairs of different rigs or kinds the user must choose.

mod names;

use std::collections::BTreeMap;

use anyhow::{Context, Result, anyhow, bail};

pub use self::names::partners;
use self::names::{COLOURS, NO_VIEWS, has_word, kind, others};
use super::interface::Topic;
use crate::source::gst::ViewLayout;

const LISTED: usize = 30;

/// The topics that were asked for; `None` is chosen.
pub type Wanted = [Option<String>; 2];

/// Properties of a pair, the better the smaller.
type Rank = (bool, bool, bool);

pub fn is_rectified(topic: &Topic) -> bool {
    ["rect", "rectified"].iter().any(|word| has_word(&topic.name, word))
}

fn rank(topic: &Topic) -> Rank {
    let has_colour = COLOURS.iter().any(|word| has_word(&topic.name, word));
    (!is_rectified(topic), topic.is_compressed(), has_colour)
}

/// Returns the topics of the left and the right view: the requested ones, or the only pair that fits. A topic
/// with both views is both.
pub fn choose(topics: &[Topic], wanted: &Wanted) -> Result<[usize; 2]> {
    let has_both = |topic: usize| topics[topic].layout() != ViewLayout::Whole;
    let (eye, name) = match wanted {
        [Some(left), Some(right)] => {
            let views = [named(topics, left)?, named(topics, right)?];
            // A topic that is named twice has both views side by side.
            if left != right && views.into_iter().any(has_both) {
                bail!("{left} and {right} are not the two views of one pair");
            }
            return Ok(views);
        }
        [Some(left), None] => (0, left),
        [None, Some(right)] => (1, right),
        [None, None] => return only_pair(topics),
    };
    let given = named(topics, name)?;
    if has_both(given) {
        return Ok([given; 2]);
    }
    let pairs = pairs(topics);
    let fitting: Vec<_> = pairs.iter().filter(|pair| pair.topics[eye] == given).collect();
    match fitting[..] {
        [pair] => Ok(pair.topics),
        _ => {
            let flags = ["--left-topic", "--right-topic"];
            let (own, other) = (flags[eye], flags[1 - eye]);
            bail!(
                "no other topic is the partner of {name} by its name: give {other}, or {own} {name} {other} {name} if \
                 it has both views side by side{}",
                list(topics)
            )
        }
    }
}

fn named(topics: &[Topic], name: &str) -> Result<usize> {
    let found = topics.iter().position(|topic| topic.name == name && topic.has_images());
    found.with_context(|| match topics.iter().find(|topic| topic.name == name) {
        Some(Topic { kind, encoding, .. }) => {
            format!(
                "the topic {name} has no images that are read ({kind}, {encoding}){}",
                list(topics)
            )
        }
        None => format!("there is no topic {name}{}", list(topics)),
    })
}

fn only_pair(topics: &[Topic]) -> Result<[usize; 2]> {
    let best = best_pairs(topics);
    match best[..] {
        [pair] => Ok(pair),
        [] if !topics.iter().any(Topic::has_images) => {
            bail!("it has no topic with images that are read{}", list(topics))
        }
        [] => Err(no_pair(topics)),
        _ => {
            let names = |pair: &[usize; 2]| {
                format!(
                    "\n  --left-topic {} --right-topic {}",
                    topics[pair[0]].name, topics[pair[1]].name
                )
            };
            let choices: String = best.iter().take(LISTED).map(names).collect();
            bail!("{} pairs of topics could be the views; choose one:{choices}", best.len())
        }
    }
}

fn best_pairs(topics: &[Topic]) -> Vec<[usize; 2]> {
    let pairs = pairs(topics);
    let mut rigs: BTreeMap<&str, BTreeMap<&str, Vec<[usize; 2]>>> = BTreeMap::new();
    for Pair { rig, kind, topics } in &pairs {
        rigs.entry(rig).or_default().entry(kind).or_default().push(*topics);
    }
    let mut best = Vec::new();
    for kinds in rigs.values() {
        let of_cameras = kinds.get("").map(|variants| vec![variants]);
        for variants in of_cameras.unwrap_or_else(|| kinds.values().collect()) {
            let rank = |pair: &[usize; 2]| rank(&topics[pair[0]]).max(rank(&topics[pair[1]]));
            let least = variants.iter().map(rank).min();
            best.extend(variants.iter().filter(|pair| Some(rank(pair)) == least));
        }
    }
    best
}

fn no_pair(topics: &[Topic]) -> anyhow::Error {
    let has = |name: &String| topics.iter().any(|other| other.name.to_ascii_lowercase() == *name);
    let is_alone = |topic: &&Topic| {
        let others = others(&topic.name);
        is_view(topic) && !others.is_empty() && !others.iter().any(|(_, right)| has(right))
    };
    // stereod's own recordings have no right view unless it is asked for.
    let is_own = topics.iter().any(|topic| topic.kind == "stereo_msgs/DisparityImage");
    let record =
        if is_own { "; stereod records it with `--mcap left,right,disparity,depth`" } else { "" };
    let lacks = topics.iter().find(is_alone).map_or(String::new(), |topic| {
        format!(", but the right view of {} was not recorded{record}", topic.name)
    });
    let mut views = topics.iter().filter(|topic| is_view(topic));
    let one = views.next().filter(|_| views.next().is_none());
    let one = one.map_or("TOPIC", |topic| topic.name.as_str());
    anyhow!(
        "no two topics with images differ only in left and right, cam0 and cam1 or the like{lacks}: name the views by \
         --left-topic and --right-topic; a topic that has both side by side is named twice: --left-topic {one} \
         --right-topic {one}{}",
        list(topics)
    )
}

struct Pair {
    /// Name before the mark of the side.
    rig: String,
    /// Kind of the images; empty for camera images.
    kind: String,
    topics: [usize; 2],
}

fn is_view(topic: &Topic) -> bool {
    topic.has_images()
        && topic.messages != Some(0)
        && !NO_VIEWS.split(' ').any(|word| has_word(&topic.name, word))
}

fn pairs(topics: &[Topic]) -> Vec<Pair> {
    let mut pairs: Vec<Pair> = Vec::new();
    for (left, topic) in topics.iter().enumerate().filter(|(_, topic)| is_view(topic)) {
        if topic.layout() != ViewLayout::Whole {
            let rig = topic.name.to_lowercase();
            pairs.push(Pair { rig, kind: String::new(), topics: [left; 2] });
            continue;
        }
        for (mark, name) in others(&topic.name) {
            let is_other = |other: &Topic| {
                other.name.to_ascii_lowercase() == name
                    && other.kind == topic.kind
                    && is_view(other)
            };
            let right = topics.iter().position(is_other).filter(|right| *right != left);
            if let Some(right) = right
                && !pairs.iter().any(|pair| pair.topics == [left, right])
            {
                let rig = topic.name[..mark].to_ascii_lowercase();
                pairs.push(Pair { rig, kind: kind(&topic.name, mark), topics: [left, right] });
            }
        }
    }
    pairs
}

fn list(topics: &[Topic]) -> String {
    let lines = |title: &str, of: fn(&Topic) -> bool| {
        let line = |topic: &Topic| {
            let count = topic.messages.map_or(String::new(), |count| format!(", {count} messages"));
            let encoding = match topic.has_images() {
                true => String::new(),
                false => format!(", {}", topic.encoding),
            };
            format!("\n  {} ({}{encoding}{count})", topic.name, topic.kind)
        };
        let of = topics.iter().filter(|topic| of(topic));
        let lines: String = of.take(LISTED).map(line).collect();
        if lines.is_empty() { lines } else { format!("; {title}:{lines}") }
    };
    lines("topics with images", Topic::has_images)
        + &lines(
            "topics whose messages are not read (docs/recordings.md, \"Other messages\", converts them)",
            Topic::has_unread_images,
        )
}

/// Returns the topics with the calibrations of two views, if each has one: `camera_info` in the folder of the
/// images, or the only one below a folder that the views do not share.
pub fn camera_infos(topics: &[Topic], views: [usize; 2]) -> Option<[usize; 2]> {
    let own = |eye: usize| {
        let (topic, other) = (&topics[views[eye]], &topics[views[1 - eye]].name);
        let is_rectified = is_rectified(topic);
        let mut folder = topic.name.as_str();
        while let Some((above, _)) = folder.rsplit_once('/') {
            folder = above;
            let below = format!("{folder}/");
            if other.starts_with(&below) {
                return None;
            }
            let is_below =
                |topic: &Topic| topic.has_calibrations() && topic.name.starts_with(&below);
            let found: Vec<_> = (0..topics.len()).filter(|&i| is_below(&topics[i])).collect();
            // Some recordings have camera_info_rect as well.
            let same = |&&i: &&usize| self::is_rectified(&topics[i]) == is_rectified;
            let fitting: Vec<_> = found.iter().filter(same).collect();
            match (&found[..], &fitting[..]) {
                ([only], _) => return Some(*only),
                (_, [only]) => return Some(**only),
                ([], _) => {}
                _ => return None,
            }
        }
        None
    };
    let [left, right] = [own(0)?, own(1)?];
    (left != right).then_some([left, right])
}

#[cfg(test)]
mod tests;
