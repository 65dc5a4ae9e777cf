use super::*;

fn mode(code: &[u8; 4], width: u32, height: u32, rates: &[u32]) -> Mode {
    let rates = rates.iter().map(|&rate| Rate::whole(rate)).collect();
    Mode { code: *code, width, height, rates }
}

/// Modes of USB 2 webcams: large raw frames are slow.
fn webcam() -> Vec<Mode> {
    vec![
        mode(b"YUYV", 640, 480, &[30, 15]),
        mode(b"YUYV", 1280, 720, &[10, 5]),
        mode(b"YUYV", 1920, 1080, &[5]),
        mode(b"MJPG", 640, 480, &[30, 15]),
        mode(b"MJPG", 1280, 720, &[60, 30, 15]),
        mode(b"MJPG", 1920, 1080, &[30]),
    ]
}

/// As industrial cameras on USB 3 are.
fn industrial() -> Vec<Mode> {
    vec![mode(b"GREY", 1280, 720, &[60, 30]), mode(b"YUYV", 1280, 720, &[60, 30])]
}

const USB2: UsbBus = UsbBus { number: 1, megabits: 480.0 };
const USB3: UsbBus = UsbBus { number: 2, megabits: 5000.0 };
const LIMIT: (u32, u32) = (1280, 720);

fn pair<'a>(left: &'a [Mode], right: &'a [Mode], bus: UsbBus) -> [Offer<'a>; 2] {
    [("left", left), ("right", right)].map(|(name, modes)| Offer { name, modes, bus: Some(bus) })
}

fn chosen(cameras: &[Offer], request: &CameraRequest) -> (String, Choice) {
    let choice = choose(cameras, request, LIMIT).unwrap();
    let text = |p: &Pick| format!("{} {}x{}@{}", p.format, p.width, p.height, p.rate);
    (choice.picks.iter().map(text).collect::<Vec<_>>().join(" "), choice)
}

#[test]
fn the_largest_size_that_is_fast_enough() {
    let webcam = webcam();
    let (text, choice) = chosen(&pair(&webcam, &webcam, USB2), &CameraRequest::default());
    assert_eq!(text, "MJPG 1280x720@30 MJPG 1280x720@30");
    assert!(
        choice.why.contains("the largest size up to 1280x720 that both cameras offer with 25/s")
    );
    assert!(choice.why.contains("no uncompressed format"), "{}", choice.why);
    assert_eq!(choice.warning, None);
    let industrial = industrial();
    let (text, choice) = chosen(&pair(&industrial, &industrial, USB3), &CameraRequest::default());
    assert_eq!(text, "GREY 1280x720@30 GREY 1280x720@30");
    assert!(choice.why.ends_with("; uncompressed"), "{}", choice.why);
}

#[test]
fn one_camera_alone_may_be_larger_for_two_views() {
    let webcam = [mode(b"MJPG", 2560, 720, &[30]), mode(b"MJPG", 1280, 480, &[30])];
    let offer = Offer { name: "both", modes: &webcam, bus: Some(USB2) };
    let choice = choose(&[offer], &CameraRequest::default(), (2560, 720)).unwrap();
    assert_eq!(choice.picks[0].width, 2560);
    assert!(choice.why.contains("the camera offers"));
}

#[test]
fn a_requested_rate_or_size_decides_the_rest() {
    let webcam = webcam();
    let cameras = pair(&webcam, &webcam, USB2);
    let small = CameraRequest { size: Some((640, 480)), ..CameraRequest::default() };
    assert_eq!(chosen(&cameras, &small).0, "YUYV 640x480@30 YUYV 640x480@30");
    let fast = CameraRequest { rate: Some(60.0), ..CameraRequest::default() };
    assert_eq!(chosen(&cameras, &fast).0, "MJPG 1280x720@60 MJPG 1280x720@60");
    let slow = CameraRequest { rate: Some(10.0), ..CameraRequest::default() };
    assert_eq!(chosen(&cameras, &slow).0, "YUYV 1280x720@10 YUYV 1280x720@10");
    let forced = CameraRequest { format: Some(Format::Mjpg), ..small };
    assert_eq!(chosen(&cameras, &forced).0, "MJPG 640x480@30 MJPG 640x480@30");
}

