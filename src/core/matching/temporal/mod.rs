//! The spatio-temporal stage: removes noise from the static background by means of earlier images.
//!
//! The background of an image is predicted as a weighted sum of the previous images. Their sub-pixel
//! [`shifts`] relative to it are estimated, and the [`coefficients`] follow from the shifts alone. The image
//! minus its [`background`] is noise and motion. Denoising replaces the image by the background if both agree
//! within the noise; whitening outputs the difference. The method is that of "Spatio-temporal image
//! processing on the GPU" (Habr, 2014), which registers against the newest image by the gradient equations.
//!
//! Both views share shifts and coefficients, because they are on one rig; so their rows and brightness stay
//! consistent. The history of a stream is a [`State`]; [`Layout`] defines its format for every engine.

pub mod background;
pub mod coefficients;
pub mod layout;
pub mod shifts;

use std::fmt;
use std::str::FromStr;

use crate::frame::{Image, TemporalReport};
use crate::matching::history::State;
use crate::matching::pyramid::{half, smooth};
use crate::matching::residuals::{Decision, Limits};
use background::Residual;
use coefficients::Coefficients;
use layout::{Header, Layout};
use shifts::{Shift, UNIT};

/// The name of the stage, and of its state in a stream's history.
pub const NAME: &str = "temporal";

/// Smallest and largest history in images.
pub const HISTORY: (u8, u8) = (2, 64);

/// Largest degree of the polynomial in the shift.
pub const DEGREE_MAX: u8 = 3;

/// Purpose of the stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Mode {
    /// Removes noise from static parts before matching.
    Denoise,
    /// Matches the images unchanged and outputs their residuals.
    Whiten,
}

/// Settings of the stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Temporal {
    /// Purpose.
    pub mode: Mode,
    /// Capacity of the history in images ([`HISTORY`]).
    pub history: u8,
    /// Degree of the polynomial in the shift that the coefficients reproduce (0 to [`DEGREE_MAX`]).
    pub degree: u8,
}

/// For example `denoise, history 20, degree 2`.
impl fmt::Display for Temporal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = match self.mode {
            Mode::Denoise => "denoise",
            Mode::Whiten => "whiten",
        };
        write!(f, "{mode}, history {}, degree {}", self.history, self.degree)
    }
}

impl FromStr for Temporal {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.split(", ");
        let mode = match parts.next() {
            Some("denoise") => Mode::Denoise,
            Some("whiten") => Mode::Whiten,
            _ => return Err(()),
        };
        let mut number = |name| {
            let text = parts.next()?.strip_prefix(name)?.strip_prefix(' ')?;
            text.parse().ok()
        };
        let (history, degree) = (number("history").ok_or(())?, number("degree").ok_or(())?);
        Ok(Self { mode, history, degree })
    }
}

/// Output of the stage for one pair.
#[derive(Debug)]
pub struct Outcome {
    /// Both images, denoised in their static parts.
    pub denoised: [Image; 2],
    /// Residual of the left image, one number per pixel ([`background::whiten`]).
    pub whitened: Vec<u16>,
    /// Figures of the pair for the report.
    pub report: TemporalReport,
}

/// Passes the next pair of a stream through the stage. `state` is the state after the previous pair; empty
/// for the first one. If its size does not fit the images and the history, it is reset.
///
/// # Panics
/// If the two images differ in size.
pub fn advance(eyes: [&Image; 2], state: &mut State, how: Temporal) -> Outcome {
    let size = (eyes[0].width(), eyes[0].height());
    assert_eq!((eyes[1].width(), eyes[1].height()), size, "size of the views");
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
        shifts = header.keep(shifts_of_all(&halves, state, &layout, &header, newest));
    }
    let coefficients = Coefficients::of(&shifts, how.degree);

    let residuals =
        [0, 1].map(|eye| Residual::of(eyes[eye], state, &layout, eye, &coefficients, &header));
    let decisions = [0, 1].map(|eye| {
        let Residual { values, variance } = &residuals[eye];
        match coefficients.len() {
            // Without history the images stay unchanged.
            0 => Decision { weights: vec![256; values.len()], moving: vec![false; values.len()] },
            _ => Decision::of(values, &Limits::new(*variance, coefficients.spread()), size),
        }
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
                background::remember(pixel, residual.values[i], ages[i], how.history)
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
        let pixels = pixels.map(|((&pixel, &e), &k)| background::denoise(pixel, e, k));
        let image = Image::from_vec(size.0, size.1, pixels.collect());
        image.with_valid_mask(eyes[eye].shared_valid_mask())
    });
    let left = residuals[0].values.iter().zip(&decisions[0].moving);
    let whitened = left.map(|(&e, &moving)| background::whiten(e, moving)).collect();

    header.end(slot, moving, [0, 1].map(|eye| residuals[eye].variance), &shifts, &coefficients);
    let report = report(&header, size);
    header.write(state, &shifts);
    Outcome { denoised, whitened, report }
}

