//! Opens recordings of any kind, by their content.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};

use super::choice::{self, Wanted};
use super::folder::{self, Folder, as_streams, entries};
use super::interface::{Lost, Message, Reader, TOPICS_MAX, Topic, add_topic};
use super::messages::CameraInfo;
#[cfg(feature = "bags")]
use super::{bag, packed, rosbag2};
use super::{dataset, mcap, svo};
use crate::container::Stated;
use crate::source::gst::inputs::packing;
use stereod_core::reading;

/// Number of folders above a path that may be the recording it is a part of.
const ABOVE: usize = 3;

const SHOWN: usize = 3;

pub struct Recording {
    pub name: String,
    pub kind: &'static str,
    pub calibrations: Vec<PathBuf>,
    /// Size of the images of a folder, if it is known before they are read.
    pub size: Option<(usize, usize)>,
    pub(super) reader: Box<dyn Reader>,
}

enum Kind {
    Mcap,
    Bag,
    /// SQLite, or a whole file compressed by zstd, as rosbag2 does.
    Database,
    Rosbag2,
    /// The folder of a data set, and how it is opened.
    DataSet(PathBuf, OpenFolder),
}

/// Opens the folder of a data set. Returns also its kind.
type OpenFolder = fn(&Path) -> Result<(Folder, &'static str)>;

/// Returns the kind of recording at `path`, if it is one. Nothing but names and first bytes are read.
fn kind(path: &Path) -> Option<Kind> {
    if path.is_dir() {
        if let Some(folder) = folder::euroc(path) {
            return Some(Kind::DataSet(folder, |at| Ok((Folder::euroc(at)?, "EuRoC folder"))));
        }
        if folder::is_kitti(path) {
            let open: OpenFolder = |at| Ok((Folder::kitti(at)?, "KITTI raw folder"));
            return Some(Kind::DataSet(path.to_owned(), open));
        }
        if path.join("metadata.yaml").is_file() || !parts(path).is_empty() {
            return Some(Kind::Rosbag2);
        }
        let of_table = || Kind::DataSet(path.to_owned(), dataset::open);
        return dataset::is_dataset(path).then(of_table);
    }
    if !path.is_file() {
        return None;
    }
    let mut start = Vec::new();
    reading::open(path).ok()?.take(16).read_to_end(&mut start).ok()?;
    match &start[..] {
        [0x89, b'M', b'C', b'A', b'P', ..] => Some(Kind::Mcap),
        start if start.starts_with(b"#ROSBAG V2.0\n") => Some(Kind::Bag),
        b"SQLite format 3\0" | [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Kind::Database),
        _ => None,
    }
}

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
    let mut parts: Vec<PathBuf> = entries(folder).into_iter().filter(is_part).collect();
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
        matches!(kind(above), Some(Kind::DataSet(..)))
            && Recording::open(above)
                .is_ok_and(|found| found.topics().iter().any(|topic| part == topic.name.as_str()))
    };
    if let Some(above) = whole.ancestors().skip(1).take(ABOVE).find(is_whole) {
        return Some(format!("it is a part of one, which is given as {}", above.display()));
    }
    let lacking = dataset::near_miss(path);
    let mut below = entries(path);
    below.retain(|path| is_recording(path));
    if lacking.is_none() && !below.is_empty() {
        let shown: Vec<_> =
            below.iter().take(SHOWN).map(|path| path.display().to_string()).collect();
        let more = if below.len() > SHOWN { " and others" } else { "" };
        return Some(format!("recordings in it are {}{more}", shown.join(", ")));
    }
    let parts: Vec<_> = [lacking, as_streams(path)].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Begins the name of a ROS 2 graph; the begin of its topics' names may follow.
pub const GRAPH: &str = "ros2:";

pub fn is_graph(path: &Path) -> bool {
    path.to_str().is_some_and(|name| name.starts_with(GRAPH)) && !path.exists()
}

