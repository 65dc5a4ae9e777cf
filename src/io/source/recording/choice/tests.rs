//! Topics of usual recordings, and the pairs that are chosen of them.

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
        ["/device_0/sensor_0/Infrared_1/image/data", "/device_0/sensor_0/Infrared_2/image/data"],
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
    let names: Vec<_> =
        variants.iter().flat_map(|v| [format!("/c/left/{v}"), format!("/c/right/{v}")]).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    assert_eq!(chosen(&names).unwrap(), ["/c/left/image_rect", "/c/right/image_rect"]);
    let raw = ["/left/image_raw/compressed", "/right/image_raw/compressed"];
    let both = [raw[0], raw[1], "/left/image_raw", "/right/image_raw"];
    assert_eq!(chosen(&both).unwrap()[0], "/left/image_raw");
    // Half a pair is none.
    assert_eq!(chosen(&[raw[0], raw[1], "/left/image_raw"]).unwrap(), raw);
    let zed =
        ["/z/left/image_rect_color", "/z/right/image_rect_color", "/z/left_raw/image_raw_color"];
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
    let variants =
        ["/left/thermal_rect", "/right/thermal_rect", "/left/thermal_raw", "/right/thermal_raw"];
    assert_eq!(chosen(&variants).unwrap(), variants[..2]);
    // Maps are never taken, not even alone.
    for maps in ["depth", "labels_map", "DisparityNormalized", "semantic", "instance", "heatmap"] {
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
    assert!(error.contains("not recorded; stereod records it with `--mcap left,right"), "{error}");
    let error = chosen(&["/stereo/image_raw"]).unwrap_err().to_string();
    let twice = "named twice: --left-topic /stereo/image_raw --right-topic /stereo/image_raw";
    assert!(error.contains(twice) && !error.contains("recorded"), "{error}");
    let json =
        |name: &str| Topic::new(name, "foxglove.CompressedImage", Encoding::of("json"), Some(3));
    let unread = [json("/left/image"), json("/right/image")];
    let error = choose(&unread, &[None, None]).unwrap_err().to_string();
    for words in ["/left/image (foxglove.CompressedImage, json, 3 messages)", "Other messages"] {
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
