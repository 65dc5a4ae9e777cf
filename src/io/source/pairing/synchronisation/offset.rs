//! Estimates the shift in time between two recordings of one scene from their frames.
//!
//! Both views see the same rows, so vertical motion changes the mean grey levels of the rows in both alike,
//! at any disparity. Two signals are compared at every shift within reach, each by its normalised
//! cross-correlation: the changes of the rows' means from frame to frame, in bands, and the vertical motion
//! estimated from them. Horizontal motion is no evidence, because each view sees a near object cover and
//! uncover the background at another time.

use stereod_core::frame::Image;

/// Number of bands of rows for the comparison of changes.
const BANDS: usize = 24;

/// Root mean square of the vertical motion, in pixels a frame, below which noise and coding hide it.
const STILL: f32 = 0.06;

/// Lead of the best correlation over any that is not next to it.
const MARGIN: f32 = 0.12;

/// Largest distance of a shift from the best one to count as adjacent, in frames.
const NEXT: i64 = 2;

/// Fewest frames that both views must have at a shift.
const FEWEST: usize = 5;

/// Returns the correlation that frames of different scenes do not reach if this many are compared:
/// none of 477 unrelated pairs of clips, with [`MARGIN`].
fn chance(pictures: usize) -> f32 {
    0.28 + 1.2 / (pictures as f32).sqrt()
}

#[derive(Clone, Debug, PartialEq)]
pub struct Rows(Vec<f32>);

impl Rows {
    pub fn of(image: &Image) -> Self {
        let width = image.width().max(1);
        let mean = |row: &[u8]| row.iter().map(|&grey| f32::from(grey)).sum::<f32>() / width as f32;
        Self(image.pixels().chunks_exact(width).map(mean).collect())
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// Shift in frames: left frame i and right frame i + `pictures` show the same moment.
    pub pictures: i64,
    /// Correlation at that shift, up to 1.
    pub correlation: f32,
    /// Highest correlation at any other shift that is not next to it.
    pub other: f32,
}

#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Unclear {
    #[error("there are too few pictures to compare")]
    Short,
    /// Hardly any vertical motion.
    #[error("hardly anything moves up or down in them, and sideways motion does not tell")]
    Still,
    #[error(
        "no shift stands out: at the best one, {} pictures, motion correlates by {:.2}, elsewhere by up to {:.2}",
        .0.pictures, .0.correlation, .0.other
    )]
    Ambiguous(Shift),
}

/// Finds the shift of the right view's frames against the left one's, up to `reach` frames.
pub fn find(left: &[Rows], right: &[Rows], reach: usize) -> Result<Shift, Unclear> {
    let (left, right) = (Motion::of(left), Motion::of(right));
    let shorter = left.len().min(right.len());
    // At least a third of the shorter view is compared, so that few frames do not agree by chance.
    let fewest = FEWEST.max(shorter / 3);
    if shorter < fewest {
        return Err(Unclear::Short);
    }
    if left.rms().min(right.rms()) < STILL {
        return Err(Unclear::Still);
    }
    let reach = reach as i64;
    let scores: Vec<(i64, f32)> = (-reach..=reach)
        .filter_map(|shift| {
            let common = common(&left, &right, shift, 0..left.len());
            (common.len() >= fewest).then(|| (shift, score(&left, &right, shift, common)))
        })
        .collect();
    let best = |candidates: &mut dyn Iterator<Item = &(i64, f32)>| {
        candidates.copied().max_by(|a, b| a.1.total_cmp(&b.1))
    };
    let (pictures, correlation) = best(&mut scores.iter()).ok_or(Unclear::Short)?;
    let others = &mut scores.iter().filter(|(shift, _)| shift.abs_diff(pictures) > NEXT as u64);
    let other = best(others).map_or(0.0, |(_, score)| score);
    let found = Shift { pictures, correlation, other };
    let all = common(&left, &right, pictures, 0..left.len());
    let sure = correlation >= chance(all.len())
        && correlation - other >= MARGIN
        && halves_agree(&left, &right, pictures, all);
    if sure { Ok(found) } else { Err(Unclear::Ambiguous(found)) }
}

