//! ChArUco boards and AprilGrids, and boards from text.

use calib_targets_charuco::{CharucoBoard, CharucoBoardSpec, Dictionary, resolve_dictionary};

use crate::board::pattern::{BoardError, MOST_SQUARES, Pattern};

/// Default distance between the tags of an AprilGrid relative to their side, as in Kalibr's examples.
const SPACING: f64 = 0.3;

/// Dictionary of an AprilGrid's tags, by OpenCV's name.
pub(super) const FAMILY: &str = "DICT_APRILTAG_36h11";

/// Default side of a ChArUco marker relative to the square's.
const MARKER_RATIO: f64 = 0.75;

/// Dictionaries for boards that name none, smallest first. The smaller ones are the first part of
/// the larger ones, so that the choice changes no board.
const DICTIONARIES: [&str; 4] = ["DICT_4X4_50", "DICT_4X4_100", "DICT_4X4_250", "DICT_4X4_1000"];

/// Arrangement of a ChArUco board's squares and markers.
pub(super) struct CharucoLayout {
    /// A board that contains this one.
    pub(super) spec: CharucoBoardSpec,
    pub(super) rows_above: usize,
}

/// Makes a ChArUco board with these numbers of squares. Without a dictionary it uses the
/// smallest of OpenCV's 4x4 ones with enough markers.
fn charuco(
    squares_x: usize,
    squares_y: usize,
    marker_ratio: f64,
    dictionary: Option<&str>,
) -> Result<Pattern, BoardError> {
    if squares_x.min(squares_y) < 3 || squares_x.max(squares_y) > MOST_SQUARES {
        return Err(BoardError(format!(
            "a ChArUco board has 3 to {MOST_SQUARES} squares along each side, not \
             {squares_x}x{squares_y}"
        )));
    }
    if !(marker_ratio > 0.2 && marker_ratio < 0.98) {
        return Err(BoardError(format!(
            "a marker is 0.2 to 0.98 times as wide as its square, not {marker_ratio}; the \
             white between marker and square must be seen"
        )));
    }
    let needed = (squares_x * squares_y) / 2;
    let dictionary = match dictionary {
        Some(name) => named_dictionary(name)?,
        None => DICTIONARIES
            .into_iter()
            .filter_map(resolve_dictionary)
            .find(|dictionary| dictionary.codes().len() >= needed)
            .ok_or_else(|| {
                BoardError(format!("no dictionary has the {needed} markers of this board"))
            })?,
    };
    let name = dictionary.name();
    let pattern = Pattern::Charuco { squares_x, squares_y, marker_ratio, dictionary: name };
    // The library's own checks, so that every accepted board can be detected.
    charuco_spec(&pattern).map(CharucoBoard::new).transpose().map_err(|error| {
        BoardError(format!("{error} ({name}): a smaller board or a larger dictionary is needed"))
    })?;
    Ok(pattern)
}

/// Makes an AprilGrid with these numbers of tags.
fn aprilgrid(columns: usize, rows: usize, spacing: f64) -> Result<Pattern, BoardError> {
    let most = markers(FAMILY).codes().len();
    if columns.min(rows) < 2 || columns.checked_mul(rows).is_none_or(|tags| tags > most) {
        return Err(BoardError(format!(
            "an AprilGrid has 2 tags or more along each side and {most} in all, not {columns}x{rows}"
        )));
    }
    if !(0.1..=1.0).contains(&spacing) {
        return Err(BoardError(format!(
            "the distance between the tags of an AprilGrid is 0.1 to 1 times their side, not {spacing}"
        )));
    }
    Ok(Pattern::AprilGrid { columns, rows, spacing })
}

