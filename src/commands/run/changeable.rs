//! Which settings can change while a run goes on, and why the others cannot.

use crate::settings::{Loaded, Output, StreamView};

/// The sections all of whose keys can change in a run, one key aside where outputs depend on it.
pub const LIVE_SECTIONS: [&str; 2] = ["matching", "colour"];

/// Keys of other sections that can.
const LIVE_KEYS: [(&str, &str); 3] =
    [("alignment", "warn_px"), ("metrics", "unhealthy_s"), ("log", "filter")];

/// The keys that say which disparities there are.
const RANGE_KEYS: [&str; 2] = ["disparities", "min_disparity"];

/// Why a key cannot change in this run: `None` where it can, empty where it never can.
pub fn why_fixed(section: &str, key: &str, loaded: &Loaded) -> Option<&'static str> {
    if section == "matching" && RANGE_KEYS.contains(&key) {
        return why_range_fixed(&loaded.settings.output);
    }
    let live = LIVE_SECTIONS.contains(&section) || LIVE_KEYS.contains(&(section, key));
    (!live).then_some("")
}

/// Why the range of disparities cannot change; `None` where it can.
pub fn why_range_fixed(output: &Output) -> Option<&'static str> {
    // All of them say once for all frames what their numbers mean.
    if output.record().is_some() {
        return Some("the recording says for all its frames what the range is");
    }
    if output.stream().is_some() && output.stream_view == StreamView::Numbers {
        return Some("who receives the stream's numbers knows one range");
    }
    output.pictures().map(|_| "disparity.json says for all pictures what the range is")
}