#[test]
fn raw_pictures_yield_where_the_bus_is_too_slow() {
    // 1280 x 720 x 2 bytes x 30 x 2 cameras are 110.6 MB/s; USB 2 carries 80 % of 60 MB/s.
    let modes = [mode(b"YUYV", 1280, 720, &[30]), mode(b"MJPG", 1280, 720, &[30])];
    let (text, choice) = chosen(&pair(&modes, &modes, USB2), &CameraRequest::default());
    assert_eq!(text, "MJPG 1280x720@30 MJPG 1280x720@30");
    let warning = choice.warning.unwrap();
    for part in ["111 MB/s", "48 MB/s", "USB bus 1", "on which both cameras are", "MJPG is taken"] {
        assert!(warning.contains(part), "{part}: {warning}");
    }
    // The same on USB 3: its 5 Gbit/s carry 400 MB/s.
    let (text, choice) = chosen(&pair(&modes, &modes, USB3), &CameraRequest::default());
    assert_eq!((text.as_str(), choice.warning), ("YUYV 1280x720@30 YUYV 1280x720@30", None));
    // On two buses each camera still has more than one of them carries.
    let mut apart = pair(&modes, &modes, USB2);
    apart[1].bus = Some(UsbBus { number: 9, ..USB2 });
    assert_eq!(chosen(&apart, &CameraRequest::default()).0, "MJPG 1280x720@30 MJPG 1280x720@30");
    // Small frames: 640 x 480 x 2 x 30 x 2 are 36.9 MB/s.
    let small = [mode(b"YUYV", 640, 480, &[30]), mode(b"MJPG", 640, 480, &[30])];
    assert_eq!(chosen(&pair(&small, &small, USB2), &CameraRequest::default()).1.warning, None);
    // An explicit request is accepted, with a warning.
    let forced = CameraRequest { format: Some(Format::Yuyv), ..CameraRequest::default() };
    let (text, choice) = chosen(&pair(&modes, &modes, USB2), &forced);
    assert_eq!(text, "YUYV 1280x720@30 YUYV 1280x720@30");
    assert!(choice.warning.unwrap().ends_with("frames may be lost"));
}

#[test]
fn a_bus_too_slow_for_one_rate_may_carry_a_lower_one() {
    // 800 x 600 x 2 x 2 cameras: 57.6 MB/s at 30, 48 MB/s at 25.
    let modes = [mode(b"YUYV", 800, 600, &[30, 25])];
    let (text, _) = chosen(&pair(&modes, &modes, USB2), &CameraRequest::default());
    assert_eq!(text, "YUYV 800x600@25 YUYV 800x600@25");
}

#[test]
fn cameras_that_are_slow_give_what_they_can() {
    let slow = [mode(b"GREY", 640, 480, &[10, 5]), mode(b"MJPG", 640, 480, &[15])];
    let (text, choice) = chosen(&pair(&slow, &slow, USB2), &CameraRequest::default());
    assert_eq!(text, "MJPG 640x480@15 MJPG 640x480@15");
    assert!(choice.why.contains("none is 25/s or more"), "{}", choice.why);
    let large = [mode(b"GREY", 2048, 1536, &[30]), mode(b"GREY", 1600, 1200, &[30])];
    let (text, choice) = chosen(&pair(&large, &large, USB3), &CameraRequest::default());
    assert_eq!(text, "GREY 1600x1200@30 GREY 1600x1200@30");
    assert!(choice.why.contains("none is up to 1280x720"), "{}", choice.why);
}

#[test]
fn different_cameras_meet_in_what_they_share() {
    let odd = vec![Mode {
        rates: vec![Rate { frames: 30000, seconds: 1001 }],
        ..mode(b"UYVY", 1280, 720, &[])
    }];
    let (webcam, industrial) = (webcam(), industrial());
    let (text, _) = chosen(&pair(&odd, &industrial, USB3), &CameraRequest::default());
    assert_eq!(text, "UYVY 1280x720@29.97 GREY 1280x720@30");
    let (text, _) = chosen(&pair(&webcam, &industrial, USB3), &CameraRequest::default());
    assert_eq!(text, "MJPG 1280x720@30 GREY 1280x720@30");
}

#[test]
fn refusals_say_what_there_is() {
    let webcam = webcam();
    let cameras = pair(&webcam, &webcam, USB2);
    let refused = |request: CameraRequest| choose(&cameras, &request, LIMIT).unwrap_err();
    let request = CameraRequest { size: Some((800, 600)), ..CameraRequest::default() };
    assert_eq!(
        refused(request),
        "left does not offer 800x600; it offers 640x480, 1280x720, 1920x1080"
    );
    let request = CameraRequest { format: Some(Format::Grey), ..CameraRequest::default() };
    assert_eq!(refused(request), "left does not offer GREY; it offers YUYV, MJPG");
    let request = CameraRequest { size: Some((640, 480)), rate: Some(60.0), format: None };
    assert_eq!(refused(request), "left does not offer 60 frames a second there; it offers 15, 30");
    let strange = [mode(b"RGB3", 640, 480, &[30])];
    let message =
        choose(&pair(&webcam, &strange, USB2), &CameraRequest::default(), LIMIT).unwrap_err();
    assert!(
        message.starts_with("right offers no format that can be read (GREY, NV12"),
        "{message}"
    );
    let other = [mode(b"GREY", 752, 480, &[30])];
    let message =
        choose(&pair(&webcam, &other, USB2), &CameraRequest::default(), LIMIT).unwrap_err();
    assert!(message.contains("no size and rate in common"), "{message}");
}
