//! Keeps passwords, tokens and other secrets out of messages, logs, statistics and metrics: text that has the
//! form of a secret, and every secret that [`remember`] has seen, because libraries quote their arguments in
//! errors, sometimes only in part.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{PoisonError, RwLock};

/// Replacement of a secret.
pub const HIDDEN: &str = "***";

/// Shortest secret that is hidden without its name. Shorter ones would occur in ordinary words.
const SHORTEST: usize = 4;

/// Secrets of this process's sources and outputs.
static KNOWN: RwLock<BTreeSet<String>> = RwLock::new(BTreeSet::new());

/// Remembers the secrets of a URI or pipeline fragment, so that [`redact`] finds them in any text.
pub fn remember(text: &str) {
    let secrets: Vec<String> = secrets(text)
        .into_iter()
        .flat_map(|Secret { range, alone }| {
            let secret = &text[range];
            // Credentials are hidden as a whole, and the password also by itself.
            let password = secret.split_once(':').map(|(_, password)| password);
            let parts = if alone { [Some(secret), None] } else { [Some(secret), password] };
            parts.into_iter().flatten().flat_map(|part| [part.to_owned(), percent_decode(part)])
        })
        .filter(|secret| secret.chars().count() >= SHORTEST)
        .collect();
    if !secrets.is_empty() {
        KNOWN.write().unwrap_or_else(PoisonError::into_inner).extend(secrets);
    }
}

/// Replaces the secrets in a text by `***`.
pub fn redact(text: &str) -> String {
    let mut ranges: Vec<Range<usize>> = secrets(text).into_iter().map(|s| s.range).collect();
    for secret in KNOWN.read().unwrap_or_else(PoisonError::into_inner).iter() {
        ranges.extend(text.match_indices(secret.as_str()).map(|(at, found)| at..at + found.len()));
    }
    ranges.sort_by_key(|range| (range.start, range.end));
    let (mut shown, mut end) = (String::with_capacity(text.len()), 0);
    for range in ranges {
        if range.end <= end {
            continue;
        }
        // Adjacent secrets are hidden as one.
        if range.start >= end && (range.start > end || end == 0) {
            shown.push_str(&text[end..range.start]);
            shown.push_str(HIDDEN);
        }
        end = range.end;
    }
    shown.push_str(&text[end..]);
    shown
}

pub fn holds_secret(text: &str) -> bool {
    redact(text) != text
}

struct Secret {
    range: Range<usize>,
    /// True for a bare secret value, not a pair of name and password.
    alone: bool,
}

/// Finds everything that looks like a secret.
fn secrets(text: &str) -> Vec<Secret> {
    let credentials = uris(text).filter_map(|uri| {
        let range = credentials(&text[uri.clone()])?;
        Some(Secret { range: uri.start + range.start..uri.start + range.end, alone: false })
    });
    let values = assignments(text)
        .filter(|(name, _)| is_secret(&text[name.clone()]))
        .filter(|(name, value)| !is_path(text, name, value))
        .map(|(_, range)| Secret { range, alone: true });
    let fragments =
        uris(text).filter_map(|uri| Some(Secret { range: fragment(text, uri)?, alone: true }));
    let bare = bare_credentials(text).map(|range| Secret { range, alone: false });
    let all = credentials.chain(values).chain(fragments).chain(bare);
    all.filter(|secret| !secret.range.is_empty()).collect()
}

/// Reports whether a character ends a word: space or a quotation mark.
fn ends_word(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>')
}

/// Returns a URI's fragment after its `#`, where services put tokens; a file's name may hold a `#`.
fn fragment(text: &str, uri: Range<usize>) -> Option<Range<usize>> {
    let is_file = text[uri.clone()].get(..5).is_some_and(|s| s.eq_ignore_ascii_case("file:"));
    let at = text[uri.clone()].find('#').filter(|_| !is_file)?;
    Some(uri.start + at + 1..uri.end)
}

/// Finds name and password before a host without a scheme: `name:password@host:port`.
fn bare_credentials(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut end = 0;
    std::iter::from_fn(move || {
        let start = end + text[end..].find(|c| !ends_word(c))?;
        end = text[start..].find(ends_word).map_or(text.len(), |length| start + length);
        Some(start..end)
    })
    .filter_map(move |word| {
        let (start, word) = (word.start, &text[word]);
        let at = word.rfind('@').filter(|_| !word.contains("://"))?;
        let colon = word[..at].find(':')?;
        // Skip an option or a setting before it: --metrics=name:password@host.
        let name = word[..colon].rfind('=').map_or(0, |equals| equals + 1);
        Some(start + name..start + at)
    })
}

