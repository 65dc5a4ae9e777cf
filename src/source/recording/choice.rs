//! Choice of the topics of both views, and of their calibrations.
//!
//! A pair is two topics with images and names that differ only in a mark of the side: left and right, infra1
//! and infra2, cam0 and cam1 and the like. Pairs with the same name before the mark are of one rig. Names
//! with only words for camera images after the mark are preferred to others, such as images of events. Among
//! the variants of one kind the best is taken: rectified before raw, whole pixels before compressed ones,
//! grey before colour. Between pairs of different rigs or kinds the user must choose.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};

use super::interface::Topic;
use crate::source::gst::ViewLayout;

/// Marks of the left and the right view in names, in lower case, as words of their own.
const MARKS: [[&str; 2]; 19] = [
    ["left", "right"],
    ["infra1", "infra2"],
    ["infra_1", "infra_2"],
    ["infrared_1", "infrared_2"],
    ["ir1", "ir2"],
    ["cam0", "cam1"],
    ["cam_0", "cam_1"],
    ["camera0", "camera1"],
    ["camera_0", "camera_1"],
    ["l", "r"],
    ["fisheye1", "fisheye2"],
    ["image_00", "image_01"],
    ["image_02", "image_03"],
    ["image_0", "image_1"],
    ["image_2", "image_3"],
    ["colored_0", "colored_1"],
    ["lcam", "rcam"],
    ["im0", "im1"],
    ["camera_00", "camera_02"],
];

/// Words of topics that hold no view of a camera.
const NO_VIEWS: [&str; 19] = [
    "compresseddepth",
    "confidence",
    "depth",
    "disparity",
    "flow",
    "heatmap",
    "instance",
    "instances",
    "label",
    "labels",
    "mask",
    "masks",
    "normals",
    "panoptic",
    "segmentation",
    "semantic",
    "semantics",
    "seg",
    "theora",
];

/// Words of topics with camera images, and words for their variants.
const OF_CAMERAS: [&str; 36] = [
    "bayer",
    "bgr",
    "bgr8",
    "cam",
    "camera",
    "color",
    "colored",
    "colour",
    "compressed",
    "data",
    "ffmpeg",
    "frame",
    "gray",
    "grey",
    "h264",
    "h265",
    "image",
    "images",
    "img",
    "infra",
    "infrared",
    "ir",
    "jpeg",
    "mono",
    "optical",
    "photo",
    "picture",
    "png",
    "raw",
    "rect",
    "rectified",
    "rgb",
    "rgb8",
    "scene",
    "video",
    "view",
];

/// Words of topics with colour.
const COLOURS: [&str; 7] = ["color", "colour", "rgb", "bgr", "image_02", "image_2", "colored_0"];

/// Largest number of topics that an error lists.
const LISTED: usize = 30;

/// The topics that were asked for; `None` is chosen.
pub type Wanted = [Option<String>; 2];

/// Properties of a pair, the better the smaller.
type Rank = (bool, bool, bool);

/// Reports whether a name has `word` as a word of its own.
fn has_word(name: &str, word: &str) -> bool {
    !places(name, word).is_empty()
}

/// Returns the positions of a word of its own in a name.
fn places(name: &str, word: &str) -> Vec<usize> {
    let lower = name.to_ascii_lowercase();
    let places = lower.match_indices(word).map(|(at, _)| at);
    places.filter(|at| is_edge(name, *at) && is_edge(name, at + word.len())).collect()
}

/// Reports whether a word may begin or end at a position of a name: at a character that is neither letter nor
/// digit, or at a capital as in `leftCam` and `IRLeft`.
fn is_edge(name: &str, at: usize) -> bool {
    let (before, behind) = name.split_at(at);
    let (Some(last), Some(next)) = (before.chars().next_back(), behind.chars().next()) else {
        return true;
    };
    let is_in_word = |c: char| c.is_alphanumeric();
    let begins_lower = behind.chars().nth(1).is_some_and(char::is_lowercase);
    !is_in_word(last)
        || !is_in_word(next)
        || next.is_uppercase() && (!last.is_uppercase() || begins_lower)
}

