//! Opens recordings of any kind, by their content.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};

use super::choice::{self, Wanted};
use super::interface::{Lost, Message, Reader, Topic};
use super::messages::CameraInfo;
#[cfg(feature = "bags")]
use super::{bag, rosbag2};
use super::{dataset, folder, joined, listing, mcap, svo};
use stereod_core::control::Switch;
use stereod_core::reading;

/// Number of folders above a path that may be the recording it is a part of.
const ABOVE: usize = 3;

/// Number of recordings in a folder that a message names.
const SHOWN: usize = 3;

pub struct Recording {
    /// Path for messages.
    pub name: String,
    /// Kind of recording: "MCAP".
    pub kind: &'static str,
    /// Calibration files that belong to it.
    pub calibrations: Vec<PathBuf>,
    /// Size of the images of a folder, if it is known before they are read.
    pub size: Option<(usize, usize)>,
    reader: Box<dyn Reader>,
}

/// Kind of a recording, by the content of its file or folder.
enum Kind {
    Mcap,
    Bag,
    Sqlite,
    /// A whole file compressed by zstd, as rosbag2 does.
    Zstd,
    Rosbag2,
    Euroc(PathBuf),
    Kitti,
    Dataset,
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
        if path.join("metadata.yaml").is_file() || !parts(path).is_empty() {
            return Some(Kind::Rosbag2);
        }
        return dataset::is_dataset(path).then_some(Kind::Dataset);
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

/// Reports whether `path` is a recording, by names and first bytes.
pub fn is_recording(path: &Path) -> bool {
    kind(path).is_some()
}

/// Returns the files of a folder of rosbag2 in their order.
fn parts(folder: &Path) -> Vec<PathBuf> {
    let is_part = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let endings = [".db3", ".mcap", ".db3.zstd", ".mcap.zstd"];
        name.is_some_and(|name| endings.iter().any(|ending| name.ends_with(ending)))
    };
    let mut parts: Vec<PathBuf> = listing::entries(folder).into_iter().filter(is_part).collect();
    // Recorders number them: name_0.db3, name_10.db3.
    parts.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
    parts
}