/// Returns the board with markers of another size, relative to the square's.
pub fn with_marker_ratio(pattern: &Pattern, ratio: f64) -> Result<Pattern, BoardError> {
    match *pattern {
        Pattern::Charuco { squares_x, squares_y, dictionary, .. } => {
            charuco(squares_x, squares_y, ratio, Some(dictionary))
        }
        Pattern::Chessboard { .. } => Err(BoardError("a chessboard has no markers".into())),
        Pattern::AprilGrid { .. } => {
            Err(BoardError("the side of an AprilGrid's tags is given by --square".into()))
        }
    }
}

/// Returns the possible layouts of a printed ChArUco board, for the detection library; none for a chessboard.
pub(super) fn layouts(pattern: &Pattern) -> Vec<CharucoLayout> {
    let Some(spec) = charuco_spec(pattern) else { return Vec::new() };
    let layout = CharucoLayout { spec, rows_above: 0 };
    if !spec.rows.is_multiple_of(2) {
        return vec![layout];
    }
    // OpenCV before 4.6 and calib.io start boards with an even number of rows with a white square. Such a
    // board is one with a row more, without its first row; the markers of that row are blank.
    let (blank, markers) = (spec.cols as usize / 2, spec.dictionary);
    let codes = [&vec![0; blank], markers.codes()].concat();
    let dictionary = Dictionary::from_static_codes(
        markers.name(),
        markers.marker_size(),
        markers.max_correction_bits(),
        // The library needs codes that live as long as the program, which has one board.
        codes.leak(),
    );
    let older = dictionary.ok().map(|dictionary| {
        let (rows, marker) = (spec.rows + 1, spec.marker_size_rel);
        let spec = CharucoBoardSpec::new(rows, spec.cols, 1.0, marker, dictionary);
        CharucoLayout { spec, rows_above: 1 }
    });
    [Some(layout), older].into_iter().flatten().collect()
}

/// Returns the board for the library that detects it, in squares; `None` for a chessboard.
fn charuco_spec(pattern: &Pattern) -> Option<CharucoBoardSpec> {
    let Pattern::Charuco { squares_x, squares_y, marker_ratio, dictionary } = *pattern else {
        return None;
    };
    let dictionary = markers(dictionary);
    let (rows, columns) = (squares_y as u32, squares_x as u32);
    Some(CharucoBoardSpec::new(rows, columns, 1.0, marker_ratio as f32, dictionary))
}

pub(super) fn markers(dictionary: &str) -> Dictionary {
    resolve_dictionary(dictionary).expect("patterns name known dictionaries")
}

fn named_dictionary(name: &str) -> Result<Dictionary, BoardError> {
    let upper = name.to_uppercase();
    // Names such as 4x4_50, DICT_4X4_50 and APRILTAG_36h11.
    [name.to_owned(), upper.clone(), format!("DICT_{upper}"), upper.replace('H', "h")]
        .into_iter()
        .chain([format!("DICT_{}", upper.replace('H', "h"))])
        .find_map(|name| resolve_dictionary(&name))
        .ok_or_else(|| {
            BoardError(format!(
                "no dictionary of markers is called `{name}`; OpenCV's are 4x4_50, 4x4_100, \
                 4x4_250, 4x4_1000, the same with 5x5, 6x6 and 7x7, and apriltag_36h11"
            ))
        })
}

