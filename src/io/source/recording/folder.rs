//! Files in the folders of data sets, and data sets as folders: EuRoC's (mav0/cam0/data.csv) and KITTI raw
//! (image_00/timestamps.txt).

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::{Context, Result, anyhow, bail, ensure};
use toml::value::Datetime;

use super::choice;
use super::interface::{Encoding, Lost, Message, Reader, Topic, check_length};
use crate::source::pictures;
use stereod_core::picture::header;
use stereod_core::reading;

const LIST_MAX: u64 = 256 << 20;

/// Time between two images in nanoseconds below which the numbers in their names are no times.
const SHORTEST_NS: u64 = 100_000;

/// Largest number of entries of a folder that are looked at.
const ENTRIES_MAX: usize = 1_000_000;

/// Largest number of folders below a folder that are looked at for images.
const FOLDERS_MAX: usize = 32;

/// Returns the paths in a folder by name, without hidden ones, because macOS writes a file `._NAME` for each
/// NAME.
pub(super) fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(ENTRIES_MAX);
    let is_hidden = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
    };
    let mut paths: Vec<_> =
        entries.map(|entry| entry.path()).filter(|path| !is_hidden(path)).collect();
    paths.sort();
    paths
}

/// Names the images of two views in a folder and the folders below it as two streams.
pub(super) fn as_streams(folder: &Path) -> Option<String> {
    let below = |folder: &PathBuf| -> Vec<PathBuf> {
        entries(folder).into_iter().filter(|path| path.is_dir()).take(FOLDERS_MAX).collect()
    };
    let first = below(&folder.to_owned());
    let second = first.iter().flat_map(below).collect();
    let folders = [vec![folder.to_owned()], first.clone(), second].concat();
    let patterns: Vec<PathBuf> = folders.iter().flat_map(|at| pictures::patterns(at)).collect();
    let name = |path: &PathBuf| path.strip_prefix(folder).unwrap_or(path).display().to_string();
    let partner = |left: &PathBuf| {
        let is_partner = |right: &&PathBuf| {
            let right = name(right).to_lowercase();
            choice::partners(&name(left)).any(|partner| partner == right)
        };
        Some((left.clone(), patterns.iter().find(is_partner)?.clone()))
    };
    let (left, right) = patterns.iter().find_map(partner)?;
    let [left, right] = [left, right].map(|view| view.display().to_string());
    Some(format!("its images are played by --left '{left}' --right '{right}'"))
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    time_ns: u64,
    topic: usize,
    file: PathBuf,
    /// Reason why it is left out, if it is known before it is read.
    flaw: Option<String>,
}

/// Images with their times, a topic for each camera.
#[derive(Debug, Default)]
pub(super) struct Folder {
    topics: Vec<Topic>,
    images: Vec<Entry>,
    lost: Vec<Lost>,
    lists: Vec<PathBuf>,
    pub calibrations: Vec<PathBuf>,
    pub size: Option<(usize, usize)>,
    wanted: Vec<usize>,
    at: usize,
}

/// Returns the folder with the cameras of EuRoC: `path` itself or its `mav0`.
pub(super) fn euroc(path: &Path) -> Option<PathBuf> {
    let folders = [path.to_owned(), path.join("mav0")];
    let has = |folder: &PathBuf| {
        folder.join("cam0/data.csv").is_file() || folder.join("cam0/data").is_dir()
    };
    folders.into_iter().find(has)
}

pub(super) fn is_kitti(path: &Path) -> bool {
    path.join("image_00/timestamps.txt").is_file() || path.join("image_02/timestamps.txt").is_file()
}