/// Returns the words of a name behind its first mark that neither are marks nor stand for images of a camera. Names
/// that differ in them have another kind of images.
fn kind(name: &str, mark: usize) -> String {
    let mut marked = vec![false; name.len()];
    for word in MARKS.as_flattened() {
        for at in places(name, word) {
            marked[at..at + word.len()].fill(true);
        }
    }
    let edges = name.char_indices().map(|(at, _)| at).filter(|at| is_edge(name, *at));
    let starts: Vec<usize> = edges.chain([name.len()]).filter(|at| *at >= mark).collect();
    let words = starts.windows(2).filter(|two| !marked[two[0]]).map(|two| &name[two[0]..two[1]]);
    let words = words.map(str::to_ascii_lowercase).filter(|word| {
        word.chars().all(char::is_alphanumeric) && !OF_CAMERAS.contains(&word.as_str())
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Returns the position of the first mark of the left view, and the name of the right view in lower case, for
/// every mark in a name.
fn others(name: &str) -> Vec<(usize, String)> {
    let lower = name.to_ascii_lowercase();
    let other = |[left, right]: [&str; 2]| {
        let places = places(name, left);
        let first = *places.first()?;
        let (mut text, mut end) = (String::new(), 0);
        for at in places {
            text += &lower[end..at];
            text += right;
            end = at + left.len();
        }
        Some((first, text + &lower[end..]))
    };
    MARKS.into_iter().filter_map(other).collect()
}

/// Returns the possible names of the right view of a left view's file or topic, in lower case.
pub fn partners(left: &str) -> impl Iterator<Item = String> {
    others(left).into_iter().map(|(_, right)| right.to_lowercase())
}

/// Reports whether a topic has rectified images, by its name.
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
    let named = |name: &String| {
        let found = topics.iter().position(|topic| topic.name == *name && topic.has_images());
        found.with_context(|| match topics.iter().find(|topic| topic.name == *name) {
            Some(Topic { kind, encoding, .. }) => {
                format!(
                    "the topic {name} has no images that are read ({kind}, {encoding}){}",
                    list(topics)
                )
            }
            None => format!("there is no topic {name}{}", list(topics)),
        })
    };
    let has_both = |topic: usize| topics[topic].layout() != ViewLayout::Whole;
    if let [Some(left), Some(right)] = wanted {
        let views = [named(left)?, named(right)?];
        // A topic that is named twice has both views side by side.
        if left != right && views.into_iter().any(has_both) {
            bail!("{left} and {right} are not the two views of one pair");
        }
        return Ok(views);
    }
    let pairs = pairs(topics);
    if let Some((eye, name)) =
        wanted.iter().enumerate().find_map(|(i, name)| Some((i, name.as_ref()?)))
    {
        let given = named(name)?;
        if has_both(given) {
            return Ok([given; 2]);
        }
        let fitting: Vec<_> = pairs.iter().filter(|pair| pair.topics[eye] == given).collect();
        return match fitting[..] {
            [pair] => Ok(pair.topics),
            _ => {
                let [own, other] = [
                    ["--left-topic", "--right-topic"][eye],
                    ["--right-topic", "--left-topic"][eye],
                ];
                bail!(
                    "no other topic is the partner of {name} by its name: give {other}, or {own} {name} {other} \
                     {name} if it has both views side by side{}",
                    list(topics)
                )
            }
        };
    }
    // The kinds of images of every rig, and of each the best variants.
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
    match best[..] {
        [pair] => Ok(pair),
        [] if !topics.iter().any(Topic::has_images) => {
            bail!("it has no topic with images that are read{}", list(topics))
        }
        [] => {
            let has =
                |name: &String| topics.iter().any(|other| other.name.to_ascii_lowercase() == *name);
            let is_alone = |topic: &&Topic| {
                let others = others(&topic.name);
                is_view(topic) && !others.is_empty() && !others.iter().any(|(_, right)| has(right))
            };
            // stereod's own recordings have no right view unless it is asked for.
            let is_own = topics.iter().any(|topic| topic.kind == "stereo_msgs/DisparityImage");
            let record = if is_own {
                "; stereod records it with `--mcap left,right,disparity,depth`"
            } else {
                ""
            };
            let lacks = topics.iter().find(is_alone).map_or(String::new(), |topic| {
                format!(", but the right view of {} was not recorded{record}", topic.name)
            });
            let mut views = topics.iter().filter(|topic| is_view(topic));
            let one = views.next().filter(|_| views.next().is_none());
            let one = one.map_or("TOPIC", |topic| topic.name.as_str());
            bail!(
                "no two topics with images differ only in left and right, cam0 and cam1 or the like{lacks}: name the \
                 views by --left-topic and --right-topic; a topic that has both side by side is named twice: \
                 --left-topic {one} --right-topic {one}{}",
                list(topics)
            )
        }
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

/// Two topics that may be the views.
struct Pair {
    /// Name before the mark of the side.
    rig: String,
    /// Kind of the images; empty for camera images.
    kind: String,
    topics: [usize; 2],
}

/// Reports whether a topic may be a view.
fn is_view(topic: &Topic) -> bool {
    topic.has_images()
        && topic.messages != Some(0)
        && !NO_VIEWS.iter().any(|word| has_word(&topic.name, word))
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

/// Lists the topics with images, and the topics with unsupported images.
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
mod tests {
    use super::*;
    use crate::source::recording::interface::Encoding;

    fn topics(names: &[&str]) -> Vec<Topic> {
        let topic = |name: &&str| {
            let kind = if name.contains("info") {
                "sensor_msgs/msg/CameraInfo"
            } else if name.ends_with("compressed") {
                "sensor_msgs/msg/CompressedImage"
            } else if name.contains("imu") {
                "sensor_msgs/msg/Imu"
            } else {
                "sensor_msgs/msg/Image"
            };
            Topic::new(name, kind, Encoding::Cdr, Some(3))
        };
        names.iter().map(topic).collect()
    }

    fn chosen(names: &[&str]) -> Result<[String; 2]> {
        let topics = topics(names);
        let chosen = choose(&topics, &[None, None])?;
        Ok(chosen.map(|topic| topics[topic].name.clone()))
    }

    #[test]
    fn the_only_pair_is_taken_whatever_its_order() {
        for [left, right] in [
            ["/left/image_raw", "/right/image_raw"],
            ["/cam0/image_raw", "/cam1/image_raw"],
            ["/camera/infra1/image_rect_raw", "/camera/infra2/image_rect_raw"],
            [
                "/device_0/sensor_0/Infrared_1/image/data",
                "/device_0/sensor_0/Infrared_2/image/data",
            ],
            ["/snappy_cam/stereo_l", "/snappy_cam/stereo_r"],
            ["/zed/left/left_image", "/zed/right/right_image"],
            ["/alphasense/cam0/image/compressed", "/alphasense/cam1/image/compressed"],
            ["image_00", "image_01"],
            ["/leftCam/image", "/rightCam/image"],
            ["/cameraL", "/cameraR"],
            ["/rig/IRLeft/image", "/rig/IRRight/image"],
            ["/airsim_node/Drone1/front_left/Scene", "/airsim_node/Drone1/front_right/Scene"],
            ["/left/something", "/right/something"],
        ] {
            let names = [right, "/imu", "/depth/image", left, "/camera/color/image_raw"];
            assert_eq!(chosen(&names).unwrap(), [left, right].map(str::to_owned));
        }
    }

    #[test]
    fn the_best_variant_of_a_rig_is_taken() {
        let variants =
            ["image_raw", "image_rect_color", "image_rect", "image_rect/compressed", "depth/image"];
        let names: Vec<_> = variants
            .iter()
            .flat_map(|v| [format!("/c/left/{v}"), format!("/c/right/{v}")])
            .collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        assert_eq!(chosen(&names).unwrap(), ["/c/left/image_rect", "/c/right/image_rect"]);
        let raw = ["/left/image_raw/compressed", "/right/image_raw/compressed"];
        let both = [raw[0], raw[1], "/left/image_raw", "/right/image_raw"];
        assert_eq!(chosen(&both).unwrap()[0], "/left/image_raw");
        // Half a pair is none.
        assert_eq!(chosen(&[raw[0], raw[1], "/left/image_raw"]).unwrap(), raw);
        let zed = [
            "/z/left/image_rect_color",
            "/z/right/image_rect_color",
            "/z/left_raw/image_raw_color",
        ];
        assert_eq!(
            chosen(&[zed[0], zed[1], zed[2], "/z/right_raw/image_raw_color"]).unwrap()[1],
            zed[1]
        );
        let kitti = ["image_02", "image_03", "image_00", "image_01"];
        assert_eq!(chosen(&kitti).unwrap(), ["image_00", "image_01"]);
    }

    #[test]
    fn images_of_cameras_come_before_other_images() {
        for (own, other) in [
            ("image_color", "event_image"),
            ("rgb", "instance"),
            ("Scene", "DepthVis"),
            ("image_raw", "fisheye/mask"),
            ("image_rect_color", "overlay"),
            ("image_raw/compressed", "track_image"),
        ] {
            let names =
                [own, other].map(|kind| ["left", "right"].map(|eye| format!("/rig/{eye}/{kind}")));
            let names: Vec<_> = names.as_flattened().iter().rev().map(String::as_str).collect();
            assert_eq!(chosen(&names).unwrap()[0], format!("/rig/left/{own}"));
        }
        // Non-camera kinds require a choice, variants of one kind do not.
        let names = ["/left/event_image", "/right/event_image", "/left/overlay", "/right/overlay"];
        let error = chosen(&names).unwrap_err().to_string();
        for topic in names {
            assert!(error.contains(topic), "{topic}: {error}");
        }
        assert_eq!(chosen(&names[..2]).unwrap(), names[..2]);
        let variants = [
            "/left/thermal_rect",
            "/right/thermal_rect",
            "/left/thermal_raw",
            "/right/thermal_raw",
        ];
        assert_eq!(chosen(&variants).unwrap(), variants[..2]);
        // Maps are never taken, not even alone.
        for maps in
            ["depth", "labels_map", "DisparityNormalized", "semantic", "instance", "heatmap"]
        {
            let names = ["left", "right"].map(|eye| format!("/{eye}/{maps}"));
            let error = chosen(&names.each_ref().map(String::as_str)).unwrap_err().to_string();
            assert!(error.contains("by --left-topic") && error.contains(&names[1]), "{error}");
        }
    }

    #[test]
    fn the_cure_fits_what_is_recorded() {
        let error = chosen(&["/left/image_rect", "/depth/image_rect"]).unwrap_err().to_string();
        assert!(error.contains("right view of /left/image_rect was not recorded:"), "{error}");
        let mut own = topics(&["/left/image_rect", "/disparity"]);
        own[1].kind = "stereo_msgs/DisparityImage".to_owned();
        let error = choose(&own, &[None, None]).unwrap_err().to_string();
        assert!(
            error.contains("not recorded; stereod records it with `--mcap left,right"),
            "{error}"
        );
        let error = chosen(&["/stereo/image_raw"]).unwrap_err().to_string();
        let twice = "named twice: --left-topic /stereo/image_raw --right-topic /stereo/image_raw";
        assert!(error.contains(twice) && !error.contains("recorded"), "{error}");
        let json = |name: &str| {
            Topic::new(name, "foxglove.CompressedImage", Encoding::of("json"), Some(3))
        };
        let unread = [json("/left/image"), json("/right/image")];
        let error = choose(&unread, &[None, None]).unwrap_err().to_string();
        for words in ["/left/image (foxglove.CompressedImage, json, 3 messages)", "Other messages"]
        {
            assert!(error.contains(words), "{words}: {error}");
        }
    }

    #[test]
    fn two_rigs_are_a_question() {
        let names =
            ["/front/left/image", "/front/right/image", "/rear/left/image", "/rear/right/image"];
        let error = chosen(&names).unwrap_err().to_string();
        assert!(
            error.contains("2 pairs") && error.contains("--left-topic /rear/left/image"),
            "{error}"
        );
        let error = chosen(&["/a/image", "/b/image"]).unwrap_err().to_string();
        assert!(error.contains("--left-topic") && error.contains("/b/image"), "{error}");
        assert!(chosen(&["/imu"]).unwrap_err().to_string().contains("no topic with images"));
        // No words of their own.
        assert!(chosen(&["/leftover/image", "/rightover/image"]).is_err());
    }

    #[test]
    fn topics_by_name() {
        let topics = topics(&["/a", "/b", "/left", "/right", "/imu"]);
        let choose = |left: Option<&str>, right: Option<&str>| {
            self::choose(&topics, &[left.map(str::to_owned), right.map(str::to_owned)])
        };
        assert_eq!(choose(Some("/b"), Some("/a")).unwrap(), [1, 0]);
        assert_eq!(choose(Some("/left"), None).unwrap(), [2, 3]);
        assert_eq!(choose(None, Some("/right")).unwrap(), [2, 3]);
        // Both views side by side.
        assert_eq!(choose(Some("/a"), Some("/a")).unwrap(), [0, 0]);
        for (left, right, what) in [
            (Some("/a"), None, "give --right-topic, or --left-topic /a --right-topic /a"),
            (Some("/a"), Some("/c"), "no topic /c"),
            (Some("/a"), Some("/imu"), "no images"),
        ] {
            let error = choose(left, right).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
    }

    #[test]
    fn a_topic_with_both_views_is_a_pair() {
        let mut topics = topics(&["/imu", "Camera_SN7/side_by_side", "/left", "/right"]);
        topics[1].encoding = Encoding::Svo;
        assert_eq!(choose(&topics[..2], &[None, None]).unwrap(), [1, 1]);
        let name = Some(topics[1].name.clone());
        for wanted in [[name.clone(), None], [None, name.clone()], [name.clone(), name.clone()]] {
            assert_eq!(choose(&topics, &wanted).unwrap(), [1, 1]);
        }
        let error = choose(&topics, &[None, None]).unwrap_err().to_string();
        assert!(error.contains("--left-topic Camera_SN7/side_by_side"), "{error}");
        let error = choose(&topics, &[name, Some("/right".to_owned())]).unwrap_err().to_string();
        assert!(error.contains("not the two views"), "{error}");
        assert_eq!(camera_infos(&topics, [1, 1]), None);
    }

    #[test]
    fn calibrations_stand_beside_their_images() {
        let infos = |names: &[&str]| {
            let topics = topics(names);
            let found = camera_infos(&topics, [0, 1])?;
            Some(found.map(|topic| topics[topic].name.clone()))
        };
        let expect = |names: &[&str], expected: [&str; 2]| {
            assert_eq!(infos(names), Some(expected.map(str::to_owned)));
        };
        let views = ["/left/image_raw", "/right/image_raw"];
        let own = ["/left/camera_info", "/right/camera_info"];
        expect(&[views[0], views[1], own[1], own[0], "/rgb/camera_info"], own);
        let compressed = ["/left/image_raw/compressed", "/right/image_raw/compressed"];
        expect(&[compressed[0], compressed[1], own[0], own[1]], own);
        let rect = ["/left/camera_info_rect", "/right/camera_info_rect"];
        expect(&["/left/image_rect", "/right/image_rect", own[0], own[1], rect[0], rect[1]], rect);
        expect(&[views[0], views[1], own[0], own[1], rect[0], rect[1]], own);
        let device = ["/d/Infrared_1/image/data", "/d/Infrared_2/image/data"];
        let info = ["/d/Infrared_1/info/camera_info", "/d/Infrared_2/info/camera_info"];
        expect(&[device[0], device[1], info[0], info[1]], info);
        assert_eq!(infos(&[views[0], views[1], own[0]]), None);
        assert_eq!(infos(&[views[0], views[1], "/camera_info"]), None);
        assert_eq!(infos(&["image_00", "image_01", own[0]]), None);
    }
}
