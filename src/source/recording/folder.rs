//! Data sets as folders: EuRoC's (mav0/cam0/data.csv) and KITTI raw (image_00/timestamps.txt).

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use super::interface::{Encoding, Message, Reader, Topic, check_length};
use crate::core::reading;
use crate::source::header;

/// Largest list of times.
const LIST_MAX: u64 = 256 << 20;

/// Images with their times, a topic for each camera.
#[derive(Debug)]
pub(super) struct Folder {
    topics: Vec<Topic>,
    /// Time, topic and file of every image, in order of time.
    images: Vec<(u64, usize, PathBuf)>,
    /// Files with times and calibrations.
    lists: Vec<PathBuf>,
    /// Calibration files.
    pub calibrations: Vec<PathBuf>,
    /// Size of the images, if it is known.
    pub size: Option<(usize, usize)>,
    wanted: Vec<usize>,
    at: usize,
}

/// Returns the folder with the cameras of EuRoC: `path` itself or its `mav0`.
pub(super) fn euroc(path: &Path) -> Option<PathBuf> {
    let folders = [path.to_owned(), path.join("mav0")];
    folders.into_iter().find(|folder| folder.join("cam0/data.csv").is_file())
}

/// Reports whether a folder is a drive of KITTI raw.
pub(super) fn is_kitti(path: &Path) -> bool {
    path.join("image_00/timestamps.txt").is_file() || path.join("image_02/timestamps.txt").is_file()
}

impl Folder {
    /// Opens a folder of EuRoC: a line of data.csv has nanoseconds and the name of an image.
    pub(super) fn euroc(folder: &Path) -> Result<Self> {
        let mut found = Self::new();
        for camera in ["cam0", "cam1"] {
            let list = folder.join(camera).join("data.csv");
            if !list.is_file() {
                continue;
            }
            let topic = found.add_topic(camera);
            for (number, line) in found.read_list(&list)?.lines().enumerate() {
                let line = line.trim();
                if line.is_empty() || line.starts_with('#') {
                    continue;
                }
                let wrong = || format!("{}, line {}: {line:?}", list.display(), number + 1);
                let (time, name) = line.split_once(',').with_context(wrong)?;
                let time = time.trim().parse().with_context(wrong)?;
                let name = name.split(',').next().unwrap_or_default().trim();
                // Nothing outside the folder is opened.
                ensure!(!name.contains('/') && name != "..", "{}: not a name", wrong());
                let file = folder.join(camera).join("data").join(name);
                found.images.push((time, topic, file));
            }
        }
        let calibrations = ["cam0", "cam1"].map(|camera| folder.join(camera).join("sensor.yaml"));
        found.finish(calibrations)
    }

