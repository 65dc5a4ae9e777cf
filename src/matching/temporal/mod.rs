//! The spatio-temporal stage: what stands still in both streams is known from their last pictures better than
//! from the newest one, which is noisy.
//!
//! A picture's background is predicted from those before it, whose sub-pixel [`shifts`] against it are
//! known, as their sum with [`coefficients`] that follow from the shifts alone; what is left of the picture without
//! its [`background`] is its noise and whatever moves. Denoising puts the background in the place of the picture
//! wherever both agree within the noise; whitening hands out the rest. The method is that of "Spatio-temporal image
//! processing on the GPU" (Habr, 2014), which registers against the newest picture by the gradient equations.
//!
//! Both eyes go by the same shifts and the same coefficients, because they are on one rig: so rows and
//! brightness of the two still agree afterwards. What is remembered of a stream is a [`State`], whose numbers lie as
//! [`Layout`] says on every engine.

pub mod background;
pub mod coefficients;
pub mod layout;
pub mod report;
pub mod shifts;

use crate::frame::{Image, TemporalReport, clamped};
use crate::matching::filter::State;
use crate::matching::pyramid::{half, smoothed};
use background::{Decision, Residual};
use coefficients::Coefficients;
use layout::{Header, Layout};
use shifts::Shift;

/// The name of the stage, and of its state in a stream's history.
pub const NAME: &str = "temporal";

/// Fewest and most pictures that are remembered.
pub const HISTORY: (u8, u8) = (2, 64);

/// Largest degree of the polynomial in the shift.
pub const DEGREE_MAX: u8 = 3;

/// What the stage is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// What stands still is matched without its noise.
    Denoise,
    /// Pictures are matched as they are; what is left of them without their background is handed out.
    Whiten,
}

/// How the stage works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Temporal {
    /// What it is for.
    pub mode: Mode,
    /// Number of pictures that are remembered ([`HISTORY`]).
    pub history: u8,
    /// Degree of the polynomial in the shift that the coefficients reproduce (0 to [`DEGREE_MAX`]).
    pub degree: u8,
}

/// What the stage makes of a pair.
#[derive(Debug)]
pub struct Outcome {
    /// Both pictures without the noise of what stands still.
    pub denoised: [Image; 2],
    /// The left picture without its background, a number a pixel ([`background::whitened`]).
    pub whitened: Vec<u16>,
    /// What is known of the pair now.
    pub report: TemporalReport,
}

/// Passes the next pair of a stream through the stage. `state` is what it left there at the pair before; empty
/// for the first one. One that another history left means nothing, and counts as none.
///
/// # Panics
/// Where the two pictures differ in size.
pub fn advance(eyes: [&Image; 2], state: &mut State, how: Temporal) -> Outcome {
    let size = (eyes[0].width(), eyes[0].height());
    assert_eq!((eyes[1].width(), eyes[1].height()), size, "size of the eyes");
    let layout = Layout::new(size, how.history);
    if state.len() != layout.words() {
        state.clear();
        state.resize(layout.words(), 0);
    }

    let mut header = Header::of(state);
    header.begin(size);
    let halves = eyes.map(smaller);
    let mut shifts = Vec::new();
    if header.count > 0 {
        let newest = look_for_newest(&halves, state, &layout, &header);
        shifts = shifts_of_all(&halves, state, &layout, &header, newest);
    }
    let coefficients = Coefficients::of(&shifts, how.degree);

    let residuals =
        [0, 1].map(|eye| Residual::of(eyes[eye], state, &layout, eye, &coefficients, &header));
    let decisions = [0, 1].map(|eye| {
        let Residual { values, variance } = &residuals[eye];
        Decision::of(values, *variance, size, &coefficients)
    });

    let slot = header.next_slot(how.history);
    let mut moving = 0;
    for (eye, (residual, decision)) in residuals.iter().zip(&decisions).enumerate() {
        let ages = layout.ages_mut(state, eye);
        let stored: Vec<u8> = (0..size.0 * size.1)
            .map(|i| {
                let pixel = eyes[eye].pixels()[i];
                moving += u32::from(decision.moving[i]);
                ages[i] = background::age(ages[i], decision.moving[i]);
                background::remembered(pixel, residual.values[i], ages[i], how.history)
            })
            .collect();
        let stored = Image::from_vec(size.0, size.1, stored);
        layout.half_mut(state, eye, slot).copy_from_slice(smaller(&stored).pixels());
        layout.picture_mut(state, eye, slot).copy_from_slice(stored.pixels());
    }
    let denoised = [0, 1].map(|eye| {
        let (pixels, decision) = (eyes[eye].pixels(), &decisions[eye]);
        let residuals = residuals[eye].values.iter();
        let pixels = pixels.iter().zip(residuals).zip(&decision.weights);
        let pixels = pixels.map(|((&pixel, &e), &k)| background::denoised(pixel, e, k));
        let image = Image::from_vec(size.0, size.1, pixels.collect());
        image.with_valid_mask(eyes[eye].shared_valid_mask())
    });
    let left = residuals[0].values.iter().zip(&decisions[0].moving);
    let whitened = left.map(|(&e, &moving)| background::whitened(e, moving)).collect();

    header.end(slot, moving, [0, 1].map(|eye| residuals[eye].variance), &shifts, &coefficients);
    let report = report::report(&header, size);
    header.write(state, &shifts);
    Outcome { denoised, whitened, report }
}

