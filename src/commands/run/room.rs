//! What the pictures and maps of a run may take while they wait between its parts.

use crate::memory::{Budget, Reserved, TooMuch, product};
use crate::settings::Queue;

/// Pairs in the hands of the source, the pairing and the outputs, beside those that wait.
const IN_HAND: usize = 8;

/// Reserves memory for all that may be on its way at once: `queue.pairs` raw pairs of size `raw` before
/// the engine, which holds `in_flight` of them, and `queue.results` maps of size `matched`, with their
/// pairs, behind it. The outputs share them.
///
/// # Errors
/// Where the budget has less left.
pub fn reserve(
    queue: &Queue,
    raw: (usize, usize),
    matched: (usize, usize),
    in_flight: usize,
) -> Result<Reserved, TooMuch> {
    let before = product([2, raw.0, raw.1, queue.pairs + in_flight + IN_HAND]);
    // Two bytes of disparity a pixel, one of each eye.
    let behind = product([4, matched.0, matched.1, queue.results + in_flight + IN_HAND]);
    let what = format!(
        "keeping {} pairs and {} results of {}x{}",
        queue.pairs, queue.results, raw.0, raw.1
    );
    let cure = "smaller pictures, fewer [queue] pairs and results";
    Budget::of_process().reserve(what, before.saturating_add(behind), cure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    #[test]
    fn long_queues_of_large_pictures_are_refused() {
        drop(reserve(&Settings::default().queue, (640, 480), (640, 480), 1).unwrap());
        let queue = Queue { pairs: 1024, results: 1024 };
        let error = reserve(&queue, (32768, 32768), (32768, 32768), 16).unwrap_err().to_string();
        assert!(error.contains("1024 pairs and 1024 results of 32768x32768 needs"), "{error}");
    }
}