/// Returns whether each half of the frames that are compared is most alike at this shift or next to it.
fn halves_agree(left: &Motion, right: &Motion, shift: i64, all: std::ops::Range<usize>) -> bool {
    let middle = all.start + all.len() / 2;
    let half_agrees = |half: std::ops::Range<usize>| {
        let scores = (shift - 2 * NEXT..=shift + 2 * NEXT).filter_map(|near| {
            let common = common(left, right, near, half.clone());
            (common.len() + 1 >= FEWEST).then(|| (near, score(left, right, near, common)))
        });
        scores
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .is_none_or(|(near, _)| near.abs_diff(shift) < NEXT as u64)
    };
    // Fewer than 8 frames in a half are too few.
    all.len() < 16 || half_agrees(all.start..middle) && half_agrees(middle..all.end)
}

/// Returns the left frames in `within` that have a right one at this shift.
fn common(
    left: &Motion,
    right: &Motion,
    shift: i64,
    within: std::ops::Range<usize>,
) -> std::ops::Range<usize> {
    let first = (-shift).max(within.start as i64);
    let end = (right.len() as i64 - shift).min(within.end.min(left.len()) as i64);
    first as usize..end.max(first) as usize
}

/// Returns the similarity of the views at a shift: the mean correlation of both signals.
fn score(left: &Motion, right: &Motion, shift: i64, common: std::ops::Range<usize>) -> f32 {
    let there = (common.start as i64 + shift) as usize..(common.end as i64 + shift) as usize;
    let bands = correlation(&left.bands[common.clone()], &right.bands[there.clone()]);
    let vertical = correlation(&left.vertical[common], &right.vertical[there]);
    (bands + vertical) / 2.0
}

/// Returns the normalised cross-correlation over time of signals of several channels.
fn correlation<const CHANNELS: usize>(a: &[[f32; CHANNELS]], b: &[[f32; CHANNELS]]) -> f32 {
    let mean = |signal: &[[f32; CHANNELS]], channel: usize| {
        signal.iter().map(|values| values[channel]).sum::<f32>() / signal.len() as f32
    };
    let (mut product, mut squares) = (0.0, [0.0f32; 2]);
    for channel in 0..CHANNELS {
        let means = [mean(a, channel), mean(b, channel)];
        for (a, b) in a.iter().zip(b) {
            let (a, b) = (a[channel] - means[0], b[channel] - means[1]);
            product += a * b;
            squares[0] += a * a;
            squares[1] += b * b;
        }
    }
    let norm = (squares[0] * squares[1]).sqrt();
    if norm > 0.0 { product / norm } else { 0.0 }
}

struct Motion {
    /// Changes of the bands' means, less their mean, so that exposure does not count.
    bands: Vec<[f32; BANDS]>,
    vertical: Vec<[f32; 1]>,
}

impl Motion {
    fn of(pictures: &[Rows]) -> Self {
        let steps = pictures.iter().zip(pictures.iter().skip(1));
        let (bands, vertical) = steps
            .map(|(Rows(a), Rows(b))| (change_of_bands(a, b), [vertical_motion(a, b)]))
            .unzip();
        Self { bands, vertical }
    }

    fn len(&self) -> usize {
        self.vertical.len()
    }

    /// Returns the root mean square of the vertical motion around its mean, in pixels.
    fn rms(&self) -> f32 {
        let count = self.len().max(1) as f32;
        let mean = self.vertical.iter().map(|[v]| v).sum::<f32>() / count;
        (self.vertical.iter().map(|[v]| (v - mean).powi(2)).sum::<f32>() / count).sqrt()
    }
}

fn change_of_bands(a: &[f32], b: &[f32]) -> [f32; BANDS] {
    let mut bands = [0.0; BANDS];
    for (i, band) in bands.iter_mut().enumerate() {
        let rows = i * a.len() / BANDS..(i + 1) * a.len() / BANDS;
        let count = rows.len().max(1) as f32;
        *band = rows.map(|row| b[row] - a[row]).sum::<f32>() / count;
    }
    let mean = bands.iter().sum::<f32>() / BANDS as f32;
    bands.map(|band| band - mean)
}

