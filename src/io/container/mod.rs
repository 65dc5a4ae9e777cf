//! Facts that video files state about themselves, read without GStreamer: the arrangement of two views and the
//! projection (Matroska, MP4, QuickTime), the format (YUV4MPEG2), and whether a second recording follows.
//!
//! GStreamer 1.22 passes on only a part of them: its table of Matroska's StereoMode is incomplete and has a wrong
//! number, it does not read `st3d` and `vexu`, and it plays joined files in part.

mod joined;
mod matroska;
mod mp4;
mod y4m;

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Arrangement of two views in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrangement {
    /// One view.
    Single,
    SideBySide,
    TopBottom,
    /// The rows of both views in turn.
    Rows,
    /// The columns of both views in turn.
    Columns,
    Checkerboard,
    /// The frames of both views in turn.
    Frames,
    /// Both views in one image, in different colours.
    Anaglyph,
    /// Two views in each block of Matroska, as H.264 MVC.
    Mvc,
    /// The second view is a layer of HEVC.
    MvHevc,
    /// Two views, in a way that is not stated.
    Unstated,
}

/// Projection of a camera that is no pinhole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Projection {
    Equirectangular,
    HalfEquirectangular,
    Fisheye,
    Cubemap,
    Mesh,
}

/// Views and projection as a file states them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stated {
    pub arrangement: Option<Arrangement>,
    /// True if the right view comes first.
    pub right_first: bool,
    pub projection: Option<Projection>,
}

impl Stated {
    /// Reads the statement of a file's first video. Files that state nothing or cannot be read have none.
    pub fn read(path: &Path) -> Self {
        let read = || {
            let mut file = File::open(path)?;
            match start::<12>(&mut file)? {
                [0x1a, 0x45, 0xdf, 0xa3, ..] => matroska::stated(file),
                [_, _, _, _, kind @ ..] if mp4::begins(&kind) => mp4::stated(&mut file),
                _ => Ok(Self::default()),
            }
        };
        read().unwrap_or_default()
    }
}

/// Returns why GStreamer would read a video file in part or not at all, with the remedy; `None` if nothing is
/// known against it.
pub fn refusal(path: &Path) -> io::Result<Option<String>> {
    let mut file = File::open(path)?;
    let head = start::<12>(&mut file)?;
    if head.starts_with(b"YUV4MPEG2 ")
        && let Some(refusal) = y4m::refusal(path, &mut file)?
    {
        return Ok(Some(refusal));
    }
    Ok(joined::second(&mut file, head)?.map(|at| joined::refusal(path, at)))
}

/// Returns the first bytes of a file, zeros behind its end.
fn start<const BYTES: usize>(file: &mut File) -> io::Result<[u8; BYTES]> {
    Ok(at(file, 0)?.unwrap_or([0; BYTES]))
}

/// Reads the bytes at an offset; `None` if the file ends before.
pub(crate) fn at<const BYTES: usize>(
    file: &mut (impl Read + Seek),
    at: u64,
) -> io::Result<Option<[u8; BYTES]>> {
    let mut bytes = [0; BYTES];
    file.seek(SeekFrom::Start(at))?;
    match file.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}
