//! Recordings of messages: MCAP, ROS 1 bags, rosbag2, and the folders of EuRoC and KITTI raw.
//!
//! A [`Reader`] lists topics and yields their messages in order of log time; everything else (which two topics
//! are the views, pairing, calibration) is the same for all of them. A recording that was cut off is read to its
//! last whole message.

#[cfg(feature = "bags")]
mod bag;
pub mod choice;
mod fields;
mod folder;
mod joined;
mod mcap;
pub mod messages;
mod pixels;
mod replay;
#[cfg(feature = "bags")]
mod rosbag2;
pub mod survey;

use std::fmt;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::core::memory::{Budget, TooMuch};
use crate::core::reading;
use choice::Wanted;
use messages::CameraInfo;
pub use replay::open as replay;

/// Part of the memory budget that one message or chunk may take.
const PART: u64 = 4;

/// Most topics of a recording.
const TOPICS_MAX: usize = 10_000;

/// Encoding of a topic's messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// CDR of ROS 2.
    Cdr,
    /// That of ROS 1.
    Ros1,
    /// The message is an image file.
    File,
    /// Another one, which is not read.
    Other(String),
}

impl Encoding {
    /// Returns the encoding of this name.
    fn of(name: &str) -> Self {
        match name {
            "cdr" => Self::Cdr,
            "ros1" => Self::Ros1,
            other => Self::Other(other.to_owned()),
        }
    }

    /// Reports whether messages in it can be read.
    pub fn is_known(&self) -> bool {
        !matches!(self, Self::Other(_))
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cdr => "cdr",
            Self::Ros1 => "ros1",
            Self::File => "file",
            Self::Other(name) => name,
        })
    }
}

/// A topic of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    /// Name, such as `/camera/left/image_raw`.
    pub name: String,
    /// Type of its messages, such as `sensor_msgs/Image`.
    pub kind: String,
    /// Encoding of its messages.
    pub encoding: Encoding,
    /// Number of its messages, if known.
    pub messages: Option<u64>,
}

impl Topic {
    /// Describes a topic. ROS 2 has `/msg/` in the names of types.
    fn new(name: &str, kind: &str, encoding: Encoding, messages: Option<u64>) -> Self {
        Self { name: name.to_owned(), kind: kind.replacen("/msg/", "/", 1), encoding, messages }
    }
}

/// A message.
#[derive(Clone, Debug, Default)]
pub struct Message {
    /// Number of its topic.
    pub topic: usize,
    /// Time of recording in nanoseconds.
    pub log_ns: u64,
    /// Its bytes.
    pub data: Vec<u8>,
}

/// Reader of one kind of recording.
trait Reader: Send {
    /// Returns the topics.
    fn topics(&self) -> &[Topic];

    /// Starts from the beginning, with the messages of these topics only.
    fn begin(&mut self, topics: &[usize]) -> Result<()>;

    /// Reads the next message into `message`, in order of log time; false at the end.
    fn next(&mut self, message: &mut Message) -> Result<bool>;

    /// Returns the reason why the recording ended before its end, if it did.
    fn cut(&self) -> Option<String> {
        None
    }
}

/// An opened recording.
pub struct Recording {
    /// Path for messages.
    pub name: String,
    /// Kind of recording: "MCAP".
    pub kind: &'static str,
    /// Calibration files that belong to it.
    pub calibrations: Vec<PathBuf>,
    reader: Box<dyn Reader>,
}

/// What a file or folder is, by its content.
enum Kind {
    Mcap,
    Bag,
    Sqlite,
    /// A whole file compressed by zstd, as rosbag2 does.
    Zstd,
    Rosbag2,
    Euroc(PathBuf),
    Kitti,
}

/// Returns the kind of recording at `path`, if it is one. Nothing but names and first bytes are read.
fn kind(path: &Path) -> Option<Kind> {
    if path.is_dir() {
        if let Some(folder) = folder::euroc(path) {
            return Some(Kind::Euroc(folder));
        }
        if folder::is_kitti(path) {
            return Some(Kind::Kitti);
        }
        let holds_files = || !parts(path).is_empty();
        return (path.join("metadata.yaml").is_file() || holds_files()).then_some(Kind::Rosbag2);
    }
    if !path.is_file() {
        return None;
    }
    let mut start = Vec::new();
    reading::open(path).ok()?.take(16).read_to_end(&mut start).ok()?;
    match &start[..] {
        [0x89, b'M', b'C', b'A', b'P', ..] => Some(Kind::Mcap),
        start if start.starts_with(b"#ROSBAG V2.0\n") => Some(Kind::Bag),
        b"SQLite format 3\0" => Some(Kind::Sqlite),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Kind::Zstd),
        _ => None,
    }
}

/// Returns the files of a folder of rosbag2 in their order.
fn parts(folder: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_part = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let endings = [".db3", ".mcap", ".db3.zstd", ".mcap.zstd"];
        name.is_some_and(|name| endings.iter().any(|ending| name.ends_with(ending)))
    };
    let mut parts: Vec<PathBuf> = names.filter(is_part).collect();
    // Recorders number them: name_0.db3, name_10.db3.
    parts.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
    parts
}

/// Returns every file of the recording at `path`.
pub fn files(path: &Path) -> Vec<PathBuf> {
    match kind(path) {
        Some(Kind::Rosbag2) => {
            parts(path).into_iter().chain([path.join("metadata.yaml")]).collect()
        }
        Some(Kind::Euroc(folder)) => folder::Folder::euroc(&folder).map_or(vec![], |f| f.files()),
        Some(Kind::Kitti) => folder::Folder::kitti(path).map_or(vec![], |f| f.files()),
        _ => vec![path.to_owned()],
    }
}

