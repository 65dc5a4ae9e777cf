//! File names as texts. Settings are texts, but names need not be UTF-8. Invalid bytes become
//! characters of the private use area, U+EF80 to U+EFFF, and bytes again in the name. So do the
//! bytes of these very characters, so that every name survives.

use std::ffi::OsStr;
use std::path::PathBuf;

const FIRST: u32 = 0xEF00;

pub fn text_of(name: &OsStr) -> String {
    let byte =
        |byte: u8| char::from_u32(FIRST + u32::from(byte)).unwrap_or(char::REPLACEMENT_CHARACTER);
    let mut text = String::new();
    for chunk in name.as_encoded_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            match byte_of(c) {
                Some(_) => text.extend(c.encode_utf8(&mut [0; 4]).bytes().map(byte)),
                None => text.push(c),
            }
        }
        text.extend(chunk.invalid().iter().copied().map(byte));
    }
    text
}

/// Returns the name of a text; `None` for an empty one.
pub fn path_of(text: &str) -> Option<PathBuf> {
    (!text.is_empty()).then(|| name_of(text))
}

fn name_of(text: &str) -> PathBuf {
    let mut name = Vec::with_capacity(text.len());
    for c in text.chars() {
        match byte_of(c) {
            Some(byte) => name.push(byte),
            None => name.extend(c.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    #[cfg(unix)]
    let name = <OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(&name);
    // Names are not of bytes there.
    #[cfg(not(unix))]
    let name = &*String::from_utf8_lossy(&name);
    name.into()
}

/// Returns the byte of a character; those of ASCII stay as they are.
fn byte_of(c: char) -> Option<u8> {
    u8::try_from(u32::from(c).checked_sub(FIRST)?).ok().filter(|byte| !byte.is_ascii())
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn every_name_comes_back() {
        for name in [&b"a.mkv"[..], b"\xff", b"a\xffb\xc3\xa4\xc3", "\u{ef80}\u{ef00}x".as_bytes()]
        {
            let text = text_of(OsStr::from_bytes(name));
            assert_eq!(path_of(&text).unwrap().as_os_str().as_bytes(), name);
        }
        assert_eq!(text_of(OsStr::new("ä.mkv")), "ä.mkv");
        assert_eq!(path_of(""), None);
    }
}
