//! Network cameras that state by their own clocks when they captured a frame. The network delays the right
//! one by 80 ms, more than half a frame, so the clocks are followed only with the offset that says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use gstreamer as gst;
use gstreamer::prelude::*;
use gstreamer_app::AppSrc;

use stereod_io::source::gst::Offset;

use super::*;
use crate::common::outcome::Patience;

/// Two cameras that send one numbered frame every 100 ms by RTP over UDP, with reports of their clock.
struct Cameras {
    ports: [u16; 2],
    pipelines: [gst::Pipeline; 2],
    end: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Cameras {
    fn start() -> Self {
        gst::init().unwrap();
        // An even port for the frames, and the next one for the reports.
        let free = || loop {
            let bind = |port: u16| std::net::UdpSocket::bind(("127.0.0.1", port));
            let port = bind(0).unwrap().local_addr().unwrap().port() & !1;
            if bind(port).is_ok() && bind(port + 1).is_ok() {
                return port;
            }
        };
        let ports = [free(), free()];
        let pipelines = [(ports[0], 0), (ports[1], 80_000)].map(|(port, late_us)| {
            let text = format!(
                "rtpbin name=b rtcp-sync-send-time=false \
                 appsrc name=in is-live=true format=time \
                 caps=video/x-raw,format=GRAY8,width={},height={},framerate=10/1 ! videoconvert \
                 ! video/x-raw,format=I420 ! jpegenc ! rtpjpegpay mtu=60000 ! b.send_rtp_sink_0 \
                 b.send_rtp_src_0 ! queue ! identity sleep-time={late_us} \
                 ! udpsink host=127.0.0.1 port={port} sync=false async=false \
                 b.send_rtcp_src_0 ! udpsink host=127.0.0.1 port={} sync=false async=false",
                numbered_videos::WIDTH,
                numbered_videos::HEIGHT,
                port + 1
            );
            let pipeline = gst::parse::launch(&text).unwrap().downcast::<gst::Pipeline>().unwrap();
            pipeline.set_state(gst::State::Playing).unwrap();
            pipeline.state(gst::ClockTime::from_seconds(LIMIT.as_secs())).0.unwrap();
            pipeline
        });
        let inputs = pipelines.each_ref().map(|pipeline| {
            let input = pipeline.by_name("in").unwrap().downcast::<AppSrc>().unwrap();
            (input, pipeline.base_time().unwrap())
        });
        let end = Arc::new(AtomicBool::new(false));
        let ended = end.clone();
        let thread = std::thread::spawn(move || {
            let begun = Instant::now();
            for number in (0..=u8::MAX).cycle() {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                // Both views are of one moment, however long the pushing takes.
                let moment = gst::SystemClock::obtain().time();
                for ((input, base), eye) in inputs.iter().zip(Eye::BOTH) {
                    let view = numbered_videos::view(eye, number);
                    let mut buffer = gst::Buffer::from_slice(view.pixels().to_vec());
                    buffer.get_mut().unwrap().set_pts(moment - *base);
                    input.push_buffer(buffer).unwrap();
                }
                let period = begun.elapsed().as_millis() as u64 % 100;
                std::thread::sleep(Duration::from_millis(100 - period));
            }
        });
        Self { ports, pipelines, end, thread: Some(thread) }
    }

    fn spec(&self) -> SourceSpec {
        let [left, right] = self.ports.map(|port| {
            format!(
                "rtpbin name=b udpsrc address=127.0.0.1 port={port} caps=\"application/x-rtp,media=video,\
                 encoding-name=JPEG,clock-rate=90000,payload=26\" ! b.recv_rtp_sink_0 \
                 udpsrc address=127.0.0.1 port={} caps=application/x-rtcp ! b.recv_rtcp_sink_0 \
                 b. ! rtpjpegdepay ! jpegdec",
                port + 1
            )
        });
        SourceSpec::two(left, right)
    }
}

impl Drop for Cameras {
    fn drop(&mut self) {
        self.end.store(true, Ordering::SeqCst);
        self.thread.take().unwrap().join().unwrap();
        for pipeline in &self.pipelines {
            pipeline.set_state(gst::State::Null).unwrap();
        }
    }
}

#[test]
fn frames_over_rtp_are_paired_by_the_clocks_of_their_senders() {
    let cameras = Cameras::start();
    let options = GstOptions { offset: Offset::Ns(-80_000_000), ..options() };
    let mut source = open(&cameras.spec(), &options).unwrap();
    let state = source.live_state().expect("a live source");
    let (mut patience, mut after) = (Patience::begin(), Vec::new());
    let known = || state.summary().synchronisation.filter(|known| known.sender_clock.is_some());
    source
        .run(&Switch::default(), &mut |pair, _| {
            let [left, right] = [&pair.left, &pair.right].map(|view| numbered_videos::read(view).1);
            if known().is_some() {
                after.push((left, right, pair.skew_ns.unwrap_or(i64::MAX)));
            }
            if after.len() == 20 || patience.is_over() {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(after.len(), 20, "the senders' clock was not found");
    assert!(after.iter().all(|(left, right, _)| left == right), "{after:?}");
    let known = known().unwrap();
    assert_eq!(known.sender_clock, Some("NTP"));
    let differences = known.difference_ms.unwrap();
    assert!(differences.max < 25.0, "{differences:?}");
    // The quickest frames count, so a busy machine changes it little.
    let late = known.arrival_ms.unwrap();
    assert!((50.0..500.0).contains(&late), "{late} ms");
    let SourceCounts { left, right, pairs, unpaired_left, unpaired_right, .. } = source.counts();
    assert_eq!((left, right), (pairs + unpaired_left, pairs + unpaired_right));
}
