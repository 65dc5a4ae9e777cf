//! Internal items for the tests in tests/, under their internal paths. Not an API: it changes without notice.

pub mod alignment {
    pub use crate::observe::alignment::{
        Event, Limits, Measurement, Monitor, Options, Verdict, measure,
    };
}
pub mod calibration {
    pub mod board {
        pub mod detect {
            pub use crate::calibration::board::detect::Detector;
        }
        pub use crate::calibration::board::Board;
    }
    pub mod format {
        pub use crate::calibration::format::{Format, Loaded, ReadOptions, parse, read, render};
    }
    pub use crate::calibration::{
        CalibrationError, Lens, Rectifier, RectifyMap, StereoCalibration,
    };
}
pub mod chroma {
    pub use crate::core::chroma::{Chroma, ChromaPlane, ColourCoding};
}
pub mod clock {
    pub use crate::core::clock::CaptureClock;
}
pub mod control {
    pub use crate::core::control::{Control, Switch};
}
pub mod engine {
    pub mod cpu {
        pub use crate::engine::cpu::{CpuEngine, CpuOptions, SimdChoice};
    }
    pub mod cuda {
        pub use crate::engine::cuda::{
            Cache, CudaEngine, CudaOptions, Job, Nvrtc, Properties, Target, Unit, Unusable,
            compile, list, specialisations,
        };
    }
    pub use crate::engine::{Engine, PairSpec};
}
pub mod frame {
    use crate::core::frame::{DisparityMap, DisparityRange};
    pub use crate::core::frame::{Image, Mask, Matched, StereoPair};

    /// Makes a map of these values.
    pub fn disparity_map(width: usize, range: DisparityRange, values: Vec<i16>) -> DisparityMap {
        let pixels = crate::core::pool::Pooled::unpooled(values);
        DisparityMap::new(width, pixels.len() / width, range, pixels)
    }
}
pub mod matching {
    pub use crate::matching::{History, PairResult, match_next, match_pair};
}
pub mod memory {
    pub use crate::core::memory::Budget;
}
pub mod pair {
    pub use crate::source::pairing::PairBy;
}
pub mod pool {
    pub use crate::core::pool::{Pool, Pooled};
}
pub mod settings {
    pub use crate::settings::{Layers, Matching};
}
pub mod sink {
    pub mod colour {
        pub use crate::sink::colour::{ColourMap, ColourRange, ColourScale, colourise};
    }
    pub mod colouring {
        pub use crate::sink::colouring::{Colouring, LiveColouring};
    }
    pub mod encoding {
        pub use crate::sink::encoding::Encoding;
    }
    pub mod numbers {
        pub use crate::sink::numbers::{DepthUnit, Numbers, Quantity};
    }
    pub mod pictures {
        pub use crate::sink::pictures::{PICTURES, Pictures};
        pub use crate::sink::still::StillFormat;
    }
    pub mod png {
        pub use crate::sink::png::{encode_grey, encode_rgb};
    }
    pub mod video {
        pub use crate::sink::video::{
            Preview, Recorder, RecordingTags, RectifiedVideo, RectifiedVideoOptions, VideoView,
            read_recording_tags,
        };
    }
    pub mod window {
        pub use crate::status::{Banner, Counts, Judged, RunStatus};
        pub use crate::window::{
            ALL_DEPTHS, Histogram, Hover, Legend, Limits, Offscreen, Orbit, OverlayContent, Rates,
            Rows, Scene, Side, Timeline, Timing, View, Window, WindowOptions, WindowSink, Wipe,
            panes,
        };
    }
    pub use crate::sink::{Sink, StagesInTime, StreamInfo};
}
pub mod source {
    pub mod demo {
        pub use crate::source::demo::{DemoOptions, DemoSource};
    }
    pub mod gst {
        pub use crate::source::gst::{GstOptions, Keep, Reconnect, open};
    }
    pub mod live {
        pub use crate::source::live::LiveState;
    }
    pub mod orientation {
        pub use crate::source::orientation::Orient;
    }
    pub mod spec {
        pub use crate::source::spec::SourceSpec;
    }
    pub mod still {
        pub use crate::source::still::{read_colours, read_still};
    }
    pub mod tone {
        pub use crate::source::tone::Tone;
    }
    pub use crate::source::{Source, SourceCounts};
}
