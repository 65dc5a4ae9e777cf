//! Words in the names of topics and files: marks of the side, and words for kinds of images.

/// Marks of the left and the right view in names, in lower case, as words of their own.
const MARKS: &str = "\
    left/right infra1/infra2 infra_1/infra_2 infrared_1/infrared_2 ir1/ir2 cam0/cam1 \
    cam_0/cam_1 camera0/camera1 camera_0/camera_1 l/r fisheye1/fisheye2 image_00/image_01 \
    image_02/image_03 image_0/image_1 image_2/image_3 colored_0/colored_1 lcam/rcam im0/im1 \
    camera_00/camera_02";

/// Words of topics that hold no view of a camera.
pub(super) const NO_VIEWS: &str = "\
    compresseddepth confidence depth disparity flow heatmap instance instances label labels \
    mask masks normals panoptic segmentation semantic semantics seg theora";

/// Words of topics with camera images, and words for their variants.
const OF_CAMERAS: &str = "\
    bayer bgr bgr8 cam camera color colored colour compressed data ffmpeg frame gray grey \
    h264 h265 image images img infra infrared ir jpeg mono optical photo picture png raw rect \
    rectified rgb rgb8 scene video view";

pub(super) const COLOURS: [&str; 7] =
    ["color", "colour", "rgb", "bgr", "image_02", "image_2", "colored_0"];

fn marks() -> impl Iterator<Item = (&'static str, &'static str)> {
    MARKS.split(' ').filter_map(|pair| pair.split_once('/'))
}

pub(super) fn has_word(name: &str, word: &str) -> bool {
    !places(name, word).is_empty()
}

/// Returns the positions of a word of its own in a name.
fn places(name: &str, word: &str) -> Vec<usize> {
    let lower = name.to_ascii_lowercase();
    let places = lower.match_indices(word).map(|(at, _)| at);
    places.filter(|at| is_edge(name, *at) && is_edge(name, at + word.len())).collect()
}

/// Reports whether a word may begin or end at a position of a name: at a character that is neither letter nor
/// digit, or at a capital as in `leftCam` and `IRLeft`.
fn is_edge(name: &str, at: usize) -> bool {
    let (before, behind) = name.split_at(at);
    let (Some(last), Some(next)) = (before.chars().next_back(), behind.chars().next()) else {
        return true;
    };
    let is_in_word = |c: char| c.is_alphanumeric();
    let begins_lower = behind.chars().nth(1).is_some_and(char::is_lowercase);
    !is_in_word(last)
        || !is_in_word(next)
        || next.is_uppercase() && (!last.is_uppercase() || begins_lower)
}

/// Returns the words of a name behind its first mark that neither are marks nor stand for images of a camera. Names
/// that differ in them have another kind of images.
pub(super) fn kind(name: &str, mark: usize) -> String {
    let mut marked = vec![false; name.len()];
    for word in marks().flat_map(|(left, right)| [left, right]) {
        for at in places(name, word) {
            marked[at..at + word.len()].fill(true);
        }
    }
    let edges = name.char_indices().map(|(at, _)| at).filter(|at| is_edge(name, *at));
    let starts: Vec<usize> = edges.chain([name.len()]).filter(|at| *at >= mark).collect();
    let words = starts.windows(2).filter(|two| !marked[two[0]]).map(|two| &name[two[0]..two[1]]);
    let words = words.map(str::to_ascii_lowercase).filter(|word| {
        word.chars().all(char::is_alphanumeric) && !OF_CAMERAS.split(' ').any(|it| it == word)
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Returns the position of the first mark of the left view, and the name of the right view in lower case, for
/// every mark in a name.
pub(super) fn others(name: &str) -> Vec<(usize, String)> {
    let lower = name.to_ascii_lowercase();
    let other = |(left, right): (&str, &str)| {
        let places = places(name, left);
        let first = *places.first()?;
        let (mut text, mut end) = (String::new(), 0);
        for at in places {
            text += &lower[end..at];
            text += right;
            end = at + left.len();
        }
        Some((first, text + &lower[end..]))
    };
    marks().filter_map(other).collect()
}

pub fn partners(left: &str) -> impl Iterator<Item = String> {
    others(left).into_iter().map(|(_, right)| right.to_lowercase())
}
