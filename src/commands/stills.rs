//! Single images as a pair: one for each view, or one that holds both.

use std::path::{Path, PathBuf};

use anyhow::ensure;

use super::Error;
use crate::settings::{Engine, Source};
use stereod_core::frame::{Eye, Image};
use stereod_core::picture::grey::Grey;
use stereod_core::picture::orientation::{self, Orient};
use stereod_core::picture::packing::{Packing, Stated};
use stereod_core::picture::still::{self, Still, read_colours};
use stereod_core::picture::stretch::stretched;
use stereod_core::picture::tone::Tone;
use stereod_core::pool::Pooled;
use stereod_io::pattern;
use stereod_io::source::pictures;
use stereod_io::source::spec::{SourceSpec, StreamSpec, is_video};

pub struct Stills {
    /// Files of the left and right view; the same file twice if it holds both.
    files: [PathBuf; 2],
    packing: Packing,
    swap: bool,
    half: bool,
    tone: Tone,
    orient: Orient,
}

impl Stills {
    /// Returns the images that `spec` names, with the views exchanged and reduced to 8 bits as
    /// `[source]` says.
    pub fn find(spec: &SourceSpec, settings: &Source) -> Result<Self, Error> {
        let both = |both| one_file(both).map(|file| [file.clone(), file]);
        let (files, packing) = match spec {
            SourceSpec::Two { left, right } => {
                ([one_file(left)?, one_file(right)?], Packing::Alone)
            }
            SourceSpec::SideBySide(stream) => (both(stream)?, Packing::SideBySide),
            SourceSpec::TopBottom(stream) => (both(stream)?, Packing::TopBottom),
            _ => return Err(Error::usage("the source is no picture")),
        };
        let Source { swap, half, tone, orient, .. } = *settings;
        Ok(Self { files, packing, swap, half, tone, orient })
    }

    /// Returns the names of the files.
    pub fn name(&self) -> String {
        let [left, right] = self.files_of_eyes().map(|file| file.display().to_string());
        if left == right { left } else { format!("{left} + {right}") }
    }

    /// Reads the intensity of both views, each reduced to 8 bits by itself.
    pub fn read(&self) -> anyhow::Result<[Image; 2]> {
        let [left, right] = self.files_of_eyes();
        let read = |file: &PathBuf| {
            let Still { picture, orientation, stated } = still::read_any(file, self.orient)?;
            stated.map_or(Ok(()), |stated| self.check(file, stated))?;
            Ok::<_, anyhow::Error>((Grey::of(picture), (file.display().to_string(), orientation)))
        };
        let pair = match self.packing {
            Packing::Alone => {
                let ((left, left_tag), (right, right_tag)) = (read(left)?, read(right)?);
                orientation::report(&[left_tag, right_tag], self.orient);
                [left, right]
            }
            _ => {
                let (whole, tag) = read(left)?;
                orientation::report(&[tag], self.orient);
                let size = [whole.width(), whole.height()];
                let half = |eye| self.area(size, eye).map(|(at, size)| whole.part(at, size));
                [half(Eye::Left)?, half(Eye::Right)?]
            }
        };
        Ok(pair.map(|grey| self.stretched(grey.into_image(self.tone))))
    }

    /// Reads the views as [`Stills::read`] does, for an engine that may be a network, with colour then.
    pub fn read_for(&self, engine: &Engine) -> anyhow::Result<[Image; 2]> {
        let [left, right] = self.read()?;
        if !engine.wants_colour() {
            return Ok([left, right]);
        }
        let coloured = |grey, eye| Ok::<_, anyhow::Error>(coloured(grey, &self.colours(eye)?));
        Ok([coloured(left, Eye::Left)?, coloured(right, Eye::Right)?])
    }

    /// Compares the arrangement of the views that a file states with the one that it is read with.
    fn check(&self, file: &Path, stated: Stated) -> anyhow::Result<()> {
        let told = format!("{}: {}", file.display(), stated.describe());
        ensure!(stated.packing == self.packing, "{told}");
        if (stated.right_first, stated.half) != (self.swap, self.half) {
            tracing::warn!("{told}");
        }
        Ok(())
    }

    /// Reads red, green and blue of a view.
    pub fn colours(&self, eye: Eye) -> anyhow::Result<[Image; 3]> {
        let [left, right] = self.files_of_eyes();
        let [red, green, blue] =
            read_colours(if eye == Eye::Left { left } else { right }, self.orient)?;
        Ok([self.part(&red, eye)?, self.part(&green, eye)?, self.part(&blue, eye)?])
    }

    /// Stretches a view that is squeezed to half its width or height.
    fn stretched(&self, view: Image) -> Image {
        if !self.half {
            return view;
        }
        let pixels = Pooled::unpooled(vec![0; 2 * view.pixels().len()]);
        stretched(&view, self.packing != Packing::TopBottom, pixels)
    }

    fn files_of_eyes(&self) -> [&PathBuf; 2] {
        let [left, right] = &self.files;
        if self.swap { [right, left] } else { [left, right] }
    }

    /// Cuts a view out of its file's image.
    fn part(&self, whole: &Image, eye: Eye) -> anyhow::Result<Image> {
        let ([x, y], [width, height]) = self.area([whole.width(), whole.height()], eye)?;
        let rows = (y..y + height).flat_map(|row| &whole.row(row)[x..x + width]);
        Ok(self.stretched(Image::from_vec(width, height, rows.copied().collect())))
    }

