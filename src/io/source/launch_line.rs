//! Texts of GStreamer pipelines, as people copy them from a shell.

/// Returns a pipeline without the command before it (`gst-launch-1.0 -v`), without the quotation marks that a shell
/// needs around caps, and in one line.
pub(super) fn pipeline(text: &str) -> String {
    let text = text.replace("\\\n", " ");
    let text = without_command(&text).unwrap_or(&text).trim();
    let unquoted = |part: &str| {
        let part = part.trim();
        let inner = ['"', '\''].iter().find_map(|mark| {
            let inner = part.strip_prefix(*mark)?.strip_suffix(*mark)?;
            (!inner.contains(*mark)).then_some(inner)
        });
        inner.map(str::to_owned)
    };
    let parts = links(text);
    if parts.iter().all(|part| unquoted(part).is_none()) {
        return text.to_owned();
    }
    let parts = parts.iter().map(|part| unquoted(part).unwrap_or_else(|| part.trim().to_owned()));
    parts.collect::<Vec<_>>().join(" ! ")
}

/// Returns what follows `gst-launch-1.0` and its options.
pub(super) fn without_command(text: &str) -> Option<&str> {
    let (command, mut rest) = text.trim().split_once(char::is_whitespace)?;
    if !command.rsplit('/').next()?.starts_with("gst-launch") {
        return None;
    }
    while let Some((_, after)) =
        rest.trim_start().split_once(char::is_whitespace).filter(|(word, _)| word.starts_with('-'))
    {
        rest = after;
    }
    Some(rest.trim_start())
}

/// Returns the sink in which a pipeline ends, if all of its branches end in one.
pub(super) fn sink_at_end(text: &str) -> Option<String> {
    // An element that is named for other branches is no end.
    let is_named = |word: &str| {
        let begins = |other: &str| {
            let name = word.strip_prefix("name=")?;
            other.strip_prefix(name).map(|rest| rest.starts_with('.'))
        };
        text.split_whitespace().any(|other| begins(other) == Some(true))
    };
    let (mut ends, mut last) = (Vec::new(), None);
    for part in links(text) {
        let mut goes_on = true;
        for (number, word) in words(part).into_iter().enumerate() {
            let is_property = word.contains('=') || goes_on;
            // A word that is no property begins a new branch.
            if number > 0 && !is_property && word.starts_with(|c: char| c.is_ascii_alphabetic()) {
                ends.extend(last.replace(word));
            } else if number == 0 {
                last = Some(word);
            } else if is_named(word) {
                last = None;
            }
            goes_on = word.ends_with('=') || word.ends_with(',');
        }
    }
    ends.extend(last);
    let is_sink = |name: &&str| name.ends_with("sink") && !name.contains('.');
    ends.iter().all(is_sink).then(|| ends.last().map(|name| (*name).to_owned()))?
}

/// Splits a pipeline at its links.
fn links(text: &str) -> Vec<&str> {
    split(text, |c| c == '!')
}

fn words(text: &str) -> Vec<&str> {
    split(text, char::is_whitespace).into_iter().filter(|word| !word.is_empty()).collect()
}

/// Splits a text where a character `ends` a part, except inside of quotation marks.
fn split(text: &str, ends: impl Fn(char) -> bool) -> Vec<&str> {
    let (mut parts, mut start, mut quote, mut before) = (Vec::new(), 0, None, ' ');
    for (at, c) in text.char_indices() {
        match quote {
            Some(mark) if c == mark && before != '\\' => quote = None,
            Some(_) => {}
            // Within a word, it is an apostrophe.
            None if matches!(c, '"' | '\'') && " =!)\t\n".contains(before) => quote = Some(c),
            None if ends(c) && before != '\\' => {
                parts.push(&text[start..at]);
                start = at + c.len_utf8();
            }
            None => {}
        }
        before = c;
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_and_the_marks_of_the_shell_are_dropped() {
        for (text, expected) in [
            ("gst-launch-1.0 videotestsrc ! queue", "videotestsrc ! queue"),
            ("/usr/bin/gst-launch-1.0 -v -e videotestsrc", "videotestsrc"),
            ("gst-launch-1.0 -v \\\n  a b=c ! \\\n d", "a b=c !   d"),
            ("a ! \"video/x-raw,width=640\" ! b", "a ! video/x-raw,width=640 ! b"),
            (
                "a ! 'video/x-raw(memory:NVMM), width=640'",
                "a ! video/x-raw(memory:NVMM), width=640",
            ),
            ("a b=\"c ! d\" ! e", "a b=\"c ! d\" ! e"),
            (
                "udpsrc caps=\"application/x-rtp,media=video\" ! e",
                "udpsrc caps=\"application/x-rtp,media=video\" ! e",
            ),
            ("ndisrc name=Bob's ! e", "ndisrc name=Bob's ! e"),
        ] {
            assert_eq!(pipeline(text), expected);
        }
    }

    #[test]
    fn a_sink_at_each_end_is_found() {
        for (text, sink) in [
            ("filesrc location=a ! qtdemux ! avdec_h264 ! appsink", Some("appsink")),
            ("a ! autovideosink sync=false", Some("autovideosink")),
            ("a ! decodebin name=d d. ! queue ! fakesink d.audio_0 ! fakesink", Some("fakesink")),
            ("a ! tee name=t ! queue ! filesink location=b t. ! decodebin", None),
            ("a ! decodebin name=d d. ! queue d.audio_0 ! fakesink", None),
            ("a ! video/x-raw, width=640, height = 480 ! queue", None),
            ("a location=\"b ! fakesink\"", None),
            ("videotestsrc", None),
            ("", None),
        ] {
            assert_eq!(sink_at_end(text).as_deref(), sink, "{text}");
        }
    }
}
