//! Text from outside (names of files, words of libraries) on its way to people.

use std::borrow::Cow;

/// Whether a character could pass for the end of a line, or change how the rest of one is shown: all
/// control characters, among them the terminal's escape, the line separators of Unicode, and the
/// characters that turn the direction of writing.
fn disguises(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text on one line, whatever is in it: what could begin another line or command a terminal is
/// written as an escape (`\n`, `\u{1b}`).
pub fn on_one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(disguises) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if disguises(c) {
            plain.extend(c.escape_default());
        } else {
            plain.push(c);
        }
    }
    Cow::Owned(plain)
}

/// The same, but lists stay lists: a line that is indented by two spaces is shown as a point of one,
/// so that it cannot be taken for a message of its own.
pub fn as_a_list(text: &str) -> String {
    let points: Vec<Cow<'_, str>> = text.split("\n  ").map(on_one_line).collect();
    points.join("\n  - ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_begins_another_line_or_commands_a_terminal() {
        assert!(matches!(on_one_line("left.mkv, größer"), Cow::Borrowed("left.mkv, größer")));
        assert_eq!(on_one_line("a\n  1.0s ERROR b\r\t"), r"a\n  1.0s ERROR b\r\t");
        assert_eq!(on_one_line("\u{1b}[2J\u{7}\u{9b}\u{7f}"), r"\u{1b}[2J\u{7}\u{9b}\u{7f}");
        assert_eq!(on_one_line("a\u{2028}b\u{202e}c\u{2066}"), r"a\u{2028}b\u{202e}c\u{2066}");
    }

    #[test]
    fn lists_stay_lists_and_nothing_else_does() {
        let list = "2 mistakes:\n  a.toml:1: wrong\n  a.toml:2: wrong";
        assert_eq!(as_a_list(list), "2 mistakes:\n  - a.toml:1: wrong\n  - a.toml:2: wrong");
        assert_eq!(as_a_list("a\nerror: b\n c\u{1b}"), r"a\nerror: b\n c\u{1b}");
        assert_eq!(as_a_list("a\n   0.1s ERROR b"), "a\n  -  0.1s ERROR b");
    }
}
