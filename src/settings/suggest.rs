//! Suggestions for mistyped words.

/// Returns the candidate nearest to `word`, if it is near enough.
pub(super) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
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

/// Returns the fewest insertions, deletions, replacements and swaps of neighbours that turn one
/// word into the other (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("p1", "p1", 0),
            ("paht", "path", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
            assert_eq!(distance(b, a), expected, "{b} {a}");
        }
    }

    #[test]
    fn only_what_is_near_is_suggested() {
        let keys = ["disparities", "min_disparity", "p1", "p2"];
        assert_eq!(nearest("disparites", keys), Some("disparities"));
        assert_eq!(nearest("mindisparity", keys), Some("min_disparity"));
        assert_eq!(nearest("pl", keys), Some("p1"));
        assert_eq!(nearest("resolution", keys), None);
    }
}
