//! Pictures that a person asks for with a key.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use image::{ImageBuffer, Luma, RgbaImage};

use crate::frame::{DisparityMap, INVALID, Matched, SUBPIXEL};

/// The two files of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SnapshotPaths {
    /// The disparity, 16 bit.
    pub(crate) disparity: PathBuf,
    /// What the window shows, without the overlay.
    pub(crate) view: PathBuf,
}

impl SnapshotPaths {
    /// Names for a snapshot of pair number `sequence` at this moment.
    pub(crate) fn new(folder: &Path, now: SystemTime, sequence: u64) -> Self {
        let stem = format!("stereod-{}-{sequence:06}", stamp(now));
        Self {
            disparity: folder.join(format!("{stem}-disparity.png")),
            view: folder.join(format!("{stem}-view.png")),
        }
    }
}

/// Writes both files.
///
/// # Errors
/// Where a file cannot be written, naming it.
pub(crate) fn write(paths: &SnapshotPaths, frame: &Matched, view: &RgbaImage) -> Result<()> {
    let disparity = kitti_picture(&frame.disparity);
    disparity.save(&paths.disparity).with_context(|| unwritable(&paths.disparity))?;
    view.save(&paths.view).with_context(|| unwritable(&paths.view))
}

fn unwritable(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

/// A disparity map in the KITTI convention: 256 a pixel of disparity, 0 = unknown, so that a known
/// disparity of nought or less is 1 and one of 256 px or more is 65535.
fn kitti_picture(map: &DisparityMap) -> ImageBuffer<Luma<u16>, Vec<u16>> {
    ImageBuffer::from_fn(map.width() as u32, map.height() as u32, |x, y| {
        let value = map.values()[y as usize * map.width() + x as usize];
        let scaled = i32::from(value) * (256 / SUBPIXEL);
        Luma([if value == INVALID { 0 } else { scaled.clamp(1, 65535) as u16 }])
    })
}

/// A moment in UTC with milliseconds, fit for a file name: 20260131-235959-042.
fn stamp(now: SystemTime) -> String {
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let (days, seconds) = (since.as_secs() / 86400, since.as_secs() % 86400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let millisecond = since.subsec_millis();
    format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}-{millisecond:03}")
}

/// Year, month and day of the Gregorian calendar, `days` after 1 January 1970.
fn civil(mut days: u64) -> (u64, u64, u64) {
    let leap = |year: u64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::Pooled;

    #[test]
    fn stamps_are_utc() {
        let at = |seconds: u64, millis: u64| {
            stamp(SystemTime::UNIX_EPOCH + Duration::from_millis(seconds * 1000 + millis))
        };
        // date -u -d @951782399 +%Y%m%d-%H%M%S, and so on.
        assert_eq!(at(0, 0), "19700101-000000-000");
        assert_eq!(at(951_782_399, 7), "20000228-235959-007");
        assert_eq!(at(951_782_400, 0), "20000229-000000-000");
        assert_eq!(at(1_767_225_599, 999), "20251231-235959-999");
        assert_eq!(at(1_767_225_600, 0), "20260101-000000-000");
    }

    #[test]
    fn disparity_is_scaled_by_256_and_nought_means_unknown() {
        let values = vec![INVALID, 0, 16, 17, -16, 16 * 255 + 15, i16::MAX, 1];
        let map = DisparityMap::new(4, 2, Pooled::unpooled(values));
        let picture = kitti_picture(&map);
        assert_eq!(picture.dimensions(), (4, 2));
        assert_eq!(picture.into_raw(), [0, 1, 256, 272, 1, 65520, 65535, 16]);
    }
}