impl Folder {
    /// Opens a folder of EuRoC: a line of data.csv has nanoseconds and the name of an image. Without that list
    /// the names are the nanoseconds.
    pub(super) fn euroc(folder: &Path) -> Result<Self> {
        let mut found = Self::default();
        for camera in ["cam0", "cam1"] {
            let list = folder.join(camera).join("data.csv");
            let data = folder.join(camera).join("data");
            if !list.is_file() && !data.is_dir() {
                continue;
            }
            let topic = found.add_topic(camera);
            if !list.is_file() {
                found.add_by_name(topic, &data).map_err(|flaw| {
                    let cure = as_streams(folder).map(|cure| format!("; {cure}"));
                    let (list, cure) = (list.display(), cure.unwrap_or_default());
                    anyhow!("{list}, the list of times, is missing, and {flaw}{cure}")
                })?;
                continue;
            }
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
                found.add_image(time, topic, data.join(name));
            }
            found.add_unlisted(topic, &data, &list);
        }
        let calibrations = ["cam0", "cam1"].map(|camera| folder.join(camera).join("sensor.yaml"));
        found.finish(calibrations)
    }

    fn add_by_name(&mut self, topic: usize, data: &Path) -> Result<()> {
        let mut times = Vec::new();
        for file in entries(data).into_iter().filter(|file| pictures::is_picture(file)) {
            let stem = file.file_stem().unwrap_or_default().to_string_lossy();
            let time: Option<u64> = stem.parse().ok();
            let name = || format!("the name of {} is no time in nanoseconds", file.display());
            times.push((time.with_context(name)?, file));
        }
        times.sort();
        if let [(first, _), .., (last, _)] = &times[..] {
            ensure!(
                last - first >= (times.len() as u64 - 1) * SHORTEST_NS,
                "the names of the images in {} count them and are no times in nanoseconds",
                data.display()
            );
        }
        times.into_iter().for_each(|(time, file)| self.add_image(time, topic, file));
        Ok(())
    }

    /// Opens a drive of KITTI raw: line n of timestamps.txt is the time of image n.
    pub(super) fn kitti(folder: &Path) -> Result<Self> {
        let mut found = Self::default();
        for camera in ["image_00", "image_01", "image_02", "image_03"] {
            let list = folder.join(camera).join("timestamps.txt");
            if !list.is_file() {
                continue;
            }
            let topic = found.add_topic(camera);
            let lines = found.read_list(&list)?;
            let data = folder.join(camera).join("data");
            for (number, line) in lines.lines().enumerate() {
                let names = ["png", "jpg"].map(|end| data.join(format!("{number:010}.{end}")));
                let there = names.iter().find(|name| name.is_file());
                let line = line.trim();
                if line.is_empty() {
                    let untimed = there.into_iter().cloned();
                    untimed.for_each(|file| found.add_without_time(topic, file, &list));
                    continue;
                }
                let wrong = || format!("{}, line {}: {line:?}", list.display(), number + 1);
                let time = date_ns(line).with_context(wrong)?;
                found.add_image(time, topic, there.unwrap_or(&names[0]).clone());
            }
            found.add_unlisted(topic, &data, &list);
        }
        // The calibration is one per day, in the folder above the drive.
        let name = "calib_cam_to_cam.txt";
        let day = folder.canonicalize().ok().and_then(|folder| Some(folder.parent()?.join(name)));
        let file = [Some(folder.join(name)), day].into_iter().flatten().find(|file| file.is_file());
        // By it the calibration tells raw images from rectified ones. Damaged images are reported later.
        found.size = found.images.iter().find_map(|image| header::dimensions(&image.file).ok());
        found.finish(file).map_err(|error| match as_streams(folder) {
            Some(streams) => anyhow!("{error}; {streams}"),
            None => error,
        })
    }

    pub(super) fn add_topic(&mut self, name: &str) -> usize {
        self.topics.push(Topic::new(name, "images", Encoding::File, None));
        self.topics.len() - 1
    }

    pub(super) fn has_topic(&self, name: &str) -> bool {
        self.topics.iter().any(|topic| topic.name == name)
    }

    /// Adds an image with its time in nanoseconds. A file that is not there is left out.
    pub(super) fn add_image(&mut self, time_ns: u64, topic: usize, file: PathBuf) {
        let flaw = (!file.is_file()).then(|| "no such file".to_owned());
        self.images.push(Entry { time_ns, topic, file, flaw });
    }

    /// Adds an image that is left out, because a list has no time for it.
    pub(super) fn add_without_time(&mut self, topic: usize, file: PathBuf, list: &Path) {
        let before = self.images.iter().rev().find(|image| image.topic == topic);
        let time_ns = before.map_or(0, |image| image.time_ns);
        let flaw = Some(format!("{} has no time for it", list.display()));
        self.images.push(Entry { time_ns, topic, file, flaw });
    }

    fn add_unlisted(&mut self, topic: usize, data: &Path, list: &Path) {
        let listed = self.images.iter().filter(|image| image.topic == topic);
        let listed: HashSet<OsString> =
            listed.filter_map(|image| Some(image.file.file_stem()?.to_owned())).collect();
        let is_listed = |file: &PathBuf| file.file_stem().is_none_or(|stem| listed.contains(stem));
        let images = entries(data).into_iter().filter(|file| pictures::is_picture(file));
        images
            .filter(|file| !is_listed(file))
            .for_each(|file| self.add_without_time(topic, file, list));
    }

    /// Checks that all images of a view have one size, by their headers. Damaged images are reported later.
    pub(super) fn check_sizes(&mut self) -> Result<()> {
        let mut first: HashMap<usize, ((usize, usize), &Path)> = HashMap::new();
        for Entry { file, topic, .. } in &self.images {
            let Ok(size) = header::dimensions(file) else { continue };
            let (known, of) = *first.entry(*topic).or_insert((size, file));
            ensure!(
                size == known,
                "the images differ in size ({} is {}x{}, {} is {}x{}), but a run takes images of one size: \
                 `stereod match` takes each pair by itself, `stereod evaluate` all that have known disparities",
                of.display(),
                known.0,
                known.1,
                file.display(),
                size.0,
                size.1
            );
        }
        self.size = first.get(&0).map(|(size, _)| *size);
        Ok(())
    }

    pub(super) fn read_list(&mut self, list: &Path) -> Result<String> {
        let name = || list.display().to_string();
        let text = reading::read(list, LIST_MAX).with_context(name)?;
        self.lists.push(list.to_owned());
        let text = String::from_utf8(text).with_context(name)?;
        // Some editors begin a text with a byte order mark.
        Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
    }

    /// Sorts the images, and takes the calibration files if all are there.
    pub(super) fn finish(
        mut self,
        calibrations: impl IntoIterator<Item = PathBuf>,
    ) -> Result<Self> {
        self.images.sort();
        for (number, topic) in self.topics.iter_mut().enumerate() {
            let own = self.images.iter().filter(|image| image.topic == number);
            topic.messages = Some(own.filter(|image| image.flaw.is_none()).count() as u64);
        }
        let with_images = self.topics.iter().filter(|topic| topic.messages != Some(0));
        let with_images: Vec<_> = with_images.map(|topic| &topic.name[..]).collect();
        let flaw = self.images.iter().find_map(|image| Some((&image.file, image.flaw.as_ref()?)));
        let flaw =
            flaw.map_or(String::new(), |(file, flaw)| format!(": {}: {flaw}", file.display()));
        match with_images[..] {
            [] => bail!("the folder has none of the images that it should have{flaw}"),
            [only] => {
                bail!("only {only} has images, and a pair needs those of the other view, too{flaw}")
            }
            _ => {}
        }
        let files: Vec<PathBuf> = calibrations.into_iter().collect();
        if files.iter().all(|file| file.is_file()) {
            self.calibrations = files;
        }
        Ok(self)
    }

    #[cfg(test)]
    pub(super) fn images_of(&self, topics: &[usize]) -> Vec<(u64, PathBuf)> {
        let is_played = |image: &&Entry| topics.contains(&image.topic) && image.flaw.is_none();
        let images = self.images.iter().filter(is_played);
        images.map(|image| (image.time_ns, image.file.clone())).collect()
    }

    pub(super) fn files(self) -> Vec<PathBuf> {
        let images = self.images.into_iter().filter(|image| image.flaw.is_none());
        let images = images.map(|image| image.file);
        images.chain(self.lists).chain(self.calibrations).collect()
    }
}

