//! Detects that both views are one image: a file or camera given twice, or a device that delivers one camera's images as
//! both views.

use std::time::Duration;

use stereod_core::frame::Image;

/// Degree of likeness of the two views.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Duplicate {
    /// Byte by byte.
    Same,
    /// Equal up to coding noise: mean difference in grey levels.
    Nearly(f64),
}

/// Mean difference in grey levels below which two images are one. Two cameras differ by more
/// through their noise alone.
const NEARLY: f64 = 0.4;

/// Mean difference of neighbouring pixels below which an image is flat: a covered lens, darkness.
/// It looks the same to any camera.
const FLAT: f64 = 1.0;

/// Compares two images. `None` if they differ, also in size, or are flat. Rows are compared until the images are known
/// to differ, so two views cost a small part of a pass.
pub fn find_duplicate(left: &Image, right: &Image) -> Option<Duplicate> {
    if (left.width(), left.height()) != (right.width(), right.height()) {
        return None;
    }
    let (width, count) = (left.width(), left.pixels().len());
    let most = (NEARLY * count as f64) as u64;
    let rows = left.pixels().chunks_exact(width).zip(right.pixels().chunks_exact(width));
    let mut sum = 0;
    for (left, right) in rows {
        sum += difference(left.iter().zip(right));
        if sum > most {
            return None;
        }
    }
    match sum {
        _ if is_flat(left) => None,
        0 => Some(Duplicate::Same),
        _ => Some(Duplicate::Nearly(sum as f64 / count as f64)),
    }
}

fn is_flat(image: &Image) -> bool {
    let rows = image.pixels().chunks_exact(image.width());
    let sum: u64 = rows.map(|row| difference(row.iter().zip(&row[1..]))).sum();
    (sum as f64) < FLAT * ((image.width() - 1) * image.height()) as f64
}

/// Returns the sum of the absolute differences.
fn difference<'a>(pixels: impl Iterator<Item = (&'a u8, &'a u8)>) -> u64 {
    pixels.map(|(a, b)| u64::from(a.abs_diff(*b))).sum()
}

impl std::fmt::Display for Duplicate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Duplicate::Same => f.write_str("left and right are the same picture"),
            Duplicate::Nearly(by) => write!(
                f,
                "left and right are nearly the same picture (they differ by {by:.2} grey levels on \
                 average)"
            ),
        }
    }
}

impl Duplicate {
    /// Returns the warning on a source with this likeness.
    pub fn warning(&self) -> String {
        format!("{self}, so disparity is 0 everywhere: give each view its own file or camera")
    }
}

/// Number of pairs in a row that begin or end a stretch of duplicates.
pub const IN_A_ROW: u64 = 4;

/// Follows stretches of a stream in which both views are one image.
#[derive(Debug, Default)]
pub struct Stretches {
    /// Pairs in a row that contradict the present state.
    contrary: u64,
    /// Pairs that were compared, and whether a stretch lasts.
    pairs: u64,
    lasts: bool,
    /// Time of the first pair in a row.
    since: Duration,
    last: Option<Duplicate>,
}

/// Beginning or end of a stretch of duplicates, with its text.
#[derive(Clone, Debug, PartialEq)]
pub enum Turn {
    Begins(String),
    Ends(String),
}

impl Stretches {
    /// Notes the next pair and its time. Returns a beginning or end once it is certain.
    pub fn note(&mut self, found: Option<Duplicate>, time: Duration) -> Option<Turn> {
        self.pairs += 1;
        if found.is_some() == self.lasts {
            self.contrary = 0;
            return None;
        }
        if self.contrary == 0 {
            self.since = time;
        }
        (self.contrary, self.last) = (self.contrary + 1, found);
        if self.contrary < IN_A_ROW { None } else { self.turn() }
    }

    /// Concludes a stream that is too short to be certain: all of its pairs are duplicates.
    pub fn finish(&mut self) -> Option<Turn> {
        if self.lasts || self.contrary == 0 || self.contrary < self.pairs {
            return None;
        }
        self.turn()
    }

    fn turn(&mut self) -> Option<Turn> {
        let since = self.since.as_secs_f64();
        let is_first = self.contrary == self.pairs;
        (self.lasts, self.contrary) = (self.last.is_some(), 0);
        Some(match self.last {
            Some(duplicate) if is_first => Turn::Begins(duplicate.warning()),
            Some(duplicate) => Turn::Begins(format!(
                "from {since:.3} s on, {duplicate}, so disparity is 0 everywhere: a camera, driver or server \
                 delivers the images of the other camera"
            )),
            None => {
                Turn::Ends(format!("from {since:.3} s on, left and right are two pictures again"))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(shift: usize) -> Image {
        Image::from_fn(40, 30, |x, y| ((x + shift) * 7 + y * 13) as u8)
    }

    #[test]
    fn one_picture_is_told_from_two() {
        assert_eq!(find_duplicate(&picture(0), &picture(0)), Some(Duplicate::Same));
        assert_eq!(find_duplicate(&picture(0), &picture(1)), None);
        let coded = |x, y| (x * 7 + y * 13) as u8 ^ u8::from((x + y) % 5 == 0);
        let nearly = find_duplicate(&picture(0), &Image::from_fn(40, 30, coded)).unwrap();
        assert!(
            matches!(nearly, Duplicate::Nearly(by) if (0.19..0.21).contains(&by)),
            "{nearly:?}"
        );
        // As noisy as a good camera's.
        let noisy = |x, y| (x * 7 + y * 13) as u8 ^ u8::from((x * 3 + y) % 2 == 0);
        assert_eq!(find_duplicate(&picture(0), &Image::from_fn(40, 30, noisy)), None);
        assert_eq!(find_duplicate(&picture(0), &Image::from_fn(30, 40, |x, _| x as u8)), None);
    }

    #[test]
    fn each_stretch_of_duplicates_is_told_when_it_begins_and_ends() {
        let told = |views: &str| {
            let (mut stretches, mut told) = (Stretches::default(), Vec::new());
            for (second, view) in (0..).zip(views.chars()) {
                let found = (view == '=').then_some(Duplicate::Same);
                told.extend(stretches.note(found, Duration::from_secs(second)));
            }
            told.extend(stretches.finish());
            told.into_iter()
                .map(|turn| match turn {
                    Turn::Begins(text) => format!("+{}", &text[..12]),
                    Turn::Ends(text) => format!("-{}", &text[..12]),
                })
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(told("=="), "+left and rig");
        assert_eq!(told("====="), "+left and rig");
        assert_eq!(told("===."), "");
        assert_eq!(told("..===...==.=="), "");
        assert_eq!(told(".....====.=====.."), "+from 5.000 s");
        assert_eq!(told("..=====......===="), "+from 2.000 s -from 7.000 s +from 13.000 ");
        assert_eq!(told("====...="), "+left and rig");
    }

    #[test]
    fn darkness_is_the_same_to_every_eye() {
        let dark = Image::from_fn(40, 30, |x, _| (x / 20) as u8);
        assert_eq!(find_duplicate(&dark, &dark), None);
    }
}