/// Finds the URIs in a text, from the scheme to the next space or quotation mark.
fn uris(text: &str) -> impl Iterator<Item = Range<usize>> {
    text.match_indices("://").map(|(at, _)| {
        let scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let start = at - text[..at].chars().rev().take_while(|c| scheme(*c)).count();
        start..text[at..].find(ends_word).map_or(text.len(), |length| at + length)
    })
}

/// Returns the range of name and password in a URI, also if the password should have been percent-encoded:
/// everything up to the last `@` counts, unless it can only be part of a path or a query.
fn credentials(uri: &str) -> Option<Range<usize>> {
    let start = uri.find("://")? + 3;
    let rest = &uri[start..];
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let hierarchy = &rest[..rest.find(['?', '#']).unwrap_or(rest.len())];
    let port = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let in_query = authority.split_once(':').is_some_and(|(_, after)| !port(after));
    let end = hierarchy.rfind('@').or_else(|| rest.rfind('@').filter(|_| in_query))?;
    Some(start..start + end)
}

/// Finds names and values of properties and parameters, such as `name=value` or `name = "a value"`.
fn assignments(text: &str) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
    text.match_indices('=').filter_map(|(at, _)| {
        let before = text[..at].trim_end();
        let is_in_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:%[]".contains(byte);
        let length = before.bytes().rev().take_while(is_in_name).count();
        let mut start = text.len() - text[at + 1..].trim_ascii_start().len();
        // In structures a type precedes the value.
        if text[start..].starts_with('(') {
            start += text[start..].find(')').map_or(0, |length| length + 1);
        }
        let value = string_at(text, start, &["\\\"", "\"", "'"], |c| {
            c.is_whitespace() || matches!(c, '&' | ';' | '"' | '\'' | '`')
        });
        (length > 0).then_some((before.len() - length..before.len(), value))
    })
}

/// Reports whether an assignment is part of a path, as in `runs/session=3/left.png`: outside of a URI, behind a slash
/// or before one and a file's extension.
fn is_path(text: &str, name: &Range<usize>, value: &Range<usize>) -> bool {
    let is_file = || {
        // In a sentence, punctuation follows.
        let value = text[value.clone()].trim_end_matches([':', ',', '.', ')']);
        let (_, last) = value.rsplit_once('/')?;
        let (_, extension) = last.rsplit_once('.')?;
        // No password ends like that by chance.
        const EXTENSIONS: [&str; 20] = [
            "png", "jpg", "jpeg", "tif", "tiff", "exr", "pgm", "ppm", "pfm", "mkv", "mp4", "mov",
            "avi", "bag", "mcap", "yml", "yaml", "toml", "json", "txt",
        ];
        Some(EXTENSIONS.contains(&extension))
    };
    let in_uri = uris(text).any(|uri| uri.contains(&name.start));
    !in_uri && (text[..name.start].ends_with('/') || is_file() == Some(true))
}

/// Returns the range of the string that begins at `start`, without its quotation marks if it has a
/// pair of `marks`. An unquoted string extends to a character that `ends` it. A backslash makes the
/// next character ordinary.
pub fn string_at(
    text: &str,
    start: usize,
    marks: &[&str],
    ends: impl Fn(char) -> bool,
) -> Range<usize> {
    let rest = &text[start..];
    let quoted = marks.iter().find_map(|mark| {
        let inner = rest.strip_prefix(mark)?;
        let is_closing = |at: &usize| !inner[..*at].ends_with('\\');
        let length = inner.match_indices(mark).map(|(at, _)| at).find(is_closing)?;
        Some(start + mark.len()..start + mark.len() + length)
    });
    quoted.unwrap_or_else(|| {
        let mut is_escaped = false;
        let end = rest.find(|c: char| {
            let is_end = !is_escaped && ends(c);
            is_escaped = !is_escaped && c == '\\';
            is_end
        });
        start..start + end.unwrap_or(rest.len())
    })
}

fn is_secret(name: &str) -> bool {
    let name = name.rsplit(':').next().unwrap_or_default().to_ascii_lowercase();
    let words: Vec<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let secret = |word: &str| {
        const SECRET: &str = "pass password passwd passphrase passcode pwd pw psw jwt session sessionid \
                              secret token auth authorization credential credentials sig signature cookies";
        // Cameras call them "loginuse" and "loginpas", "usrpwd", "authbasic".
        let begins =
            word.starts_with("login") || word.starts_with("auth") && !word.starts_with("author");
        const ENDINGS: [&str; 6] = ["password", "passwd", "pas", "pwd", "token", "secret"];
        SECRET.split(' ').any(|secret| secret == word)
            || begins
            || ENDINGS.iter().any(|end| word.ends_with(end))
    };
    let last = words.last().copied().unwrap_or_default();
    words.iter().any(|word| secret(word))
        || last.ends_with("key")
        || matches!(*words, ["user" | "userid" | "username" | "login" | "usr"] | ["user", "id"])
        || matches!(*words, ["proxy", "id"])
}

fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let code = after
            .get(..2)
            .filter(|_| *first == b'%')
            .and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_of_uris_are_hidden_however_they_are_written() {
        for (text, shown) in [
            ("rtsp://me:s3cret@host:554/a", "rtsp://***@host:554/a"),
            ("rtsp://me:s3/cret@host/a", "rtsp://***@host/a"),
            ("rtsp://me:s3@/cret@host/a", "rtsp://***@host/a"),
            ("rtsp://me:s3?cret@host/a", "rtsp://***@host/a"),
            ("rtsp://token@host", "rtsp://***@host"),
            ("RTSPS://me:a%40b@[::1]:554/x", "RTSPS://***@[::1]:554/x"),
            ("cannot open \"http://me:x@h/p\": no", "cannot open \"http://***@h/p\": no"),
            ("a http://me:x@h and rtsp://u:y@i.", "a http://***@h and rtsp://***@i."),
            ("http://host:80/a?mail=a@b", "http://host:80/a?mail=a@b"),
            ("file:///tmp/a b", "file:///tmp/a b"),
            ("file:///tmp/a#b.mkv", "file:///tmp/a#b.mkv"),
            ("http://h/a#s3cret", "http://h/a#***"),
            ("no answer (\"http://h/a?size=3#s3cret\")", "no answer (\"http://h/a?size=3#***\")"),
            ("invalid value 'u:s3cret@h:9' for", "invalid value '***@h:9' for"),
            ("--metrics=u:s=3,cret@h:9", "--metrics=***@h:9"),
            ("left@home.mp4", "left@home.mp4"),
        ] {
            assert_eq!(redact(text), shown, "{text}");
        }
    }

    #[test]
    fn values_with_telling_names_are_hidden() {
        for (text, shown) in [
            ("http://h/a?password=x&size=3", "http://h/a?password=***&size=3"),
            ("http://h/a?size=3&access_token=x;y=1", "http://h/a?size=3&access_token=***;y=1"),
            ("http://h/a?apikey=1#t", "http://h/a?apikey=***"),
            ("http://h/a?loginuse=a&loginpas=x&n=1", "http://h/a?loginuse=***&loginpas=***&n=1"),
            ("http://h/a?usr=a&psw=x&authbasic=YQ", "http://h/a?usr=***&psw=***&authbasic=***"),
            ("http://h/a?author=me", "http://h/a?author=me"),
            (
                "rtspsrc location=rtsp://h/1 user-id=me user-pw=\"a b\" ! decodebin",
                "rtspsrc location=rtsp://h/1 user-id=*** user-pw=\"***\" ! decodebin",
            ),
            ("x user-pw = 'a \\' b' ! y", "x user-pw = '***' ! y"),
            ("x user-pw=a\\ b ! y", "x user-pw=*** ! y"),
            ("\"x user-pw=\\\"a b\\\" ! y\"", "\"x user-pw=\\\"***\\\" ! y\""),
            ("srtsink passphrase=abcdefghij pbkeylen=16", "srtsink passphrase=*** pbkeylen=16"),
            ("x264enc key-int-max=30 tune=zerolatency", "x264enc key-int-max=30 tune=zerolatency"),
            (
                "souphttpsrc extra-headers='h,Authorization=(string)\"Basic abc\"'",
                "souphttpsrc extra-headers='h,Authorization=(string)\"***\"'",
            ),
            ("souphttpsrc::password=x", "souphttpsrc::password=***"),
            ("x passphrase=a/b.c+ ! y", "x passphrase=*** ! y"),
            ("x passphrase=a/b.cd ! y", "x passphrase=*** ! y"),
            ("http://h/session=a/b.png", "http://h/session=***"),
            ("cannot read key=green/l.png: no", "cannot read key=green/l.png: no"),
            ("was \"in/session=3\"", "was \"in/session=3\""),
            ("/data/token=4/left/%06d.png", "/data/token=4/left/%06d.png"),
        ] {
            assert_eq!(redact(text), shown, "{text}");
        }
    }

    #[test]
    fn what_was_remembered_is_hidden_in_any_words() {
        remember("rtsp://somebody:unu%2Fsual@camera/1?token=pe_culiar");
        remember("rtspsrc location=rtsp://h user-pw=\"with space\" ! decodebin");
        for (text, shown) in [
            ("host unu%2Fsual refused", "host *** refused"),
            ("login as unu/sual failed", "login as *** failed"),
            ("(pe_culiar)(with space)", "(***)(***)"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(redact(text), shown, "{text}");
        }
        // Too short to be looked for by itself.
        remember("rtsp://me:pq@camera/1");
        assert_eq!(redact("a pq b"), "a pq b");
    }
}