    /// Returns the first pixel and size of a view in a file's image of this size.
    fn area(
        &self,
        [width, height]: [usize; 2],
        eye: Eye,
    ) -> anyhow::Result<([usize; 2], [usize; 2])> {
        let is_second = (eye == Eye::Right) != self.swap;
        let name = self.files[0].display();
        let (length, needs) = match self.packing {
            Packing::Alone => return Ok(([0, 0], [width, height])),
            Packing::SideBySide => (width, "side by side needs an even width"),
            Packing::TopBottom => (height, "top-bottom needs an even height"),
        };
        ensure!(
            length.is_multiple_of(2),
            "{name} is {width}x{height}: {needs}, each view has half of it"
        );
        let begin = if is_second { length / 2 } else { 0 };
        Ok(match self.packing {
            Packing::TopBottom => ([0, begin], [width, height / 2]),
            _ => ([begin, 0], [width / 2, height]),
        })
    }
}

/// Adds red, green and blue to the intensity of a view, unless it is grey.
pub fn coloured(grey: Image, colours: &[Image; 3]) -> Image {
    let [red, green, blue] = colours.each_ref().map(Image::pixels);
    if red == green && green == blue {
        return grey;
    }
    let pixels = red.iter().zip(green).zip(blue).map(|((&red, &green), &blue)| [red, green, blue]);
    grey.with_rgb(pixels)
}

pub fn is_still(stream: &StreamSpec) -> bool {
    matches!(stream, StreamSpec::File(path) if pictures::is_picture(path))
}

fn one_file(stream: &StreamSpec) -> Result<PathBuf, Error> {
    let name = stream.name();
    let all = "`stereod run` matches videos, cameras and all pictures of a pattern";
    match stream {
        StreamSpec::File(path) if !is_video(path) => match path.file_name().and_then(pattern::flaw)
        {
            Some(flaw) if !path.exists() => Err(Error::usage(format!("{name}: {flaw}"))),
            _ => Ok(path.clone()),
        },
        StreamSpec::Pictures(_) => match <[PathBuf; 1]>::try_from(stream.local_files()) {
            Ok([file]) => Ok(file),
            Err(files) if files.is_empty() => {
                Err(Error::usage(format!("no file is called {name}")))
            }
            Err(files) => Err(Error::usage(format!(
                "{name} names {} pictures; give one for each view ({all})",
                files.len()
            ))),
        },
        _ => Err(Error::usage(format!(
            "{name} is no picture; give one for each view, or one that holds both ({all})"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    #[test]
    fn halves_and_exchanged_eyes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("both.pgm");
        std::fs::write(&path, b"P5\n4 2\n255\n\x01\x02\x03\x04\x05\x06\x07\x08").unwrap();
        let read_as = |spec: SourceSpec, swap, half| {
            let settings = Source { swap, half, ..Settings::default().source };
            let stills = Stills::find(&spec, &settings).unwrap();
            let colours = [Eye::Left, Eye::Right].map(|eye| stills.colours(eye).unwrap());
            let pair = stills.read().unwrap();
            for (grey, colours) in pair.iter().zip(&colours) {
                assert_eq!(grey.pixels(), colours[1].pixels());
            }
            pair.map(|image| image.pixels().to_vec())
        };
        let read = |spec, swap| read_as(spec, swap, false);
        let (beside, above) = (SourceSpec::side_by_side(&path), SourceSpec::top_bottom(&path));
        assert_eq!(read(beside.clone(), false), [[1, 2, 5, 6], [3, 4, 7, 8]]);
        let wide = [[1, 1, 2, 2, 5, 5, 6, 6], [3, 3, 4, 4, 7, 7, 8, 8]];
        assert_eq!(read_as(beside.clone(), false, true), wide);
        assert_eq!(read(beside, true), [[3, 4, 7, 8], [1, 2, 5, 6]]);
        assert_eq!(read(above.clone(), false), [[1, 2, 3, 4], [5, 6, 7, 8]]);
        assert_eq!(read(above.clone(), true), [[5, 6, 7, 8], [1, 2, 3, 4]]);
        let tall = [[1, 2, 3, 4, 1, 2, 3, 4], [5, 6, 7, 8, 5, 6, 7, 8]];
        assert_eq!(read_as(above, false, true), tall);
        let wider = [1, 1, 2, 2, 3, 3, 4, 4].into_iter().chain([5, 5, 6, 6, 7, 7, 8, 8]);
        let wider: Vec<u8> = wider.collect();
        assert_eq!(read_as(SourceSpec::two(&path, &path), false, true), [wider.clone(), wider]);

        std::fs::write(&path, b"P5\n3 1\n255\n\x01\x02\x03").unwrap();
        let odd =
            Stills::find(&SourceSpec::side_by_side(&path), &Settings::default().source).unwrap();
        let error = odd.read().unwrap_err().to_string();
        assert!(error.contains("both.pgm is 3x1") && error.contains("even width"), "{error}");
    }

    #[test]
    fn what_is_no_single_picture_is_refused_with_the_cure() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["l1.png", "l2.png", "r1.png"] {
            std::fs::write(at(name), "x").unwrap();
        }
        let file = |name: &str| one_file(&StreamSpec::parse(at(name)));
        assert_eq!(file("r*.png").unwrap(), at("r1.png"));
        for (name, words) in [
            ("l*.png", "names 2 pictures"),
            ("x%d.png", "no file is called"),
            ("x%999999999d.png", "at most 20 digits"),
        ] {
            let error = file(name).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
            assert_eq!(error.exit_status(), 2);
        }
        let error = one_file(&StreamSpec::parse("rtsp://host/1")).unwrap_err().to_string();
        assert!(error.contains("`stereod run`"), "{error}");
    }
}
