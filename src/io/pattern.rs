//! File names with a number in them: `shot.%06d.png`, `shot.####.exr` or `shot.$F4.exr`.

use std::ffi::{OsStr, OsString};

/// A file name with one number in it, not necessarily UTF-8.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    before: OsString,
    after: OsString,
    /// Smallest number of digits, with leading zeros.
    digits: usize,
}

impl Pattern {
    /// Parses `before%0Nd`after, also `%d`, and, if the name `is_numbered` files', `before####after` with a digit for
    /// each `#` and `before$F4after` (also `$F`) as Houdini writes it; `None` without a number in the name.
    pub fn parse(name: &OsStr, is_numbered: bool) -> Option<Self> {
        let bytes = name.as_encoded_bytes();
        let other = || parse_hashes(bytes).or_else(|| parse_houdini(bytes));
        let parts = parse_printf(bytes).or_else(|| other().filter(|_| is_numbered));
        let (before, digits, after) = parts?;
        // SAFETY: parts of a name, which end or begin at a character of ASCII.
        let part = |part| unsafe { OsStr::from_encoded_bytes_unchecked(part) }.to_owned();
        let [before, after] = [before, after].map(part);
        Some(Self { before, after, digits })
    }

    /// Returns the number in `file` if [`Pattern::name`] gives that name.
    pub fn number(&self, file: &OsStr) -> Option<u64> {
        let (before, after) = (self.before.as_encoded_bytes(), self.after.as_encoded_bytes());
        let digits = file.as_encoded_bytes().strip_prefix(before)?.strip_suffix(after)?;
        let plain = digits.iter().all(u8::is_ascii_digit);
        let padded =
            digits.len() == self.digits || (digits.len() > self.digits && digits[0] != b'0');
        (plain && padded).then(|| std::str::from_utf8(digits).ok()?.parse().ok())?
    }

    /// Returns the name with this number, as printf writes it.
    pub fn name(&self, number: u64) -> OsString {
        let mut name = self.before.clone();
        name.push(format!("{number:0width$}", width = self.digits));
        name.push(&self.after);
        name
    }
}

/// Returns what is wrong with the number in a file name if it looks like printf's, but is none that is read or written.
pub fn flaw(name: &OsStr) -> Option<&'static str> {
    let mut formats = name.as_encoded_bytes().split(|&byte| byte == b'%').skip(1);
    let is_format = |rest: &[u8]| {
        let end = rest.iter().position(|byte| !b"0123456789-+'".contains(byte));
        end.is_some_and(|end| end > 0 && rest[end] == b'd')
    };
    let is_flawed = parse_printf(name.as_encoded_bytes()).is_none() && formats.any(is_format);
    is_flawed.then_some("a number has leading zeros and at most 20 digits, such as %06d, or is %d")
}

type Parts<'a> = (&'a [u8], usize, &'a [u8]);

fn parse_hashes(name: &[u8]) -> Option<Parts<'_>> {
    let at = name.iter().position(|&byte| byte == b'#')?;
    let digits = name[at..].iter().take_while(|&&byte| byte == b'#').count();
    Some((&name[..at], digits, &name[at + digits..]))
}

fn parse_houdini(name: &[u8]) -> Option<Parts<'_>> {
    let at = name.windows(2).position(|two| two == b"$F")?;
    let after = &name[at + 2..];
    let (digits, after) = match after {
        [digit @ b'1'..=b'9', after @ ..] => (usize::from(digit - b'0'), after),
        after => (1, after),
    };
    Some((&name[..at], digits, after))
}

fn parse_printf(name: &[u8]) -> Option<Parts<'_>> {
    let signs = name.iter().enumerate().filter(|(_, byte)| **byte == b'%');
    signs.into_iter().find_map(|(at, _)| {
        let rest = &name[at + 1..];
        let end = rest.iter().position(|byte| !byte.is_ascii_digit())?;
        let (width, after) = rest.split_at(end);
        let after = after.strip_prefix(b"d")?;
        // "%5d" pads with spaces, which image names do not.
        let digits = match width {
            b"" => 1,
            [b'0', ..] => std::str::from_utf8(width).ok()?.parse().ok().filter(|&n| n <= 20)?,
            _ => return None,
        };
        Some((&name[..at], digits, after))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(name: &str) -> Option<Pattern> {
        Pattern::parse(name.as_ref(), true)
    }

    #[test]
    fn numbers_are_read_as_printf_writes_them() {
        let name = parsed("l%03d.png").unwrap();
        assert_eq!(name.number("l007.png".as_ref()), Some(7));
        assert_eq!(name.number("l1234.png".as_ref()), Some(1234));
        for other in ["l07.png", "l0123.png", "l.png", "l-07.png", "r007.png", "l007.jpg"] {
            assert_eq!(name.number(other.as_ref()), None, "{other}");
        }
        assert_eq!(parsed("%d.png").unwrap().number("12.png".as_ref()), Some(12));
        assert_eq!(parsed("%d.png").unwrap().number("012.png".as_ref()), None);
        let name = parsed("shot.####.exr").unwrap();
        assert_eq!(name.number("shot.0097.exr".as_ref()), Some(97));
        assert_eq!(name.number("shot.12345.exr".as_ref()), Some(12_345));
        assert_eq!(name.number("shot.97.exr".as_ref()), None);
        let name = parsed("shot.$F4.exr").unwrap();
        assert_eq!(name.number("shot.1001.exr".as_ref()), Some(1001));
        assert_eq!(name.number("shot.101.exr".as_ref()), None);
    }

    #[test]
    fn numbers_that_are_neither_read_nor_written_are_told() {
        for name in ["%999999999d.png", "%0999999999d.png", "%5d.png", "l%-4d.png", "a%021d"] {
            assert!(flaw(name.as_ref()).is_some() && parsed(name).is_none(), "{name}");
        }
        for name in
            ["%06d.png", "%d", "%020d", "100%d", "100% d", "100%.png", "a%20b.mp4", "d%", "%"]
        {
            assert_eq!(flaw(name.as_ref()), None, "{name}");
        }
    }

    #[test]
    fn names_that_are_written_are_read_again() {
        for pattern in ["%06d.png", "l%d", "a%020dz.npy", "s.####.exr", "s.$F4.exr", "$F.ply"] {
            let name = parsed(pattern).unwrap();
            for number in [0, 9, 1001, 123_456, u64::MAX] {
                assert_eq!(name.number(&name.name(number)), Some(number), "{pattern}");
            }
        }
        assert_eq!(parsed("s.####_d.exr").unwrap().name(97), "s.0097_d.exr");
        assert_eq!(Pattern::parse("take####".as_ref(), false), None);
    }
}