/// Returns the shift in pixels of the rows' means, independent of gain and offset (Lucas and Kanade, IJCAI
/// 1981, in one dimension).
fn vertical_motion(a: &[f32], b: &[f32]) -> f32 {
    /// Larger motion is not linear any more.
    const FASTEST: f32 = 20.0;
    let (a, b) = (smooth(a), smooth(b));
    if a.len() < 3 {
        return 0.0;
    }
    // b - a = motion * -gradient + gain * level + offset, by least squares.
    let inner = 1..a.len() - 1;
    let level: Vec<f32> = a.iter().zip(&b).map(|(a, b)| (a + b) / 2.0).collect();
    let without_mean = |values: Vec<f32>| {
        let mean = values.iter().sum::<f32>() / values.len() as f32;
        values.into_iter().map(move |value| value - mean)
    };
    let slopes = without_mean(inner.clone().map(|i| (level[i - 1] - level[i + 1]) / 2.0).collect());
    let levels = without_mean(level[inner.clone()].to_vec());
    let changes = without_mean(inner.map(|i| b[i] - a[i]).collect());
    let (mut ss, mut sl, mut ll, mut sc, mut lc) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for ((slope, level), change) in slopes.zip(levels).zip(changes) {
        ss += slope * slope;
        sl += slope * level;
        ll += level * level;
        sc += slope * change;
        lc += level * change;
    }
    let determinant = ss * ll - sl * sl;
    if determinant <= 0.0 {
        return 0.0;
    }
    ((sc * ll - lc * sl) / determinant).clamp(-FASTEST, FASTEST)
}

/// Means over a hundredth of the rows.
fn smooth(rows: &[f32]) -> Vec<f32> {
    let window = (rows.len() / 100).max(1);
    rows.windows(window).map(|rows| rows.iter().sum::<f32>() / window as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a camera that sways up and down in front of a wall; `near` shifts the wall sideways,
    /// as the other view sees it.
    fn view(frames: std::ops::Range<u32>, near: usize, sway: f32) -> Vec<Rows> {
        let grey = |x: usize, y: f32| {
            let (x, row) = ((x + near) / 7, y.floor());
            let at = |row: f32| {
                let hash = (row as u32 / 3).wrapping_mul(0x9e37_79b9)
                    ^ (x as u32).wrapping_mul(0x85eb_ca6b);
                ((hash.wrapping_mul(0xc2b2_ae35) >> 16) & 0xff) as f32
            };
            let part = y - row;
            (at(row) * (1.0 - part) + at(row + 1.0) * part) as u8
        };
        let image = |frame: u32| {
            let t = frame as f32;
            let down = sway * ((t * 0.31).sin() + (t * 0.113).sin() + 0.6 * (t * 0.77).cos());
            Image::from_fn(80, 96, |x, y| grey(x, y as f32 + 20.0 + down))
        };
        frames.map(|frame| Rows::of(&image(frame))).collect()
    }

    #[test]
    fn the_shift_of_two_recordings_is_found() {
        for shift in [-31i64, -3, 0, 1, 17] {
            let begin = (40 + shift) as u32;
            let found = find(&view(begin..begin + 90, 0, 1.0), &view(40..130, 9, 1.0), 50).unwrap();
            assert_eq!(found.pictures, shift, "{found:?}");
        }
    }

    #[test]
    fn what_does_not_show_it_is_refused() {
        let sways = view(0..90, 0, 1.0);
        assert_eq!(find(&sways, &view(0..90, 9, 0.0), 50), Err(Unclear::Still));
        assert_eq!(find(&sways[..4], &sways[..4], 50), Err(Unclear::Short));
        assert_eq!(find(&[], &sways, 50), Err(Unclear::Short));
        // Another time altogether, without a frame in common.
        let elsewhere = find(&view(0..60, 0, 1.0), &view(3000..3060, 9, 1.0), 30);
        assert!(matches!(elsewhere, Err(Unclear::Ambiguous(_))), "{elsewhere:?}");
        // One frame up and down for ever: any shift by a period is as good.
        let periodic: Vec<Rows> =
            (0..90).map(|i| view(i % 8..i % 8 + 1, 0, 2.0).remove(0)).collect();
        let found = find(&periodic, &periodic, 50);
        assert!(matches!(found, Err(Unclear::Ambiguous(_))), "{found:?}");
    }
}