impl Recording {
    /// Opens a recording and finds its topics.
    pub fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let of = |kind, reader| Ok(Self { name: name.clone(), kind, calibrations: vec![], reader });
        let Some(found) = kind(path) else {
            if !path.exists() {
                bail!("there is no {name}");
            }
            bail!(
                "{name} is no recording: MCAP, a ROS 1 bag (.bag), rosbag2 (.db3 or its folder), or a folder of \
                 EuRoC (with mav0) or KITTI raw (with image_00) is; videos and images are given by --left and \
                 --right"
            );
        };
        let within = || name.clone();
        match found {
            Kind::Mcap => of("MCAP", mcap::open(path).with_context(within)?),
            Kind::Euroc(folder) => {
                let folder = folder::Folder::euroc(&folder).with_context(within)?;
                let calibrations = folder.calibrations.clone();
                Ok(Self { name, kind: "EuRoC folder", calibrations, reader: Box::new(folder) })
            }
            Kind::Kitti => {
                let folder = folder::Folder::kitti(path).with_context(within)?;
                let calibrations = folder.calibrations.clone();
                Ok(Self { name, kind: "KITTI raw folder", calibrations, reader: Box::new(folder) })
            }
            Kind::Rosbag2 => of("rosbag2 folder", open_folder(path).with_context(within)?),
            #[cfg(feature = "bags")]
            Kind::Bag => of("ROS 1 bag", bag::open(path).with_context(within)?),
            #[cfg(feature = "bags")]
            Kind::Sqlite | Kind::Zstd => {
                of("rosbag2 file", rosbag2::open(path, None).with_context(within)?)
            }
            #[cfg(not(feature = "bags"))]
            Kind::Bag | Kind::Sqlite | Kind::Zstd => bail!("{name}: {WITHOUT_BAGS}"),
        }
    }

    /// Returns the topics.
    pub fn topics(&self) -> &[Topic] {
        self.reader.topics()
    }

    /// Starts from the beginning, with the messages of these topics only.
    fn begin(&mut self, topics: &[usize]) -> Result<()> {
        self.reader.begin(topics).with_context(|| self.name.clone())
    }

    /// Reads the next message; false at the end.
    fn next(&mut self, message: &mut Message) -> Result<bool> {
        self.reader.next(message).with_context(|| self.name.clone())
    }

    /// Returns the two topics of the views.
    pub fn choose(&self, wanted: &Wanted) -> Result<[usize; 2]> {
        choice::choose(self.topics(), wanted).with_context(|| self.name.clone())
    }

    /// Returns the calibrations of these views with the names of their topics, if there are any: the first
    /// message of each camera's `CameraInfo`.
    pub fn camera_infos(&mut self, views: [usize; 2]) -> Result<Option<[(String, CameraInfo); 2]>> {
        let Some(topics) = choice::camera_infos(self.topics(), views) else { return Ok(None) };
        self.begin(&topics)?;
        let (mut found, mut message) = ([None, None], Message::default());
        while found.iter().any(Option::is_none) && self.next(&mut message)? {
            let eye = usize::from(message.topic == topics[1]);
            if found[eye].is_none() {
                let Topic { name, encoding, .. } = &self.topics()[message.topic];
                let info = CameraInfo::read(encoding, &message.data)
                    .with_context(|| format!("{}: {name}", self.name))?;
                found[eye] = Some((name.clone(), info));
            }
        }
        let [left, right] = found;
        Ok(left.zip(right).map(|(left, right)| [left, right]))
    }
}

/// Refusal of what SQLite, bzip2 and LZ4 are needed for.
#[cfg(not(feature = "bags"))]
const WITHOUT_BAGS: &str = "this program was built without the feature `bags`, which reads .bag, .db3 and zstd files; MCAP is read";

/// Opens a folder of rosbag2: one file, or several in sequence.
fn open_folder(folder: &Path) -> Result<Box<dyn Reader>> {
    let parts = parts(folder);
    ensure!(!parts.is_empty(), "the folder holds no .db3 and no .mcap file");
    let open = |path: &PathBuf| -> Result<Box<dyn Reader>> {
        match kind(path) {
            Some(Kind::Mcap) => mcap::open(path),
            #[cfg(feature = "bags")]
            Some(Kind::Sqlite | Kind::Zstd) => rosbag2::open(path, Some(folder)),
            #[cfg(not(feature = "bags"))]
            Some(Kind::Sqlite | Kind::Zstd) => bail!(WITHOUT_BAGS),
            _ => bail!("the file is neither MCAP nor SQLite; is it empty or damaged?"),
        }
        .with_context(|| path.display().to_string())
    };
    joined::join(parts.iter().map(open).collect::<Result<Vec<_>>>()?)
}

/// Returns the largest length of a message or chunk in bytes.
fn longest() -> u64 {
    Budget::of_process().left() / PART
}

/// Checks the length of a message or chunk that is about to be read.
fn check_length(what: &str, bytes: u64) -> Result<(), TooMuch> {
    Budget::of_process().check(what, bytes.saturating_mul(PART), "a smaller recording")
}

/// Makes room for so many bytes in a buffer.
fn resize(buffer: &mut Vec<u8>, bytes: usize) -> Result<()> {
    buffer.clear();
    crate::core::memory::grow(buffer, bytes, 0)?;
    Ok(())
}