pub fn files(path: &Path) -> Vec<PathBuf> {
    if is_graph(path) {
        return vec![];
    }
    match kind(path) {
        Some(Kind::Rosbag2) => {
            let about = Some(path.join("metadata.yaml")).filter(|about| about.is_file());
            parts(path).into_iter().chain(about).collect()
        }
        Some(Kind::DataSet(folder, open)) => {
            open(&folder).map_or(vec![], |(found, _)| found.files())
        }
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
    if let Some(command) = decompressor(path) {
        return anyhow!("{name} is compressed: `{command} {name}` decompresses it first");
    }
    if let Some(advice) = packing::advice(Stated::read(path)) {
        return anyhow!("{name} is one video, no recording of messages; {advice}");
    }
    if let Some(near) = near_miss(path) {
        return anyhow!("{name} is no recording: {near}");
    }
    anyhow!(
        "{name} is no recording: MCAP, ZED's .svo2, a ROS 1 bag (.bag), rosbag2 (.db3 or its folder), or the \
         folder of a data set is (EuRoC with mav0, KITTI raw with image_00, {}; docs/recordings.md has \
         their files); videos and images are given by --left and --right, or with both views in one by \
         --side-by-side or --top-bottom",
        dataset::names()
    )
}

/// Returns the command that decompresses a file, by its first bytes.
fn decompressor(path: &Path) -> Option<&'static str> {
    const COMMANDS: [(&[u8], &str); 6] = [
        (&[0x1f, 0x8b], "gunzip -k"),
        (b"BZh", "bunzip2 -k"),
        (&[0xfd, b'7', b'z', b'X', b'Z', 0], "unxz -k"),
        (&[0x04, 0x22, 0x4d, 0x18], "unlz4 -k"),
        (b"PK\x03\x04", "unzip"),
        (b"7z\xbc\xaf\x27\x1c", "7z x"),
    ];
    let mut start = Vec::new();
    reading::open(path).ok()?.take(6).read_to_end(&mut start).ok()?;
    let known = COMMANDS.iter().find(|(magic, _)| start.starts_with(magic));
    known.map(|(_, command)| *command)
}

impl Recording {
    pub fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        if is_graph(path) {
            let (reader, calibrations) = (open_graph(&name[GRAPH.len()..])?, vec![]);
            return Ok(Self { name, kind: "ROS 2 graph", calibrations, size: None, reader });
        }
        let (mut calibrations, mut size) = (vec![], None);
        let opened: Result<(&'static str, Box<dyn Reader>)> =
            match kind(path).ok_or_else(|| not_a_recording(path))? {
                Kind::Mcap => open_mcap(path)
                    .map(|(reader, is_svo)| (if is_svo { "ZED .svo2" } else { "MCAP" }, reader)),
                Kind::DataSet(folder, open) => open(&folder).map(|(folder, kind)| {
                    (calibrations, size) = (folder.calibrations.clone(), folder.size);
                    (kind, Box::new(folder) as _)
                }),
                Kind::Rosbag2 => open_folder(path).map(|reader| ("rosbag2 folder", reader)),
                #[cfg(feature = "bags")]
                Kind::Bag => bag::open(path).map(|reader| ("ROS 1 bag", reader)),
                #[cfg(feature = "bags")]
                Kind::Database => rosbag2::open(path, None).map(|reader| ("rosbag2 file", reader)),
                #[cfg(not(feature = "bags"))]
                Kind::Bag | Kind::Database => Err(anyhow!(WITHOUT_BAGS)),
            };
        let (kind, reader) = opened.with_context(|| name.clone())?;
        Ok(Self { name, kind, calibrations, size, reader })
    }

    pub fn topics(&self) -> &[Topic] {
        self.reader.topics()
    }

    pub(super) fn begin(&mut self, topics: &[usize]) -> Result<()> {
        self.reader.begin(topics).with_context(|| self.name.clone())
    }

    pub(super) fn next(&mut self, message: &mut Message) -> Result<bool> {
        self.reader.next(message).with_context(|| self.name.clone())
    }