/// Reads `chessboard:9x6`, `charuco:11x8[:0.75[:4x4_50]]` and `aprilgrid:6x6[:0.3]`.
pub fn pattern(text: &str) -> Result<Pattern, BoardError> {
    let mut parts = text.split(':');
    let kind = parts.next().unwrap_or_default();
    let size = parts.next().and_then(|size| {
        let (width, height) = size.split_once(['x', 'X'])?;
        Some((width.trim().parse().ok()?, height.trim().parse().ok()?))
    });
    let wrong = || {
        BoardError(format!(
            "`{text}` is no board; write chessboard:9x6 (inner corners), \
             charuco:11x8[:MARKER/SQUARE[:DICTIONARY]] (squares), such as charuco:11x8:0.75:4x4_50, or \
             aprilgrid:6x6[:SPACING] (tags)"
        ))
    };
    let (width, height) = size.ok_or_else(wrong)?;
    let pattern = match kind {
        "chessboard" => Pattern::chessboard(width, height)?,
        "charuco" => {
            let ratio = match parts.next() {
                None | Some("") => MARKER_RATIO,
                Some(ratio) => ratio.parse().map_err(|_| wrong())?,
            };
            charuco(width, height, ratio, parts.next())?
        }
        "aprilgrid" => {
            let spacing = parts.next().filter(|spacing| !spacing.is_empty());
            let spacing = spacing.map_or(Ok(SPACING), |part| part.parse().map_err(|_| wrong()))?;
            aprilgrid(width, height, spacing)?
        }
        _ => return Err(wrong()),
    };
    if parts.next().is_some() { Err(wrong()) } else { Ok(pattern) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::board::Board;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_name_is_a_board_or_a_message(
            kind in prop::sample::select(vec!["chessboard", "charuco", "aprilgrid", "", "\\PC{0,8}"]),
            parts in prop::collection::vec(prop_oneof![
                "[0-9]{0,24}[xX][0-9]{0,24}", "-?[0-9.e+]{0,12}", "[0-9]x[0-9]_[0-9]{0,6}", "\\PC{0,8}",
                Just("9x6".to_owned()), Just("nan".to_owned()), Just("0.5".to_owned()),
            ], 0..5),
        ) {
            let text = [&[kind.to_owned()][..], &parts].concat().join(":");
            match pattern(&text) {
                // A parsed board is written in a form that parses to the same board.
                Ok(board) => {
                    let again = board.to_string();
                    prop_assert_eq!(pattern(&again).unwrap().to_string(), again);
                }
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }
    }

    #[test]
    fn boards_are_read_and_written() {
        for text in [
            "chessboard:9x6",
            "charuco:11x8:0.75:4x4_50",
            "charuco:5x7:0.6:6x6_250",
            "aprilgrid:6x6:0.3",
        ] {
            assert_eq!(pattern(text).unwrap().to_string(), text);
        }
        let short = pattern("charuco:11x8").unwrap();
        assert_eq!(short.to_string(), "charuco:11x8:0.75:4x4_50");
        // 15 * 11 squares hold 82 markers, more than the smallest dictionary.
        let large = pattern("charuco:15x11").unwrap();
        assert_eq!(large.to_string(), "charuco:15x11:0.75:4x4_100");
        let tag = pattern("charuco:8x5:0.7:apriltag_36h11").unwrap();
        assert!(tag.to_string().ends_with("apriltag_36h11"), "{tag}");
    }

    #[test]
    fn wrong_boards_say_what_is_right() {
        for (text, words) in [
            ("", "chessboard:9x6"),
            ("chess:9x6", "chessboard:9x6"),
            ("chessboard:9", "chessboard:9x6"),
            ("chessboard:9x6:2", "chessboard:9x6"),
            ("chessboard:2x6", "inner corners"),
            ("chessboard:9x600", "inner corners"),
            ("charuco:2x5", "squares"),
            ("charuco:11x8:1.0", "white between"),
            ("charuco:11x8:nan", "white between"),
            ("charuco:11x8:much", "charuco:11x8"),
            ("charuco:11x8:0.7:9x9", "4x4_50"),
            ("charuco:20x20:0.7:4x4_50", "larger dictionary"),
            ("aprilgrid:6x1", "2 tags or more"),
            ("aprilgrid:25x24", "587 in all"),
            ("aprilgrid:6x6:nan", "0.1 to 1 times"),
            ("aprilgrid:6x6:0.3:4x4_50", "aprilgrid:6x6"),
        ] {
            let error = pattern(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
        assert!(Board::new(pattern("chessboard:9x6").unwrap(), 25.0).is_err());
        for side in [f64::NAN, -0.025, 0.0, 1e-9] {
            assert!(Board::new(pattern("chessboard:9x6").unwrap(), side).is_err(), "{side}");
        }
    }
}