/// Estimates the shift of the previous image relative to the newest, from coarse to fine down to a quarter of
/// the size. The result is the initial value for the search at half the size.
fn look_for_newest(halves: &[Image; 2], state: &State, layout: &Layout, header: &Header) -> Shift {
    let remembered = [0, 1].map(|eye| {
        let pixels = layout.half(state, eye, header.newest).to_vec();
        Image::from_vec(layout.half_size.0, layout.half_size.1, pixels)
    });
    let mut levels: Vec<[[Image; 2]; 2]> = Vec::new();
    for _ in 1..layout.levels().len() {
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
    // In pixels of full-size images.
    shift.twice().twice()
}

/// Estimates the shifts of all remembered images relative to the newest, in the order of the slots.
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
    let offset_of_newest = header.begin_of(header.newest, newest).halved().whole();
    begins
        .enumerate()
        .map(|(slot, begin)| {
            let (mut of_reference, mut of_both) = Default::default();
            for (eye, reference) in halves.iter().enumerate() {
                let ages = layout.ages(state, eye);
                // Pixels that moved, in the previous image or now, tell nothing about the motion of the rig.
                let still = |x: usize, y: usize| {
                    let rows = [2 * y, (2 * y + 1).min(layout.size.1 - 1)];
                    let columns = [2 * x, (2 * x + 1).min(width - 1)];
                    rows.iter().all(|y| columns.iter().all(|x| ages[y * width + x] == 0))
                };
                let remembered = layout.half(state, eye, slot);
                let size = layout.half_size;
                let of_newest = [reference.pixels(), layout.half(state, eye, header.newest)];
                let counts = |x: usize, y: usize| {
                    let (offset, tolerance) = (offset_of_newest, header.tolerance());
                    still(x, y) && shifts::agree(of_newest, size.0, (x, y), offset, tolerance)
                };
                let (eyes, moved) = ([reference.pixels(), remembered], (begin.whole(), margin));
                shifts::add_sums(eyes, size, moved, counts, (&mut of_reference, &mut of_both));
            }
            shifts::shift(&of_reference, &of_both, begin, header.variance()).twice()
        })
        .collect()
}

/// Returns the smoothed half-size image for the shift estimation.
fn smaller(image: &Image) -> Image {
    smooth(&half(image))
}