    pub fn choose(&self, wanted: &Wanted) -> Result<[usize; 2]> {
        choice::choose(self.topics(), wanted).with_context(|| match self.reader.cut() {
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
        let damage =
            || self.reader.lost().into_iter().next().map(|lost| anyhow::anyhow!(lost.what));
        flaw.or_else(damage).map_or(Ok(None), Err)
    }
}

/// Most messages of both cameras among which a usable calibration is looked for.
const INFOS_MAX: u64 = 2000;

pub struct Found<T> {
    pub names: [String; 2],
    pub calibration: T,
    /// Number of earlier messages of each camera, which are not usable.
    pub before: [u64; 2],
    pub flaw: Option<anyhow::Error>,
}

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

/// Opens an MCAP file. Reports also whether it is ZED's `.svo2`.
fn open_mcap(path: &Path) -> Result<(Box<dyn Reader>, bool)> {
    let (reader, is_svo) = mcap::open(path)?;
    #[cfg(feature = "bags")]
    let reader = packed::unpacked(reader);
    Ok((reader, is_svo))
}

/// Opens a folder of rosbag2: one file, or several in sequence.
fn open_folder(folder: &Path) -> Result<Box<dyn Reader>> {
    let parts = parts(folder);
    ensure!(!parts.is_empty(), "the folder holds no .db3 and no .mcap file");
    let open = |path: &PathBuf| -> Result<Box<dyn Reader>> {
        match kind(path) {
            Some(Kind::Mcap) => open_mcap(path).map(|(reader, _)| reader),
            #[cfg(feature = "bags")]
            Some(Kind::Database) => rosbag2::open(path, Some(folder)),
            #[cfg(not(feature = "bags"))]
            Some(Kind::Database) => bail!(WITHOUT_BAGS),
            _ => bail!("the file is neither MCAP nor SQLite; is it empty or damaged?"),
        }
        .with_context(|| path.display().to_string())
    };
    join(parts.iter().map(open).collect::<Result<Vec<_>>>()?)
}

/// Readers of the parts; topics with the same name are joined.
struct Joined {
    topics: Vec<Topic>,
    /// Each part with the number of each of its topics here.
    parts: Vec<(Box<dyn Reader>, Vec<usize>)>,
    wanted: Vec<usize>,
    at: usize,
    is_begun: bool,
}

fn join(mut parts: Vec<Box<dyn Reader>>) -> Result<Box<dyn Reader>> {
    if parts.len() == 1
        && let Some(only) = parts.pop()
    {
        return Ok(only);
    }
    let mut topics: Vec<Topic> = Vec::new();
    let mut numbered = Vec::new();
    for part in parts {
        let add = |topic: &Topic| add_topic(&mut topics, topic.clone());
        let numbers = part.topics().iter().map(add).collect();
        numbered.push((part, numbers));
    }
    ensure!(topics.len() <= TOPICS_MAX, "the recording has {} topics", topics.len());
    let wanted = Vec::new();
    Ok(Box::new(Joined { topics, parts: numbered, wanted, at: 0, is_begun: false }))
}

impl Reader for Joined {
    fn topics(&self) -> &[Topic] {
        &self.topics
    }

    fn begin(&mut self, topics: &[usize]) -> Result<()> {
        (self.wanted, self.at, self.is_begun) = (topics.to_vec(), 0, false);
        Ok(())
    }

    fn next(&mut self, message: &mut Message) -> Result<bool> {
        while let Some((part, numbers)) = self.parts.get_mut(self.at) {
            if !self.is_begun {
                let own = numbers.iter().enumerate();
                let own = own.filter(|(_, number)| self.wanted.contains(number));
                part.begin(&own.map(|(own, _)| own).collect::<Vec<_>>())?;
                self.is_begun = true;
            }
            if part.next(message)? {
                message.topic = numbers[message.topic];
                return Ok(true);
            }
            (self.at, self.is_begun) = (self.at + 1, false);
        }
        Ok(false)
    }

    fn lost(&mut self) -> Vec<Lost> {
        let of_part = |(part, numbers): &mut (Box<dyn Reader>, Vec<usize>)| {
            let mut lost = part.lost();
            let topics = lost.iter_mut().flat_map(|lost| &mut lost.messages);
            topics.for_each(|(topic, _)| *topic = numbers[*topic]);
            lost
        };
        self.parts.iter_mut().flat_map(of_part).collect()
    }

    fn cut(&self) -> Option<String> {
        self.parts.iter().find_map(|(part, _)| part.cut())
    }
}