fn read(file: &Path) -> Result<Vec<u8>> {
    check_length("an image file", fs::metadata(file)?.len())?;
    let data = header::read_file(file)?;
    if header::format(&data).is_none() {
        let what = if data.is_empty() { "it is empty (0 bytes)" } else { "it is no image" };
        return Err(io::Error::new(io::ErrorKind::InvalidData, what).into());
    }
    Ok(data)
}

/// Returns the nanoseconds since 1970 of a time such as `2011-09-26 13:02:25.951199337`, as TOML has them, too.
fn date_ns(text: &str) -> Option<u64> {
    let Datetime { date: Some(date), time: Some(time), offset: None } = text.trim().parse().ok()?
    else {
        return None;
    };
    // Years begin in March, so that leap days are last.
    let [year, month] = match (u64::from(date.year), u64::from(date.month)) {
        (year, 1..=2) => [year.checked_sub(1)?, u64::from(date.month) + 9],
        (year, month) => [year, month - 3],
    };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5;
    let days = (days + u64::from(date.day)).checked_sub(719_469)?;
    let [hour, minute, second] =
        [Some(time.hour), Some(time.minute), time.second].map(|part| part.map_or(0, u64::from));
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    seconds.checked_mul(1_000_000_000)?.checked_add(time.nanosecond.map_or(0, u64::from))
}

