//! The engine of a run, and memory for queued pairs and results.

use crate::run::prepare::ranging;
use crate::run::prepare::rig::Rig;
use crate::settings::{Loaded, Queue};
use stereod_core::engine::{self, Choice, Engine};
use stereod_core::memory::{Budget, Reserved, TooMuch, product};
use stereod_core::pool::Pool;
use stereod_io::source::SourceInfo;

/// Pairs that the source, the pairing and the outputs hold, besides those in queues.
const IN_HAND: usize = 8;

/// Creates the engine, which from now on provides memory for `pictures`, and reserves memory for
/// the queues before and behind it.
pub fn open(
    loaded: &Loaded,
    info: &SourceInfo,
    rig: &Rig,
    pictures: &Pool<u8>,
) -> anyhow::Result<(Box<dyn Engine>, Reserved)> {
    let settings = &loaded.settings;
    let choice = &settings.engine.kind;
    let mut options = settings.engine.options();
    let (raw, matched) = (info.sizes(), rig.pairs.size);
    let waiting = |depth| bytes_waiting(&settings.queue, raw, matched, depth, info.has_colour);
    let depth = if *choice == Choice::Cpu { 1 } else { options.cuda.in_flight };
    let small = ranging::SMALL.min(Budget::of_process().left() / 16);
    options.spare = waiting(depth).saturating_add(small);
    let engine = engine::create(choice, &loaded.params, &rig.pairs, &options)?;
    let room = reserve(&settings.queue, raw[0], waiting(engine.depth()))?;
    if let Some(memory) = engine.picture_memory() {
        pictures.take_from(memory);
    }
    tracing::info!("matching on {}", engine.description());
    Ok((engine, room))
}

/// Returns the memory in bytes of all pairs and results in transit: `queue.pairs` raw pairs of sizes
/// `raw` before the engine, `in_flight` of them in it, and `queue.results` maps of size `matched`
/// with their pairs behind it. The outputs share them.
fn bytes_waiting(
    queue: &Queue,
    raw: [(usize, usize); 2],
    matched: (usize, usize),
    in_flight: usize,
    has_colour: bool,
) -> u64 {
    // One byte for each view and at most two for its colour.
    let eyes = if has_colour { 6 } else { 2 };
    let pixels = raw.map(|(width, height)| product([width, height, eyes / 2]) as usize);
    let before = product([pixels[0].saturating_add(pixels[1]), queue.pairs + in_flight + IN_HAND]);
    // Two bytes of disparity per pixel, and one of confidence, which may be requested later.
    let behind = product([eyes + 3, matched.0, matched.1, queue.results + in_flight + IN_HAND]);
    before.saturating_add(behind)
}

fn reserve(queue: &Queue, raw: (usize, usize), bytes: u64) -> Result<Reserved, TooMuch> {
    let what = format!(
        "keeping {} pairs and {} results of {}x{}",
        queue.pairs, queue.results, raw.0, raw.1
    );
    let cure = "smaller pictures, fewer [queue] pairs and results";
    Budget::of_process().reserve(what, bytes, cure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    #[test]
    fn long_queues_of_large_pictures_are_refused() {
        let reserve = |queue: &Queue, size, in_flight, has_colour| {
            reserve(queue, size, bytes_waiting(queue, [size; 2], size, in_flight, has_colour))
        };
        drop(reserve(&Settings::default().queue, (640, 480), 1, false).unwrap());
        let queue = Queue { pairs: 1024, results: 1024 };
        let error = reserve(&queue, (32768, 32768), 16, true).unwrap_err().to_string();
        assert!(error.contains("1024 pairs and 1024 results of 32768x32768 needs"), "{error}");
    }
}