/// Describes the missing parts of a path that is no recording, or names the recording that is likely meant.
fn near_miss(path: &Path) -> Option<String> {
    let whole = path.canonicalize().ok()?;
    let is_whole = |above: &&Path| {
        let Some(part) = whole.strip_prefix(above).ok().and_then(|part| part.iter().next()) else {
            return false;
        };
        matches!(kind(above), Some(Kind::Euroc(_) | Kind::Kitti | Kind::Dataset))
            && Recording::open(above)
                .is_ok_and(|found| found.topics().iter().any(|topic| part == topic.name.as_str()))
    };
    if let Some(above) = whole.ancestors().skip(1).take(ABOVE).find(is_whole) {
        return Some(format!("it is a part of one, which is given as {}", above.display()));
    }
    let lacking = dataset::near_miss(path);
    let mut below = listing::entries(path);
    below.retain(|path| is_recording(path));
    if lacking.is_none() && !below.is_empty() {
        let shown: Vec<_> =
            below.iter().take(SHOWN).map(|path| path.display().to_string()).collect();
        let more = if below.len() > SHOWN { " and others" } else { "" };
        return Some(format!("recordings in it are {}{more}", shown.join(", ")));
    }
    let parts: Vec<_> = [lacking, listing::as_streams(path)].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Begins the name of a ROS 2 graph; the begin of its topics' names may follow.
pub const GRAPH: &str = "ros2:";

/// Reports whether a path names a ROS 2 graph.
pub fn is_graph(path: &Path) -> bool {
    path.to_str().is_some_and(|name| name.starts_with(GRAPH)) && !path.exists()
}

/// Returns every file of the recording at `path`.
pub fn files(path: &Path) -> Vec<PathBuf> {
    if is_graph(path) {
        return vec![];
    }
    match kind(path) {
        Some(Kind::Rosbag2) => {
            let about = Some(path.join("metadata.yaml")).filter(|about| about.is_file());
            parts(path).into_iter().chain(about).collect()
        }
        Some(Kind::Euroc(folder)) => folder::Folder::euroc(&folder).map_or(vec![], |f| f.files()),
        Some(Kind::Kitti) => folder::Folder::kitti(path).map_or(vec![], |f| f.files()),
        Some(Kind::Dataset) => dataset::open(path).map_or(vec![], |(f, _)| f.files()),
        _ => vec![path.to_owned()],
    }
}

/// Explains that a path is no recording, and names the recording that is likely meant.
fn not_a_recording(path: &Path) -> anyhow::Error {
    let name = path.display();
    if !path.exists() {
        return anyhow!(
            "there is no recording {name}; videos, images, cameras and streams are given by --left and \
             --right, or --side-by-side"
        );
    }
    if path.extension().is_some_and(|end| end.eq_ignore_ascii_case("svo")) {
        return anyhow!("{name}: {}", svo::FIRST_VERSION);
    }
    if let Some(near) = near_miss(path) {
        return anyhow!("{name} is no recording: {near}");
    }
    anyhow!(
        "{name} is no recording: MCAP, ZED's .svo2, a ROS 1 bag (.bag), rosbag2 (.db3 or its folder), or the \
         folder of a data set is (EuRoC with mav0, KITTI raw with image_00, {}; docs/recordings.md has \
         their files); videos and images are given by --left and --right",
        dataset::names()
    )
}

impl Recording {
    /// Opens a recording and finds its topics.
    pub fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let of = |kind, reader| {
            let (name, calibrations, size) = (name.clone(), vec![], None);
            Ok(Self { name, kind, calibrations, size, reader })
        };
        let of_folder = |kind, folder: folder::Folder| {
            let (name, calibrations, size) =
                (name.clone(), folder.calibrations.clone(), folder.size);
            Ok(Self { name, kind, calibrations, size, reader: Box::new(folder) })
        };
        if is_graph(path) {
            return of("ROS 2 graph", open_graph(&name[GRAPH.len()..])?);
        }
        let found = kind(path).ok_or_else(|| not_a_recording(path))?;
        let within = || name.clone();
        match found {
            Kind::Mcap => {
                let (reader, is_svo) = mcap::open(path).with_context(within)?;
                of(if is_svo { "ZED .svo2" } else { "MCAP" }, reader)
            }
            Kind::Euroc(folder) => {
                of_folder("EuRoC folder", folder::Folder::euroc(&folder).with_context(within)?)
            }
            Kind::Kitti => {
                of_folder("KITTI raw folder", folder::Folder::kitti(path).with_context(within)?)
            }
            Kind::Dataset => {
                let (folder, kind) = dataset::open(path).with_context(within)?;
                of_folder(kind, folder)
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

    pub fn topics(&self) -> &[Topic] {
        self.reader.topics()
    }

    /// Starts from the beginning, with the messages of these topics only.
    pub(super) fn begin(&mut self, topics: &[usize]) -> Result<()> {
        self.reader.begin(topics).with_context(|| self.name.clone())
    }

    /// Makes a live source go on until `stop` is set, and reports whether it is live.
    pub(super) fn live(&mut self, stop: &Switch) -> bool {
        self.reader.live(stop)
    }

    /// Reads the next message; false at the end.
    pub(super) fn next(&mut self, message: &mut Message) -> Result<bool> {
        self.reader.next(message).with_context(|| self.name.clone())
    }

    /// Returns the damaged parts that were left out since the last call.
    pub(super) fn lost(&mut self) -> Vec<Lost> {
        self.reader.lost()
    }

    /// Returns the reason why the recording ended before its end, if it did.
    pub(super) fn cut(&self) -> Option<String> {
        self.reader.cut()
    }

    /// Returns the two topics of the views.
    pub fn choose(&self, wanted: &Wanted) -> Result<[usize; 2]> {
        choice::choose(self.topics(), wanted).with_context(|| match self.cut() {
            Some(cut) => format!("{} ({cut})", self.name),
            None => self.name.clone(),
        })
    }

    /// Reads the `CameraInfo` of these views until `usable` accepts both, and returns its result; `None` if a
    /// camera has none. Fails with the last reason if none is usable.
    pub fn camera_infos<T>(
        &mut self,
        views: [usize; 2],
        usable: impl Fn(&[String; 2], [&CameraInfo; 2]) -> Result<T>,
    ) -> Result<Option<Found<T>>> {
        let Some(topics) = choice::camera_infos(self.topics(), views) else { return Ok(None) };
        let names = topics.map(|topic| self.topics()[topic].name.clone());
        self.begin(&topics)?;
        let (mut infos, mut flaw, mut message) = ([None, None], None, Message::default());
        // Messages read per camera, and the number before the current one.
        let (mut read, mut before) = ([0; 2], [0; 2]);
        while read[0] + read[1] < INFOS_MAX && self.next(&mut message)? {
            let eye = usize::from(message.topic == topics[1]);
            read[eye] += 1;
            match CameraInfo::read(&self.topics()[message.topic].encoding, &message.data) {
                Ok(info) if infos[eye].as_ref() == Some(&info) => continue,
                Ok(info) => (infos[eye], before[eye]) = (Some(info), read[eye] - 1),
                Err(error) => {
                    flaw = Some(error.context(names[eye].clone()));
                    continue;
                }
            }
            let [Some(left), Some(right)] = &infos else { continue };
            match usable(&names, [left, right]) {
                Ok(calibration) => {
                    return Ok(Some(Found { names, calibration, before, flaw }));
                }
                Err(error) => flaw = Some(error),
            }
        }
        let damage = || self.lost().into_iter().next().map(|lost| anyhow::anyhow!(lost.what));
        flaw.or_else(damage).map_or(Ok(None), Err)
    }
}

/// Most messages of both cameras among which a usable calibration is looked for.
const INFOS_MAX: u64 = 2000;

/// A calibration in messages.
pub struct Found<T> {
    /// Topics of the left and the right camera.
    pub names: [String; 2],
    pub calibration: T,
    /// Number of earlier messages of each camera, which are not usable.
    pub before: [u64; 2],
    /// Reason why an earlier one is not usable.
    pub flaw: Option<anyhow::Error>,
}

/// Error for files that need SQLite, bzip2 or LZ4.
#[cfg(not(feature = "bags"))]
const WITHOUT_BAGS: &str = "this program was built without the feature `bags`, which reads .bag, .db3 and zstd files; MCAP is read";

#[cfg(feature = "ros2")]
fn open_graph(prefix: &str) -> Result<Box<dyn Reader>> {
    crate::ros2::graph::open(prefix)
}

#[cfg(not(feature = "ros2"))]
fn open_graph(_prefix: &str) -> Result<Box<dyn Reader>> {
    bail!("{GRAPH} names a ROS 2 graph, and this program was built without the feature `ros2`")
}

/// Opens a folder of rosbag2: one file, or several in sequence.
fn open_folder(folder: &Path) -> Result<Box<dyn Reader>> {
    let parts = parts(folder);
    ensure!(!parts.is_empty(), "the folder holds no .db3 and no .mcap file");
    let open = |path: &PathBuf| -> Result<Box<dyn Reader>> {
        match kind(path) {
            Some(Kind::Mcap) => mcap::open(path).map(|(reader, _)| reader),
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
