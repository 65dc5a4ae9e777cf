//! Metrics for Prometheus, in the OpenMetrics text format
//! (<https://prometheus.io/docs/specs/om/open_metrics_spec/>).
//!
//! Nothing is counted here: a scrape formats the newest status of the run.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use crate::followed::Followed;
use crate::status::RunStatus;

/// Returns the metrics of a run, with its health, and those of the process.
pub fn text(
    run: Option<(Arc<RunStatus>, bool)>,
    process: Option<Process>,
) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Told { run, process }));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

#[derive(Debug)]
struct Told {
    run: Option<(Arc<RunStatus>, bool)>,
    process: Option<Process>,
}

impl Collector for Told {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let mut page = Page(encoder);
        if let Some((status, healthy)) = &self.run {
            page.run(status, *healthy)?;
            page.pictures(status)?;
            page.odometry(status)?;
        }
        match &self.process {
            Some(process) => page.process(process),
            None => Ok(()),
        }
    }
}

type Label<'a> = (&'static str, &'a str);

struct Page<'a>(DescriptorEncoder<'a>);

impl Page<'_> {
    fn run(&mut self, status: &RunStatus, healthy: bool) -> fmt::Result {
        let version = env!("CARGO_PKG_VERSION");
        let build = [("version", version), ("source", &status.source), ("engine", &status.engine)];
        self.0
            .encode_descriptor("stereod_build", "What runs", None, MetricType::Info)?
            .encode_info(&build)?;
        self.gauge("stereod_running", "Since the run began", Unit::Seconds, status.running)?;
        self.gauge("stereod_healthy", "1 where pairs flow", plain(), healthy.into())?;

        self.counters("stereod_frames", "Frames of a view", eyes(status.frames))?;
        self.counter("stereod_pairs", "Pairs that the source delivered", status.pairs)?;
        self.counter("stereod_matched", "Pairs matched", status.counts.matched)?;
        self.counters(
            "stereod_unpaired_frames",
            "Frames of a view without a partner",
            eyes(status.unpaired),
        )?;
        self.counter(
            "stereod_dropped_pairs",
            "Pairs dropped because the engine was busy",
            status.counts.dropped,
        )?;
        let taken =
            status.outputs.iter().map(|output| ([("output", &*output.name)], output.frames));
        self.counters("stereod_output_frames", "Maps taken by an output", taken)?;
        let dropped = status.outputs.iter().flat_map(|output| {
            let of = |cause| [("output", &*output.name), ("cause", cause)];
            [(of("busy"), output.dropped), (of("failed"), output.failed)]
        });
        self.counters(
            "stereod_output_dropped_frames",
            "Maps that an output was too busy for, and those that it failed to write",
            dropped,
        )?;
        let Some(cameras) = &status.cameras else { return Ok(()) };
        let help = "How often a camera was lost and found again";
        self.counters("stereod_reconnects", help, eyes(cameras.map(|camera| camera.reconnects)))?;
        let help = "Frames of a camera that arrived damaged or never";
        let broken = cameras.map(|camera| camera.broken + camera.missed + camera.mistimed);
        self.counters("stereod_broken_frames", help, eyes(broken))?;
        let lost = cameras.iter().filter(|camera| camera.lost).count();
        self.gauge("stereod_lost_cameras", "Cameras that are lost just now", plain(), lost as f64)
    }

    fn pictures(&mut self, status: &RunStatus) -> fmt::Result {
        for (name, help, times) in [
            (
                "stereod_latency_seconds",
                "From a pair's capture (recordings: its arrival) to its disparity",
                &status.latency,
            ),
            (
                "stereod_engine_seconds",
                "From the engine's taking a pair to its map",
                &status.engine_time,
            ),
            ("stereod_device_seconds", "How long a device computed a pair", &status.device_time),
            ("stereod_skew_seconds", "Capture times of the views of a pair apart", &status.skew),
        ] {
            let Some(times) = times else { continue };
            // Without a separate unit, because not every reader accepts one here.
            self.0
                .encode_descriptor(name, help, None, MetricType::Histogram)?
                .encode_histogram::<NoLabelSet>(times.sum, times.count, &times.classes, None)?;
        }
        if let Some(share) = status.valid_share {
            let help = "Share of the pixels of the last map that have a disparity";
            self.gauge("stereod_valid", help, Unit::Other("ratio".into()), share)?;
        }
        if let Some(shares) = &status.verdicts {
            let shares = [
                ("agree", shares.agree),
                ("only_network", shares.only_network),
                ("only_sgm", shares.only_sgm),
                ("contradict", shares.contradict),
                ("unknown", shares.unknown),
            ];
            let shares = shares.map(|(name, percent)| ([("verdict", name)], percent / 100.0));
            let help = "Share of the pixels of the last map with this verdict on the network";
            self.gauges("stereod_verdicts", help, Unit::Other("ratio".into()), shares)?;
        }
        if let Some(seen) = status.exposure.as_ref().and_then(|exposure| exposure.measured) {
            let views = [seen.left, seen.right];
            let help = "Noise of the pictures, standard deviation";
            self.gauges("stereod_noise", help, levels(), eyes(views.map(|view| view.noise)))?;
            let help = "Mean brightness of the pictures";
            let brightness = eyes(views.map(|view| view.brightness));
            self.gauges("stereod_brightness", help, levels(), brightness)?;
            let help = "Share of the pixels that are saturated";
            let ratio = Unit::Other("ratio".into());
            self.gauges("stereod_saturated", help, ratio, eyes(views.map(|view| view.saturated)))?;
        }
        let Some(alignment) = &status.alignment else { return Ok(()) };
        let Some(seen) = alignment.measured else { return Ok(()) };
        let pixels = || Unit::Other("pixels".into());
        let help = "Difference between the rows of the views, root mean square";
        self.gauge("stereod_row_error", help, pixels(), seen.row_error_px)?;
        let degrees = Unit::Other("degrees".into());
        let help = "Rotation of the right view against the left one, clockwise";
        self.gauge("stereod_roll", help, degrees, seen.roll_deg)?;
        let help = "1 where the alignment of the views is worth a warning";
        self.gauge("stereod_misaligned", help, plain(), f64::from(u8::from(alignment.alarm)))
    }

    fn odometry(&mut self, status: &RunStatus) -> fmt::Result {
        let followed = status.odometry.as_ref().and_then(|odometry| odometry.measured);
        let Some(Followed { lost, newest, .. }) = followed else { return Ok(()) };
        let help = "Length of the path, without what happened in its breaks";
        self.gauge("stereod_odometry_path", help, Unit::Meters, newest.path_m)?;
        let help = "Standard deviation of the error of the position as a share of the path";
        let ratio = Unit::Other("ratio".into());
        self.gauge("stereod_odometry_drift", help, ratio, newest.drift())?;
        let is_lost = u8::from(newest.lost.is_some());
        self.gauge("stereod_odometry_lost", "1 while the rig is lost", plain(), is_lost.into())?;
        self.counter("stereod_odometry_lost_pairs", "Pairs without a pose", lost)?;
        let help = "Breaks of the path, in which the motion is not known";
        self.counter("stereod_odometry_breaks", help, newest.breaks.into())
    }

    /// Uses the names that every Prometheus client uses.
    fn process(&mut self, process: &Process) -> fmt::Result {
        let help = "Memory of this process in RAM";
        self.gauge("process_resident_memory", help, Unit::Bytes, process.resident_bytes as f64)?;
        let help = "Open files of this process";
        self.gauge("process_open_fds", help, plain(), process.open_files as f64)?;
        self.gauge("process_threads", "Threads of this process", plain(), process.threads as f64)?;
        let counter = ConstCounter::new(process.cpu_seconds);
        let (unit, kind) = (Unit::Seconds, counter.metric_type());
        let help = "Time on processors, user and system";
        counter.encode(self.0.encode_descriptor("process_cpu", help, Some(&unit), kind)?)
    }

    fn gauge(
        &mut self,
        name: &str,
        help: &str,
        unit: impl Into<Option<Unit>>,
        value: f64,
    ) -> fmt::Result {
        let (gauge, unit) = (ConstGauge::new(value), unit.into());
        let kind = gauge.metric_type();
        gauge.encode(self.0.encode_descriptor(name, help, unit.as_ref(), kind)?)
    }

    /// Adds a gauge with several values, each with its label.
    fn gauges<'a>(
        &mut self,
        name: &str,
        help: &str,
        unit: Unit,
        values: impl IntoIterator<Item = ([Label<'a>; 1], f64)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, Some(&unit), MetricType::Gauge)?;
        for (labels, value) in values {
            ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        let counter = ConstCounter::new(value);
        counter.encode(self.0.encode_descriptor(name, help, None, counter.metric_type())?)
    }

    fn counters<'a, const LABELS: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = ([Label<'a>; LABELS], u64)>,
    ) -> fmt::Result {
        let mut values = values.into_iter().peekable();
        if values.peek().is_none() {
            return Ok(());
        }
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, value) in values {
            ConstCounter::new(value).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

fn eyes<T: Copy>([left, right]: [T; 2]) -> [([Label<'static>; 1], T); 2] {
    [([("eye", "left")], left), ([("eye", "right")], right)]
}

fn levels() -> Unit {
    Unit::Other("levels".into())
}

fn plain() -> Option<Unit> {
    None
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Process {
    /// Resident memory in bytes.
    pub resident_bytes: u64,
    /// CPU time so far, user and system, in seconds.
    pub cpu_seconds: f64,
    pub threads: u64,
    pub open_files: u64,
}

impl Process {
    /// Returns the present state; `None` if the system does not provide it.
    #[cfg(target_os = "linux")]
    pub fn now() -> Option<Self> {
        let process = procfs::process::Process::myself().ok()?;
        let stat = process.stat().ok()?;
        Some(Self {
            resident_bytes: stat.rss * procfs::page_size(),
            cpu_seconds: (stat.utime + stat.stime) as f64 / procfs::ticks_per_second() as f64,
            threads: stat.num_threads.try_into().unwrap_or(0),
            open_files: process.fd_count().ok()? as u64,
        })
    }

    /// Returns the present state; `None` if the system does not provide it.
    #[cfg(not(target_os = "linux"))]
    pub fn now() -> Option<Self> {
        None
    }
}