impl Reader for Folder {
    fn topics(&self) -> &[Topic] {
        &self.topics
    }

    fn begin(&mut self, topics: &[usize]) -> Result<()> {
        (self.wanted, self.at) = (topics.to_vec(), 0);
        self.lost.clear();
        Ok(())
    }

    fn next(&mut self, message: &mut Message) -> Result<bool> {
        while let Some(Entry { time_ns, topic, file, flaw }) = self.images.get(self.at) {
            self.at += 1;
            if !self.wanted.contains(topic) {
                continue;
            }
            let name = file.display();
            let flaw = match flaw {
                Some(flaw) => flaw.clone(),
                None => match read(file) {
                    Ok(data) => {
                        *message = Message { topic: *topic, log_ns: *time_ns, data };
                        return Ok(true);
                    }
                    Err(error) if error.is::<io::Error>() => format!("{error:#}"),
                    Err(error) => return Err(error.context(name.to_string())),
                },
            };
            let what = format!("{name}: {flaw}; it is left out");
            self.lost.push(Lost { what, messages: vec![(*topic, 1)] });
        }
        Ok(false)
    }

    fn lost(&mut self) -> Vec<Lost> {
        std::mem::take(&mut self.lost)
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

    /// Begin of an image.
    const IMAGE: &str = "P5\n";

    /// A folder with these files; lists have a text.
    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    fn open_euroc(folder: &tempfile::TempDir) -> Result<Folder> {
        Folder::euroc(&euroc(folder.path()).unwrap())
    }

    /// Returns topic and time of each image that is read, and the files that are left out.
    fn read_all(mut found: Folder) -> (Vec<(usize, u64)>, Vec<String>) {
        let (mut read, mut lost) = (Vec::new(), Vec::new());
        let mut message = Message::default();
        found.begin(&[0, 1]).unwrap();
        while found.next(&mut message).unwrap() {
            read.push((message.topic, message.log_ns));
        }
        for Lost { what, messages } in found.lost() {
            assert_eq!(messages.len(), 1);
            let file = what.split(": ").next().unwrap();
            lost.push(format!("{} {}", messages[0].0, file.rsplit('/').next().unwrap()));
        }
        (read, lost)
    }

    #[test]
    fn names_stay_in_the_folder() {
        let list = |text: &str| {
            let both = ["mav0/cam0/data.csv", "mav0/cam1/data.csv"].map(|list| (list, text));
            let images =
                ["cam0", "cam1"].map(|c| ["a", "b"].map(|i| format!("mav0/{c}/data/{i}.png")));
            let images: Vec<_> = images.iter().flatten().map(|file| (&file[..], "")).collect();
            open_euroc(&folder(&[&both[..], &images].concat()))
        };
        let found = list("\u{feff}#timestamp [ns],filename\n20,b.png\r\n\n10,a.png\n").unwrap();
        let images: Vec<_> = found.images.iter().map(|image| image.time_ns).collect();
        assert_eq!((images, found.topics[0].messages), (vec![10, 10, 20, 20], Some(2)));
        assert!(found.calibrations.is_empty());
        for wrong in ["10,../../a.png\n", "10\n", "ten,a.png\n", ""] {
            assert!(list(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn images_that_are_missing_or_not_listed_are_left_out_and_counted() {
        let list = "10,a.png\n20,b.png\n30,c.png\n";
        let [left, right] = ["cam0/data.csv", "cam1/data.csv"].map(|name| (name, list));
        let files = ["cam0/data/a.png", "cam0/data/c.png", "cam1/data/a.png", "cam1/data/b.png"];
        let more = ["cam0/data/d.png", "cam1/data/._a.png", "cam1/data/notes.txt"];
        let files: Vec<_> = files.into_iter().chain(more).map(|name| (name, IMAGE)).collect();
        let folder = folder(&[&[left, right][..], &files].concat());
        let found = open_euroc(&folder).unwrap();
        assert_eq!(found.topics.iter().map(|t| t.messages).collect::<Vec<_>>(), [Some(2); 2]);
        let (read, lost) = read_all(found);
        assert_eq!(read, [(0, 10), (1, 10), (1, 20), (0, 30)]);
        assert_eq!(lost, ["0 b.png", "0 d.png", "1 c.png"]);
        fs::remove_dir_all(folder.path().join("cam1")).unwrap();
        let error = open_euroc(&folder).unwrap_err().to_string();
        assert!(error.contains("only cam0 has images"), "{error}");
        fs::remove_dir_all(folder.path().join("cam0/data")).unwrap();
        let error = open_euroc(&folder).unwrap_err().to_string();
        assert!(error.contains("none of the images") && error.contains("a.png"), "{error}");
    }

    #[test]
    fn an_image_at_a_blank_line_of_kitti_has_no_time() {
        let list = "2011-09-26 13:02:25.0\n \n2011-09-26 13:02:25.2\n\n";
        let mut files = Vec::new();
        for camera in ["image_00", "image_01"] {
            files.push((format!("{camera}/timestamps.txt"), list));
            (0..3).for_each(|n| files.push((format!("{camera}/data/{n:010}.png"), IMAGE)));
        }
        let files: Vec<_> = files.iter().map(|(name, text)| (&name[..], *text)).collect();
        let folder = folder(&files);
        assert!(is_kitti(folder.path()));
        let (read, lost) = read_all(Folder::kitti(folder.path()).unwrap());
        assert_eq!(read.iter().map(|(topic, _)| *topic).collect::<Vec<_>>(), [0, 1, 0, 1]);
        assert_eq!(lost, ["0 0000000001.png", "1 0000000001.png"]);
    }

    #[test]
    fn without_a_list_the_names_are_the_times() {
        let of = |names: [&str; 2]| {
            let files = ["cam0", "cam1"].map(|c| names.map(|name| format!("mav0/{c}/data/{name}")));
            let files: Vec<_> = files.iter().flatten().map(|file| (&file[..], IMAGE)).collect();
            let folder = folder(&files);
            let found = open_euroc(&folder).map(read_all);
            found.map_err(|error| error.to_string())
        };
        let (read, lost) = of(["1700000000033333333.png", "1700000000000000000.png"]).unwrap();
        let [first, second] = [1_700_000_000_000_000_000, 1_700_000_000_033_333_333];
        assert_eq!(read, [(0, first), (1, first), (0, second), (1, second)]);
        assert!(lost.is_empty());
        for (names, what) in [(["0.png", "1.png"], "count them"), (["a1.png", "a2.png"], "a1.png")]
        {
            let error = of(names).unwrap_err();
            for what in [what, "data.csv, the list of times, is missing", "--left '", "cam1/data/"]
            {
                assert!(error.contains(what), "{what}: {error}");
            }
        }
    }

    #[test]
    fn the_images_of_two_views_are_found_by_their_names() {
        for (files, streams) in [
            (
                &["image_left/0_left.jpg", "image_right/0_right.jpg"][..],
                ["image_left/*.jpg", "image_right/*.jpg"],
            ),
            (&["left9.png", "left10.png", "right9.png"], ["left%d.png", "right%d.png"]),
            (&["cam0/0.png", "cam1/0.png", "cam0/._0.png"], ["cam0/%d.png", "cam1/%d.png"]),
            (&["a/L/07.png", "a/L/08.png", "a/R/07.png"], ["a/L/%02d.png", "a/R/%02d.png"]),
            (&["left/0.png", "centre/0.png"], ["", ""]),
            (&[], ["", ""]),
        ] {
            let folder = tempfile::tempdir().unwrap();
            for file in files {
                let path = folder.path().join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "").unwrap();
            }
            let [left, right] = streams.map(|name| folder.path().join(name).display().to_string());
            let due = format!("its images are played by --left '{left}' --right '{right}'");
            let due = (!streams[0].is_empty()).then_some(due);
            assert_eq!(as_streams(folder.path()), due, "{files:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn any_list_is_read_or_refused(text in "([0-9#,./a-z \r]{0,30}\n){0,4}") {
            let list = format!("{text}1,a.png\n");
            let folder = folder(&[
                ("cam0/data.csv", &list), ("cam0/data/a.png", ""),
                ("cam1/data.csv", &list), ("cam1/data/a.png", ""),
            ]);
            if let Ok(found) = open_euroc(&folder) {
                let inside = |image: &Entry| {
                    ["cam0/data", "cam1/data"].iter().any(|at| image.file.starts_with(folder.path().join(at)))
                };
                prop_assert!(found.images.iter().all(inside));
            }
        }

        #[test]
        fn any_text_is_a_date_or_none(text in "[0-9:. \\x00-]{0,40}") {
            let _ = date_ns(&text);
        }
    }
}