    /// Opens a drive of KITTI raw: line n of timestamps.txt is the time of image n.
    pub(super) fn kitti(folder: &Path) -> Result<Self> {
        let mut found = Self::new();
        for camera in ["image_00", "image_01", "image_02", "image_03"] {
            let list = folder.join(camera).join("timestamps.txt");
            if !list.is_file() {
                continue;
            }
            let topic = found.add_topic(camera);
            let lines = found.read_list(&list)?;
            for (number, line) in lines.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
                let wrong = || format!("{}, line {}: {line:?}", list.display(), number + 1);
                let time = date_ns(line).with_context(wrong)?;
                let data = folder.join(camera).join("data");
                let names = ["png", "jpg"].map(|end| data.join(format!("{number:010}.{end}")));
                // Some drives lack images.
                if let Some(file) = names.into_iter().find(|name| name.is_file()) {
                    found.images.push((time, topic, file));
                }
            }
        }
        // The calibration is that of the day, in the folder above the drive.
        let name = "calib_cam_to_cam.txt";
        let day = folder.canonicalize().ok().and_then(|folder| Some(folder.parent()?.join(name)));
        let file = [Some(folder.join(name)), day].into_iter().flatten().find(|file| file.is_file());
        // By it the calibration tells raw images from rectified ones. Damaged images are reported later.
        found.size = found.images.first().and_then(|(.., file)| header::dimensions(file).ok());
        found.finish(file)
    }

    pub(super) fn new() -> Self {
        Self {
            topics: Vec::new(),
            images: Vec::new(),
            lists: Vec::new(),
            calibrations: Vec::new(),
            size: None,
            wanted: Vec::new(),
            at: 0,
        }
    }

    /// Adds a topic, and returns its number.
    pub(super) fn add_topic(&mut self, name: &str) -> usize {
        self.topics.push(Topic::new(name, "images", Encoding::File, None));
        self.topics.len() - 1
    }

    /// Reports whether there is a topic of this name.
    pub(super) fn has_topic(&self, name: &str) -> bool {
        self.topics.iter().any(|topic| topic.name == name)
    }

    /// Adds an image with its time in nanoseconds.
    pub(super) fn add_image(&mut self, time: u64, topic: usize, file: PathBuf) {
        self.images.push((time, topic, file));
    }

    /// Checks that all images have one size, by their headers.
    pub(super) fn check_sizes(&mut self) -> Result<()> {
        let mut first: Option<((usize, usize), &Path)> = None;
        for (_, _, file) in &self.images {
            let name = || file.display().to_string();
            let size = header::dimensions(file).with_context(name)?;
            let (known, of) = *first.get_or_insert((size, file));
            ensure!(
                size == known,
                "the images differ in size ({} is {}x{}, {} is {}x{}), but a run takes images of one size: \
                 `stereod match` takes each pair by itself, `stereod evaluate` all that have known disparities",
                of.display(),
                known.0,
                known.1,
                name(),
                size.0,
                size.1
            );
        }
        self.size = first.map(|(size, _)| size);
        Ok(())
    }

    /// Reads a list, and notes it as a file of the data set.
    pub(super) fn read_list(&mut self, list: &Path) -> Result<String> {
        let name = || list.display().to_string();
        let text = reading::read(list, LIST_MAX).with_context(name)?;
        self.lists.push(list.to_owned());
        String::from_utf8(text).with_context(name)
    }

    /// Sorts the images, and takes the calibration files if all are there.
    pub(super) fn finish(
        mut self,
        calibrations: impl IntoIterator<Item = PathBuf>,
    ) -> Result<Self> {
        if self.images.is_empty() {
            bail!("the folder lists no images");
        }
        self.images.sort();
        for (number, topic) in self.topics.iter_mut().enumerate() {
            let own = self.images.iter().filter(|(_, topic, _)| *topic == number);
            topic.messages = Some(own.count() as u64);
        }
        let files: Vec<PathBuf> = calibrations.into_iter().collect();
        if files.iter().all(|file| file.is_file()) {
            self.calibrations = files;
        }
        Ok(self)
    }

    /// Returns time and file of the images of these topics.
    #[cfg(test)]
    pub(super) fn images_of(&self, topics: &[usize]) -> Vec<(u64, PathBuf)> {
        let images = self.images.iter().filter(|(_, topic, _)| topics.contains(topic));
        images.map(|(time, _, file)| (*time, file.clone())).collect()
    }

    /// Returns every file that may be read.
    pub(super) fn files(self) -> Vec<PathBuf> {
        let images = self.images.into_iter().map(|(_, _, file)| file);
        images.chain(self.lists).chain(self.calibrations).collect()
    }
}

