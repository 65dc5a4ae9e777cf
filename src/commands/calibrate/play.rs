//! Playing a source while its pairs are watched.

use std::ops::ControlFlow;

use super::super::Error;
use stereod_core::control::Control;
use stereod_core::frame::StereoPair;
use stereod_core::queue::{LinkReceiver, WhenFull, link};
use stereod_core::thread;
use stereod_io::source::Source;
use stereod_io::source::pairing::pace::Pacer;

/// Plays the source, at most `limit` pairs of it, on its own thread while `watch` takes the pairs. If it is too slow, live pairs
/// are dropped. Recordings are played at their own speed if `paced`.
pub(super) fn play(
    mut source: Box<dyn Source>,
    limit: Option<u64>,
    control: &Control,
    paced: bool,
    watch: impl FnOnce(LinkReceiver<StereoPair>),
) -> Result<(), Error> {
    let when_full = if source.info().live { WhenFull::DropOldest } else { WhenFull::Block };
    let (sender, receiver) = link(2, when_full);
    let stop = &control.stop;
    let played = std::thread::scope(|scope| {
        let player = scope.spawn(move || {
            let (mut pacer, mut left) = (paced.then(Pacer::new), limit.unwrap_or(u64::MAX));
            source.run(stop, &mut |pair, _| {
                if let Some(pacer) = &mut pacer {
                    pacer.wait(pair.timestamp, || stop.is_set());
                }
                left -= 1;
                match sender.send(pair) {
                    Ok(()) if left > 0 => ControlFlow::Continue(()),
                    Ok(()) | Err(_) => ControlFlow::Break(()),
                }
            })
        });
        watch(receiver);
        thread::joined("the source", player.join()).map_err(anyhow::Error::from).flatten()
    });
    Ok(played?)
}
