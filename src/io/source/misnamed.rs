//! Names of sources that other programs take, each with the name that is taken here.

use stereod_core::redact::redact;

/// Protocols of addresses.
const PROTOCOLS: [&str; 9] = ["http", "https", "rtsp", "rtsps", "rtmp", "srt", "udp", "tcp", "hls"];

/// Prefixes of a camera's number in other programs.
const CAMERAS: [&str; 10] =
    ["/dev/video", "dev/video", "video", "usb", "v4l2", "v4l", "uvc", "webcam", "camera", "cam"];

/// Returns what is to be given instead of `name`, which is neither a file nor a readable address.
pub(super) fn cure(name: &str) -> Option<String> {
    let shown = redact(name);
    let after = |prefix: &str| {
        let rest = name.get(..prefix.len()).filter(|start| start.eq_ignore_ascii_case(prefix))?;
        Some(name[rest.len()..].trim_start_matches([':', '/']))
    };
    let is_number = |text: &&str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if let Some(number) = after("csi").filter(is_number) {
        return Some(format!(
            "{shown}: a camera at a CSI port is read through an element of GStreamer: 'nvarguscamerasrc \
             sensor-id={number} ! nvvidconv ! video/x-raw,format=NV12' on a Jetson, 'libcamerasrc camera-name=NAME' on \
             a Raspberry Pi (`stereod devices` names it)"
        ));
    }
    let number = CAMERAS.into_iter().find_map(|prefix| after(prefix).filter(is_number));
    if let Some(number) = number.or_else(|| Some(name).filter(is_number)) {
        let device = if cfg!(windows) { "mfvideosrc device-index=" } else { "/dev/video" };
        return Some(format!(
            "{shown}: no such file; a camera is given by its device, such as {device}{number} (`stereod devices` \
             lists them)"
        ));
    }
    if let Some((protocol, rest)) = name.split_once([':', '/'])
        && PROTOCOLS.contains(&protocol.to_ascii_lowercase().as_str())
        && !name.contains("://")
    {
        let rest = rest.trim_start_matches([':', '/']);
        return Some(format!(
            "{shown}: no such file; an address has :// behind its protocol: {}",
            redact(&format!("{protocol}://{rest}"))
        ));
    }
    of_windows(name).or_else(|| bare_address(name))
}

/// Explains a path of Windows.
fn of_windows(name: &str) -> Option<String> {
    let bytes = name.as_bytes();
    let has_drive = matches!(bytes, [drive, b':', b'\\' | b'/', ..] if drive.is_ascii_alphabetic());
    if cfg!(windows) || !(has_drive || name.starts_with("\\\\")) {
        return None;
    }
    let cure = match has_drive {
        true => format!(
            "in WSL it is /mnt/{}{}",
            char::from(bytes[0]).to_ascii_lowercase(),
            name[2..].replace('\\', "/")
        ),
        false => "mount the share, and give the path below its folder".to_owned(),
    };
    Some(format!("{name}: no such file; this is a path of Windows: {cure}"))
}

/// Explains a host without a protocol: `192.168.1.5/video`, `camera.local:8080`.
fn bare_address(name: &str) -> Option<String> {
    let authority = name.split('/').next()?;
    let host = authority.rsplit('@').next()?;
    let (host, port) = host.split_once(':').map_or((host, None), |(host, port)| (host, Some(port)));
    let is_port = |port: &str| port.parse::<u16>().is_ok();
    let is_address = match port {
        Some(port) => !host.is_empty() && is_port(port),
        None => host.parse::<std::net::Ipv4Addr>().is_ok(),
    };
    is_address.then(|| {
        let with = |protocol: &str| redact(&format!("{protocol}://{name}"));
        format!(
            "{}: no such file; an address begins with its protocol: {} or {}",
            redact(name),
            with("http"),
            with("rtsp")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_programs_come_with_their_own_here() {
        for (name, words) in [
            ("0", "such as /dev/video0 (`stereod devices`"),
            ("usb:1", "such as /dev/video1"),
            ("v4l2://2", "such as /dev/video2"),
            ("video0", "such as /dev/video0"),
            ("csi://0", "'nvarguscamerasrc sensor-id=0 !"),
            ("rtsp:/host/1", "behind its protocol: rtsp://host/1"),
            ("http//host/1", "behind its protocol: http://host/1"),
            ("RTSP:host", "RTSP://host"),
            ("C:\\v\\l.mp4", "in WSL it is /mnt/c/v/l.mp4"),
            ("\\\\nas\\l.mp4", "mount the share"),
            ("192.168.1.5/video", "http://192.168.1.5/video or rtsp://192.168.1.5/video"),
            ("camera.local:8080", "http://camera.local:8080 or"),
        ] {
            let cure = cure(name).unwrap();
            assert!(cure.contains(words), "{cure}");
        }
        for name in ["left.mp4", "left", "http", "1.5", "take:3a", "c/left.mp4", "camera", "", "é"]
        {
            assert_eq!(cure(name), None, "{name}");
        }
    }

    #[test]
    fn secrets_stay_out() {
        for name in ["rtsp:/me:hushhush@host/1", "me:hushhush@192.168.1.5:554/1"] {
            assert!(!cure(name).unwrap().contains("hush"), "{name}");
        }
    }
}