/// Builds the report for a pair of this size from the state's header.
pub fn report(header: &Header, size: (usize, usize)) -> TemporalReport {
    let variance = (header.variances[0] + header.variances[1]) as f32 / 512.0;
    let spread = header.spread as f32 / 256.0;
    let after = variance * spread / (1.0 + spread);
    let Shift { by, known, .. } = header.frame_shift;
    TemporalReport {
        remembered: header.count as u32,
        shift: known.then(|| by.map(|by| by as f32 / UNIT as f32)),
        noise: (header.spread > 0).then(|| [variance.sqrt(), after.sqrt()]),
        moving: header.moving as f32 / (2 * size.0 * size.1) as f32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: (usize, usize) = (72, 64);

    fn noise(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed;
        move || {
            let mut uniform = || {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 33) as f64 / f64::from(1u32 << 31)
            };
            (0..12).map(|_| uniform()).sum::<f64>() - 6.0
        }
    }

    /// A static scene with noise; a bar stands at `bar`, if that lies inside.
    fn eye(seed: u64, sigma: f64, bar: usize) -> Image {
        let mut noise = noise(seed);
        let pixel = |i: usize| {
            let grey = scene(i % SIZE.0, i / SIZE.0, bar);
            (grey + sigma * noise()).round().clamp(0.0, 255.0) as u8
        };
        Image::from_vec(SIZE.0, SIZE.1, (0..SIZE.0 * SIZE.1).map(pixel).collect())
    }

    fn scene(x: usize, y: usize, bar: usize) -> f64 {
        match x.abs_diff(bar) < 4 {
            true => 220.0,
            false => 110.0 + 40.0 * (0.4 * x as f64).sin() + 30.0 * (0.3 * y as f64).cos(),
        }
    }

    /// Root mean square difference from the scene over the pixels that `counts` selects.
    fn error(image: &Image, bar: usize, counts: impl Fn(usize) -> bool) -> f64 {
        let (mut sum, mut count) = (0.0, 0);
        for y in 0..SIZE.1 {
            for x in (0..SIZE.0).filter(|&x| counts(x)) {
                sum += (f64::from(image.row(y)[x]) - scene(x, y, bar)).powi(2);
                count += 1;
            }
        }
        (sum / f64::from(count)).sqrt()
    }

    const HOW: Temporal = Temporal { mode: Mode::Denoise, history: 10, degree: 1 };

    #[test]
    fn a_still_scene_loses_its_noise_and_movers_are_not_smeared() {
        let mut state = State::new();
        let far = usize::MAX / 2;
        let mut last = None;
        for number in 0..12 {
            let eyes = [eye(2 * number, 5.0, far), eye(2 * number + 1, 5.0, far)];
            last = Some(advance(eyes.each_ref(), &mut state, HOW));
        }
        let Outcome { denoised, report, .. } = last.unwrap();
        assert!(error(&denoised[0], far, |_| true) < 2.3, "{}", error(&denoised[0], far, |_| true));
        let [before, after] = report.noise.unwrap();
        assert!((before - 5.0).abs() < 0.5 && after < 2.0, "{report:?}");
        assert!(report.moving < 0.01 && report.remembered == 10, "{report:?}");
        assert!(report.shift.unwrap().iter().all(|by| by.abs() < 0.05), "{report:?}");

        // A bar enters and moves on.
        for (number, bar) in [(20, 20), (21, 30), (22, 40)] {
            let eyes = [eye(2 * number, 5.0, bar), eye(2 * number + 1, 5.0, bar)];
            let Outcome { denoised, whitened, report } = advance(eyes.each_ref(), &mut state, HOW);
            let on_bar = |x: usize| x.abs_diff(bar) < 4;
            assert!(error(&denoised[0], bar, on_bar) < 6.5, "{}", error(&denoised[0], bar, on_bar));
            // Its former position shows the scene without a trail.
            let left = |x: usize| x.abs_diff(bar - 10) < 4;
            assert!(error(&denoised[0], bar, left) < 3.0, "{}", error(&denoised[0], bar, left));
            let row = &whitened[30 * SIZE.0..][..SIZE.0];
            assert!(row[bar] & 1 == 1 && row[bar] > 32768 + 128 * 20 && row[60] & 1 == 0);
            assert!(report.moving > 0.08 && report.moving < 0.25, "{report:?}");
        }
    }

    #[test]
    fn another_exposure_or_scene_begins_anew_and_no_old_picture_shows() {
        let mut state = State::new();
        let far = usize::MAX / 2;
        let brighter = |seed| {
            let eye = eye(seed, 2.0, far);
            let pixels = eye.pixels().iter().map(|&grey| grey.saturating_add(60));
            Image::from_vec(SIZE.0, SIZE.1, pixels.collect())
        };
        for number in 0..6 {
            let eyes = [eye(number, 2.0, far), eye(100 + number, 2.0, far)];
            advance(eyes.each_ref(), &mut state, HOW);
        }
        for (number, remembered) in [(20, 7), (21, 1), (22, 2)] {
            let eyes = [brighter(number), brighter(100 + number)];
            let Outcome { denoised, report, .. } = advance(eyes.each_ref(), &mut state, HOW);
            assert_eq!(report.remembered, remembered);
            let differs = denoised[0].pixels().iter().zip(eyes[0].pixels());
            assert!(differs.map(|(a, b)| a.abs_diff(*b)).max().unwrap() < 12, "{number}");
        }
    }

    /// A random texture, shifted left by `at` pixels, with noise; flat if `contrast` is 0.
    fn coarse(at: usize, contrast: f64, seed: u64) -> Image {
        let grain = |x: usize, y: usize| {
            noise(((x * 1000 + y) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))()
        };
        let mut noise = noise(seed);
        let pixel = |i: usize| {
            let (x, y) = (i % SIZE.0 + at, i / SIZE.0);
            let (u, v) = ((x % 6) as f64 / 6.0, (y % 6) as f64 / 6.0);
            let row = |y| (1.0 - u) * grain(x / 6, y) + u * grain(x / 6 + 1, y);
            let grey = (1.0 - v) * row(y / 6) + v * row(y / 6 + 1);
            (110.0 + contrast * grey + 6.0 * noise()).round().clamp(0.0, 255.0) as u8
        };
        Image::from_vec(SIZE.0, SIZE.1, (0..SIZE.0 * SIZE.1).map(pixel).collect())
    }

    #[test]
    fn what_is_lost_takes_no_part_in_the_background() {
        let mut state = State::new();
        let mut next = |at, seed| {
            let eyes = [coarse(at, 45.0, seed), coarse(at, 45.0, 100 + seed)];
            let Outcome { denoised, report, .. } = advance(eyes.each_ref(), &mut state, HOW);
            (eyes, denoised, report)
        };
        for number in 0..5 {
            let (.., report) = next(0, number);
            assert_eq!(report.remembered, 1 + number as u32);
            assert_eq!(report.shift.is_some(), number > 0, "{report:?}");
        }
        for number in 5..12 {
            let (eyes, denoised, report) = next(300 * number as usize, number);
            assert!((0..2).all(|eye| denoised[eye].pixels() == eyes[eye].pixels()), "{number}");
            assert_eq!((report.remembered, report.shift, report.noise), (1, None, None));
        }
        // Once the rig rests, the history grows again.
        for (number, at, remembered) in [(12, 3300, 2), (13, 3300, 3), (14, 9000, 1)] {
            let (.., report) = next(at, number);
            assert_eq!(report.remembered, remembered, "{number}");
            assert_eq!(report.shift.is_some(), remembered > 1, "{number}");
        }
    }

    #[test]
    fn a_dark_room_is_averaged_though_no_shift_is_found_in_it() {
        let mut state = State::new();
        let mut last = None;
        for number in 0..12 {
            let eyes = [coarse(0, 0.0, number), coarse(0, 0.0, 100 + number)];
            last = Some(advance(eyes.each_ref(), &mut state, HOW));
        }
        let Outcome { denoised, report, .. } = last.unwrap();
        assert_eq!((report.remembered, report.shift), (10, None));
        let squares = denoised[0].pixels().iter().map(|&grey| (f64::from(grey) - 110.0).powi(2));
        let error = (squares.sum::<f64>() / (SIZE.0 * SIZE.1) as f64).sqrt();
        assert!(error < 3.0, "{error}");
    }

    #[test]
    fn a_name_tells_all_of_it() {
        for temporal in [HOW, Temporal { mode: Mode::Whiten, history: 64, degree: 0 }] {
            assert_eq!(temporal.to_string().parse(), Ok(temporal));
        }
        for wrong in ["", "denoise", "denoise, history 3", "blur, history 3, degree 1"] {
            assert_eq!(wrong.parse::<Temporal>(), Err(()));
        }
    }

    #[test]
    fn a_state_of_another_size_means_nothing() {
        let mut state = vec![7; 99];
        let one = Image::from_vec(1, 1, vec![9]);
        let Outcome { denoised, report, .. } = advance([&one, &one], &mut state, HOW);
        assert_eq!((denoised[0].pixels(), report.remembered), (&[9][..], 1));
        let Outcome { report, .. } = advance([&one, &one], &mut state, HOW);
        assert_eq!((report.shift, report.remembered), (None, 2));
    }
}
