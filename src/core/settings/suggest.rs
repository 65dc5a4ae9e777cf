//! Suggestions for mistyped words.

pub(super) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (strsim::osa_distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Adds to the text on correct values the name in backticks that `word` may have meant.
pub(super) fn with_nearest(expected: &str, word: &str) -> String {
    match nearest(word, expected.split('`').skip(1).step_by(2)) {
        Some(near) => format!("{expected}; did you mean `{near}`?"),
        None => expected.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_near_is_suggested() {
        let keys = ["disparities", "min_disparity", "p1", "p2"];
        assert_eq!(nearest("disparites", keys), Some("disparities"));
        assert_eq!(nearest("mindisparity", keys), Some("min_disparity"));
        assert_eq!(nearest("pl", keys), Some("p1"));
        // Neighbours in the wrong order are one mistake.
        assert_eq!(nearest("1p", keys), Some("p1"));
        assert_eq!(nearest("resolution", keys), None);
    }
}
