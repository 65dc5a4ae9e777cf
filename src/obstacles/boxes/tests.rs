use std::io::Cursor;

use proptest::prelude::*;

use super::*;

const NOW: Duration = Duration::from_secs(1_800_000_000);

fn read(message: &str) -> Result<Vec<DetectorBox>, String> {
    read_boxes(message.as_bytes(), NOW).map_err(|refusal| refusal.to_string())
}

/// Waits until something holds, as threads of their own take messages.
fn until(holds: impl Fn() -> bool) {
    let start = std::time::Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(120), "nothing came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_message_in_pixels_becomes_fractions() {
    let found = read(
        r#"{"stamp": 1700000000.5, "size": [640, 480], "more": [1],
            "boxes": [{"label": "person", "id": "7", "score": 0.9, "box": [64, 120, 320, 600]}]}"#,
    );
    let expected = DetectorBox {
        label: "person".into(),
        id: Some("7".into()),
        score: Some(0.9),
        edges: [0.1, 0.25, 0.5, 1.0],
        stamp: Duration::from_millis(1_700_000_000_500),
    };
    assert_eq!(found, Ok(vec![expected]));
}

#[test]
fn a_message_may_be_as_short_as_possible() {
    let found =
        read(r#"{"boxes": [{"label": "Hund 🐕", "id": 12, "box": [-0.01, 0, 0.5, 1]}]}"#).unwrap();
    assert_eq!(found[0].edges, [0.0, 0.0, 0.5, 1.0]);
    assert_eq!((found[0].stamp, found[0].score, found[0].id.as_deref()), (NOW, None, Some("12")));
    assert_eq!(read(r#"{"boxes": []}"#), Ok(vec![]));
}

#[test]
fn what_makes_no_sense_is_refused_with_the_reason() {
    let one = |inner: &str| format!(r#"{{"boxes": [{{"label": "a", {inner}}}]}}"#);
    let many = format!(
        r#"{{"boxes": [{}]}}"#,
        vec![r#"{"label": "a", "box": [0, 0, 1, 1]}"#; 257].join(",")
    );
    for (message, words) in [
        (String::new(), "not JSON"),
        ("[1".into(), "not JSON"),
        ("{}".into(), "boxes"),
        (one(r#""box": [0, 0, 1]"#), "length"),
        (one(r#""box": [0, 0, NaN, 1]"#), "line 1"),
        (one(r#""box": [0, 0, 1e999, 1]"#), "out of range"),
        (one(r#""box": [0.5, 0, 0.4, 1]"#), "reversed"),
        (one(r#""box": [0.5, 0.1, 0.6, 0.1]"#), "no area"),
        (one(r#""box": [10, 10, 50, 90]"#), "\"size\""),
        (one(r#""box": [1.1, 0, 1.2, 1]"#), "outside"),
        (one(r#""score": 1.5, "box": [0, 0, 1, 1]"#), "score"),
        (one(&format!(r#""id": "{}", "box": [0, 0, 1, 1]"#, "i".repeat(257))), "256 bytes"),
        (r#"{"size": [0, 480], "boxes": []}"#.into(), "0 x 480"),
        (r#"{"stamp": 1700000000000, "boxes": []}"#.into(), "seconds"),
        (r#"{"stamp": -1, "boxes": []}"#.into(), "seconds"),
        (many, "257 boxes"),
        (format!("{{\"boxes\": []}}{}", " ".repeat(LONGEST)), "65536"),
        ("[".repeat(LONGEST), "not JSON"),
    ] {
        let refusal = read(&message).unwrap_err();
        assert!(refusal.contains(words), "{words}: {refusal}");
    }
}

proptest! {
    #[test]
    fn reading_never_panics(message in prop::collection::vec(any::<u8>(), 0..200)) {
        let _any = read_boxes(&message, NOW);
    }

    #[test]
    fn whatever_is_taken_lies_in_the_image(
        edges in prop::array::uniform4(prop_oneof![-3.0..3.0, -2000.0..2000.0, any::<f64>()]),
        size in prop::option::of(prop::array::uniform2(prop_oneof![1.0..2000.0, any::<f64>()])),
        stamp in prop::option::of(any::<f64>()),
        score in prop::option::of(any::<f64>()),
    ) {
        let entry = serde_json::json!({"label": "a", "score": score, "box": edges});
        let message = serde_json::json!({"stamp": stamp, "size": size, "boxes": [entry]}).to_string();
        for DetectorBox { edges: [left, top, right, bottom], score, .. } in read(&message).unwrap_or_default() {
            prop_assert!(0.0 <= left && left < right && right <= 1.0);
            prop_assert!(0.0 <= top && top < bottom && bottom <= 1.0);
            prop_assert!(score.is_none_or(|score| (0.0..=1.0).contains(&score)));
        }
    }

    #[test]
    fn lines_of_any_bytes_are_counted(bytes in prop::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..300)) {
        let inbox = Inbox::new(FRESH);
        read_lines(Cursor::new(&bytes), &inbox);
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).count();
        prop_assert!(inbox.refused.load(Ordering::Relaxed) <= lines as u64);
    }
}

#[test]
fn a_line_that_is_too_long_is_skipped_and_counted() {
    let mut lines = vec![b'x'; 3 * LONGEST];
    lines.extend(b"\n\nnonsense\n{\"boxes\": [{\"label\": \"a\", \"box\": [0, 0, 1, 1]}]}");
    let inbox = Inbox::new(FRESH);
    read_lines(Cursor::new(lines), &inbox);
    assert_eq!(inbox.refused.load(Ordering::Relaxed), 2);
    assert_eq!(inbox.get(unix_time()).len(), 1);

    // The longest line that is allowed, with its end and without.
    for end in ["\n", ""] {
        let inbox = Inbox::new(FRESH);
        let line = format!(r#"{{"boxes": []}}{}{end}"#, " ".repeat(LONGEST - 13));
        read_lines(Cursor::new(line), &inbox);
        assert_eq!(inbox.refused.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn boxes_are_given_to_pairs_of_their_time_only() {
    let inbox = Inbox::new(FRESH);
    assert_eq!(inbox.get(NOW), []);
    inbox.take(read_boxes(
        br#"{"stamp": 1800000000, "boxes": [{"label": "a", "box": [0, 0, 1, 1]}]}"#,
        NOW,
    ));
    let half = Duration::from_millis(500);
    for capture in [NOW, NOW + half, NOW - half] {
        assert_eq!(inbox.get(capture).len(), 1);
    }
    let beyond = half + Duration::from_millis(1);
    assert!(inbox.get(NOW + beyond).is_empty() && inbox.get(NOW - beyond).is_empty());
    assert!(!inbox.told.load(Ordering::Relaxed), "they fitted the first pair");
    inbox.take(read_boxes(
        br#"{"stamp": 1790000000, "boxes": [{"label": "a", "box": [0, 0, 1, 1]}]}"#,
        NOW,
    ));
    assert!(inbox.get(NOW).is_empty() && inbox.told.load(Ordering::Relaxed));
    inbox.take(read_boxes(br#"{"stamp": 1800000000, "boxes": []}"#, NOW));
    assert_eq!(inbox.get(NOW), []);
}

#[test]
fn datagrams_are_taken_on_loopback_only() {
    for (address, words) in [
        ("udp://0.0.0.0:9", "no authentication"),
        ("udp://192.168.1.2:9", "no authentication"),
        ("udp://[::]:9", "no authentication"),
        ("udp://example.org:9", "IP address"),
        ("udp://127.0.0.1", "\"udp://127.0.0.1:PORT\""),
        ("udp://127.0.0.1:70000", "port"),
        ("tcp://127.0.0.1:9", "stdin"),
    ] {
        let error = format!("{:#}", BoxSource::open(address, FRESH).err().unwrap());
        assert!(error.contains(words), "{error}");
    }
    let source = BoxSource::open("udp://127.0.0.1:0", FRESH).unwrap();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    let send = |message: &[u8]| sender.send_to(message, source.address().unwrap()).unwrap();
    send(b"{\"boxes\": [{\"label\": \"cat\", \"box\": [0, 0, 1, 1]}]}\n");
    until(|| source.newest(unix_time()).first().is_some_and(|found| found.label == "cat"));
    send(b"\xff");
    send(b"{}");
    until(|| source.refused() == 2);
}
