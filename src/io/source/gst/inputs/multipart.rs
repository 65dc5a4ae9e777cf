//! Finds MJPEG over HTTP that GStreamer does not know: some servers (ESP32-CAM) leave out the boundary before the
//! first part, or the dashes of all boundaries.

use std::sync::Once;

use gstreamer as gst;

/// Length of the first part's header that is looked at, as in GStreamer's own function for boundaries.
const HEADER: u32 = 256;

/// Makes such streams JPEG, whose decoder skips the headers between the images. Called before any stream is
/// opened.
pub(in crate::source::gst) fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let caps = gst::Caps::new_empty_simple("image/jpeg");
        let suggested = caps.clone();
        let find = move |find: &mut gst::TypeFind| {
            if find.peek(0, HEADER).is_some_and(is_part) {
                find.suggest(gst::TypeFindProbability::Likely, &suggested);
            }
        };
        let rank = gst::Rank::MARGINAL;
        if gst::TypeFind::register(None, "stereod-parts", rank, None, Some(&caps), find).is_err() {
            tracing::debug!("MJPEG without a first boundary is not found");
        }
    });
}

/// Reports whether a stream begins with the header of a JPEG part.
fn is_part(start: &[u8]) -> bool {
    let length = start.iter().take_while(|byte| byte.is_ascii() && **byte != 0).count();
    let header = String::from_utf8_lossy(&start[..length]).to_ascii_lowercase();
    let is_jpeg = |line: &str| {
        let value = line.strip_prefix("content-type:").map(str::trim);
        value.is_some_and(|value| value.starts_with("image/jp"))
    };
    !header.trim_start().starts_with("--") && header.lines().any(is_jpeg)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::ops::ControlFlow;

    use super::*;
    use crate::control::Switch;
    use crate::source::gst::GstOptions;
    use crate::source::spec::SourceSpec;

    /// Sends parts without a first boundary to whoever connects, until they leave. Returns the address.
    fn serve() -> String {
        let mut image = Vec::new();
        let encoder = jpeg_encoder::Encoder::new(&mut image, 90);
        // Noise, so that few images fill GStreamer's buffers.
        let noise = |i: u32| (i.wrapping_mul(i).wrapping_mul(0x9e37_79b9) >> 13) as u8;
        let pixels: Vec<u8> = (0..320 * 240).map(noise).collect();
        encoder.encode(&pixels, 320, 240, jpeg_encoder::ColorType::Luma).unwrap();
        let part = [&b"Content-Type: image/jpeg\r\n\r\n"[..], &image, b"\r\n--frame\r\n"].concat();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for mut peer in listener.incoming().flatten() {
                let part = part.clone();
                std::thread::spawn(move || {
                    let head = "HTTP/1.0 200 OK\r\nContent-Type: multipart/x-mixed-replace; boundary=frame\r\n\r\n";
                    let asked = peer.read(&mut [0; 4096]);
                    let mut sent = asked.and_then(|_| peer.write_all(head.as_bytes()));
                    while sent.is_ok() {
                        std::thread::sleep(std::time::Duration::from_millis(50));
                        sent = peer.write_all(&part);
                    }
                });
            }
        });
        format!("http://{address}/")
    }

    #[test]
    fn a_stream_without_a_first_boundary_is_read() {
        let address = serve();
        let spec = SourceSpec::two(&address, &address);
        let patience = std::time::Duration::from_secs(120);
        let options = GstOptions { patience, ..GstOptions::default() };
        let mut source = crate::source::gst::open(&spec, &options).unwrap();
        assert_eq!((source.info().width, source.info().height), (320, 240));
        let (stop, mut pairs) = (Switch::default(), 0);
        source
            .run(&stop, &mut |_, _| {
                pairs += 1;
                if pairs < 20 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })
            .unwrap();
        assert_eq!(pairs, 20);
    }

    #[test]
    fn a_part_without_a_boundary_is_found() {
        for (start, expected) in [
            (&b"Content-Type: image/jpeg\r\nContent-Length: 9\r\n\r\n\xff\xd8"[..], true),
            (b"\r\ncontent-length: 9\r\ncontent-type:image/jpg\r\n\r\n\xff", true),
            (b"frame\r\nContent-Type: image/jpeg\r\n\r\n", true),
            // GStreamer finds these.
            (b"--frame\r\nContent-Type: image/jpeg\r\n\r\n", false),
            (b"\r\n--frame\r\nContent-Type: image/jpeg\r\n\r\n", false),
            (b"\xff\xd8\xff\xe0\r\nContent-Type: image/jpeg\r\n", false),
            (b"Content-Type: image/png\r\n\r\n", false),
            (b"", false),
        ] {
            assert_eq!(is_part(start), expected, "{start:?}");
        }
    }
}
