//! Properties of the views of a recording, from their first images.

use anyhow::{Context, Error, Result, bail, ensure};

use super::decoder::{self, Decoder};
use super::interface::{Message, Topic};
use super::messages;
use super::open::Recording;
use super::timing::{Clock, Firsts};
use crate::source::gst::{GstOptions, Undecodable, Views};
use stereod_core::frame::Image;

/// Images of a view that may be unreadable before the first readable one.
const UNREADABLE_MAX: usize = 50;

pub(super) struct Beginning {
    pub first: [(usize, usize); 2],
    pub clock: Clock,
    pub has_colour: bool,
    pub white: u8,
}

impl Beginning {
    /// Reads the first images of both views. A live source is not waited for.
    pub(super) fn of(
        recording: &mut Recording,
        topics: [usize; 2],
        options: &GstOptions,
        is_live: bool,
    ) -> Result<Self> {
        recording.begin(&topics)?;
        let mut decoder = Decoder::new(options, Some(topics));
        let (mut message, mut firsts) = (Message::default(), Firsts::default());
        let mut seen = Seen { topics, ..Seen::default() };
        let mut is_whole = true;
        let mut lost = Vec::new();
        while is_whole && (!firsts.are_enough(is_live) || seen.sizes.iter().any(Option::is_none)) {
            ensure!(!options.stop.is_set(), "stopped while the recording was being opened");
            is_whole = recording.next(&mut message)?;
            lost.extend(recording.reader.lost());
            let images = if is_whole {
                let topic = &recording.topics()[message.topic];
                let read = messages::picture(topic, message.log_ns, &message.data);
                if let Ok((stamp, picture)) = &read {
                    firsts.note_message(topics, &message, *stamp, picture);
                }
                match seen.knows(message.topic) {
                    true => continue,
                    false => decoder.decode(recording, message.topic, read)?,
                }
            } else {
                decoder.finish()?
            };
            for image in images {
                seen.note(recording, image)?;
            }
        }
        let found = |eye: usize| {
            seen.sizes[eye].with_context(|| {
                let Topic { name, .. } = &recording.topics()[topics[eye]];
                let damage = lost.first().map(|lost| lost.what.clone());
                let reason = seen.reasons[eye].as_ref().map(|reason| format!("{reason:#}"));
                let why = reason.or(recording.reader.cut()).or(damage);
                let why = why.map_or(String::new(), |why| format!(": {why}"));
                format!("{}: {name} has no readable image{why}", recording.name)
            })
        };
        let first = [found(0)?, found(1)?];
        let white = decoder.white(topics[0]).min(decoder.white(topics[1]));
        Ok(Self { first, clock: firsts.clock(), has_colour: seen.has_colour, white })
    }
}

#[derive(Default)]
struct Seen {
    topics: [usize; 2],
    sizes: [Option<(usize, usize)>; 2],
    has_colour: bool,
    /// Numbers of the images that cannot be read, and the first reasons.
    flaws: [usize; 2],
    reasons: [Option<Error>; 2],
}

impl Seen {
    fn knows(&self, topic: usize) -> bool {
        self.topics.iter().zip(&self.sizes).all(|(own, size)| *own != topic || size.is_some())
    }

    fn note(&mut self, recording: &Recording, image: decoder::Image) -> Result<()> {
        match image.views {
            Ok(views) => {
                for (eye, view) in views_of(views, image.topic, self.topics, false) {
                    self.sizes[eye].get_or_insert((view.width(), view.height()));
                    self.has_colour |= eye == 0 && view.chroma().is_some();
                }
            }
            // A video may begin long before a frame that builds on no other.
            Err(error) if error.is::<Undecodable>() => {}
            Err(error) => {
                let eye = usize::from(image.topic != self.topics[0]);
                self.flaws[eye] += 1;
                let reason = self.reasons[eye].get_or_insert(error);
                if self.flaws[eye] > UNREADABLE_MAX {
                    let Topic { name, .. } = &recording.topics()[image.topic];
                    bail!("{}: {name} has no readable image: {reason:#}", recording.name);
                }
            }
        }
        Ok(())
    }
}

/// Returns each view of an image of this topic with its side.
pub(super) fn views_of(
    views: Views,
    topic: usize,
    topics: [usize; 2],
    swap: bool,
) -> impl Iterator<Item = (usize, Image)> {
    let views = match views {
        Views::One(view) => [Some((usize::from(topic != topics[0]), view)), None],
        Views::Both(first, second) => {
            [Some((usize::from(swap), first)), Some((usize::from(!swap), second))]
        }
    };
    views.into_iter().flatten()
}