/// How far the picture remembered last is shifted against the newest, from coarse to fine, as far as pictures of a
/// quarter of the size tell: where to look for it in those of half the size.
fn look_for_newest(halves: &[Image; 2], state: &State, layout: &Layout, header: &Header) -> Shift {
    let remembered = [0, 1].map(|eye| {
        let pixels = layout.half(state, eye, header.newest).to_vec();
        Image::from_vec(layout.half_size.0, layout.half_size.1, pixels)
    });
    let mut levels: Vec<[[Image; 2]; 2]> = Vec::new();
    for _ in 1..shifts::levels(layout.half_size) {
        levels.push(match levels.last() {
            Some(finer) => finer.each_ref().map(|eyes| eyes.each_ref().map(smaller)),
            None => [halves, &remembered].map(|eyes| eyes.each_ref().map(smaller)),
        });
    }
    let mut shift = Shift::NONE;
    for [reference, remembered] in levels.iter().rev() {
        let begin = shift.twice();
        let moved = (begin.whole(), shifts::margin([begin.whole()].into_iter()));
        let (mut of_reference, mut of_both) = Default::default();
        for (reference, remembered) in reference.iter().zip(remembered) {
            let size = (reference.width(), reference.height());
            let (eyes, all) = ([reference.pixels(), remembered.pixels()], |_, _| true);
            shifts::add_sums(eyes, size, moved, all, (&mut of_reference, &mut of_both));
        }
        shift = shifts::shift(&of_reference, &of_both, begin, header.variance());
    }
    // In pixels of whole pictures.
    shift.twice().twice()
}

/// How far each remembered picture is shifted against the newest, in the order of the slots.
fn shifts_of_all(
    halves: &[Image; 2],
    state: &State,
    layout: &Layout,
    header: &Header,
    newest: Shift,
) -> Vec<Shift> {
    let (width, _) = layout.size;
    let begins = (0..header.count).map(|slot| header.begin_of(slot, newest).halved());
    let margin = shifts::margin(begins.clone().map(Shift::whole));
    begins
        .enumerate()
        .map(|(slot, begin)| {
            let (mut of_reference, mut of_both) = Default::default();
            for (eye, reference) in halves.iter().enumerate() {
                let ages = layout.ages(state, eye);
                // What moved in the picture before is no evidence of how the rig moves.
                let still = |x: usize, y: usize| {
                    let rows = [2 * y, (2 * y + 1).min(layout.size.1 - 1)];
                    let columns = [2 * x, (2 * x + 1).min(width - 1)];
                    rows.iter().all(|y| columns.iter().all(|x| ages[y * width + x] == 0))
                };
                let remembered = layout.half(state, eye, slot);
                let size = layout.half_size;
                let (eyes, moved) = ([reference.pixels(), remembered], (begin.whole(), margin));
                shifts::add_sums(eyes, size, moved, still, (&mut of_reference, &mut of_both));
            }
            shifts::shift(&of_reference, &of_both, begin, header.variance()).twice()
        })
        .collect()
}

/// The picture of half the size, smoothed: what shifts are found in.
fn smaller(image: &Image) -> Image {
    smoothed(&half(image))
}

/// The pixel of a remembered picture that shows what (x, y) shows, where that picture is moved by `offset` whole
/// pixels; columns and rows outside are the nearest inside.
fn moved(
    pixels: &[u8],
    (width, height): (usize, usize),
    x: usize,
    y: usize,
    offset: [i32; 2],
) -> u8 {
    let column = clamped(x as i64 - i64::from(offset[0]), width);
    pixels[clamped(y as i64 - i64::from(offset[1]), height) * width + column]
}