/// Returns the nanoseconds since 1970 of a time such as `2011-09-26 13:02:25.951199337`.
fn date_ns(text: &str) -> Option<u64> {
    let (date, time) = text.trim().split_once(' ')?;
    let whole = |text: &str| text.parse::<u64>().ok();
    let [year, month, day] = <[&str; 3]>::try_from(date.split('-').collect::<Vec<_>>()).ok()?;
    let [hour, minute, second] = <[&str; 3]>::try_from(time.split(':').collect::<Vec<_>>()).ok()?;
    let (second, part) = second.split_once('.').unwrap_or((second, "0"));
    let (year, month, day) = (whole(year)?, whole(month)?, whole(day)?);
    let in_range = (1970..=2200).contains(&year) && (1..=12).contains(&month);
    if !in_range || !(1..=31).contains(&day) || part.len() > 9 {
        return None;
    }
    // Days since 1 March of the year 0, by which leap days come last (Hinnant, "chrono-compatible low-level
    // date algorithms").
    let (years, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days =
        365 * years + years / 4 - years / 100 + years / 400 + (153 * months + 2) / 5 + day - 1;
    let seconds = (days - 719_468) * 86_400 + whole(hour)? * 3600 + whole(minute)? * 60;
    let nanoseconds = whole(part)? * 10_u64.pow(9 - part.len() as u32);
    let (hour_is_right, minute_is_right) = (whole(hour)? < 24, whole(minute)? < 60);
    let second =
        whole(second).filter(|second| *second <= 60 && hour_is_right && minute_is_right)?;
    Some((seconds + second) * 1_000_000_000 + nanoseconds)
}

impl Reader for Folder {
    fn topics(&self) -> &[Topic] {
        &self.topics
    }

    fn begin(&mut self, topics: &[usize]) -> Result<()> {
        (self.wanted, self.at) = (topics.to_vec(), 0);
        Ok(())
    }

    fn next(&mut self, message: &mut Message) -> Result<bool> {
        while let Some((time, topic, file)) = self.images.get(self.at) {
            self.at += 1;
            if !self.wanted.contains(topic) {
                continue;
            }
            let name = || file.display().to_string();
            let bytes = fs::metadata(file).with_context(name)?.len();
            check_length("an image file", bytes).with_context(name)?;
            message.data = header::read_file(file).with_context(name)?;
            (message.topic, message.log_ns) = (*topic, *time);
            return Ok(true);
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn dates_of_kitti() {
        assert_eq!(date_ns("1970-01-01 00:00:01.5"), Some(1_500_000_000));
        // date -u -d '2011-09-26 13:02:25' +%s
        assert_eq!(date_ns("2011-09-26 13:02:25.951199337"), Some(1_317_042_145_951_199_337));
        assert_eq!(date_ns("2024-02-29 00:00:00"), Some(1_709_164_800_000_000_000));
        for wrong in ["", "2011-09-26", "2011-13-26 00:00:00", "2011-09-26 25:00:00", "x-y-z a:b:c"]
        {
            assert_eq!(date_ns(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn names_stay_in_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let camera = folder.path().join("mav0/cam0");
        fs::create_dir_all(camera.join("data")).unwrap();
        let list = |text: &str| {
            fs::write(camera.join("data.csv"), text).unwrap();
            Folder::euroc(&euroc(folder.path()).unwrap())
        };
        let found = list("#timestamp [ns],filename\n20,b.png\r\n10,a.png\n").unwrap();
        let images: Vec<_> = found.images.iter().map(|(time, ..)| *time).collect();
        assert_eq!((images, found.topics[0].messages), (vec![10, 20], Some(2)));
        assert!(found.calibrations.is_empty());
        for wrong in ["10,../../a.png\n", "10\n", "ten,a.png\n", ""] {
            assert!(list(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn any_list_is_read_or_refused(text in "([0-9#,./a-z \\r]{0,30}\n){0,4}") {
            let folder = tempfile::tempdir().unwrap();
            let camera = folder.path().join("cam0");
            fs::create_dir_all(&camera).unwrap();
            fs::write(camera.join("data.csv"), text).unwrap();
            if let Ok(found) = Folder::euroc(&euroc(folder.path()).unwrap()) {
                let inside = |file: &PathBuf| file.starts_with(camera.join("data"));
                prop_assert!(found.images.iter().all(|(_, _, file)| inside(file)));
            }
        }

        #[test]
        fn any_text_is_a_date_or_none(text in "[0-9:. -]{0,40}") {
            let _ = date_ns(&text);
        }
    }
}
