//! Text of messages: sanitised names and messages from outside, and rounded numbers.

use std::borrow::Cow;

/// Reports whether a character could end a line or change the display of the rest: control characters
/// including the terminal's escape, Unicode's line separators, and changes of writing direction.
fn disguises(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns the text on one line, with characters escaped that begin lines or control terminals.
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

/// Does the same but keeps lists: a line indented by two spaces is shown as a list item, so that it cannot
/// pass for a message of its own.
pub fn as_a_list(text: &str) -> String {
    let points: Vec<Cow<'_, str>> = text.split("\n  ").map(on_one_line).collect();
    points.join("\n  - ")
}

/// Rounds to a number of digits after the point. Zero has no sign, so that nothing is written as -0.00.
pub fn rounded(value: f64, digits: i32) -> f64 {
    (value * 10f64.powi(digits)).round() / 10f64.powi(digits) + 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_has_no_sign() {
        for (value, shown) in [(-0.004, "0.00"), (-0.0, "0.00"), (-0.006, "-0.01"), (1.239, "1.24")]
        {
            assert_eq!(format!("{:.2}", rounded(value, 2)), shown);
        }
        assert_eq!(format!("{:+.1} {}", rounded(-0.04, 1), rounded(-0.4, 0)), "+0.0 0");
    }

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
