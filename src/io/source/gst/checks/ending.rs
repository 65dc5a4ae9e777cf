//! Checks how streams ended.

use anyhow::bail;

use crate::source::gst::live::reconnect::ReconnectingStream;
use crate::source::gst::stream::CutShort;

/// Fails if any of `streams` ended too early, and warns if one may be truncated.
pub(in crate::source::gst) fn check_ending(streams: &[ReconnectingStream]) -> anyhow::Result<()> {
    let mut failures: Vec<String> =
        streams.iter().filter_map(ReconnectingStream::failure).collect();
    failures.dedup();
    if !failures.is_empty() {
        bail!(failures.join("; "));
    }
    for stream in streams {
        let damage = stream.damage();
        if !damage.is_none() {
            tracing::warn!("{}: {damage}", stream.name());
        }
    }
    for stream in streams {
        let Some(CutShort { count, expected, certain, bytes }) = stream.cut_short() else {
            continue;
        };
        let name = stream.name();
        if let (Some((length, said)), false) = (bytes, certain) {
            tracing::warn!(
                "{name}: the file is truncated, {length} of {said} bytes are there, but behind its last \
                 picture: all {count} were read"
            );
            continue;
        }
        if let Some((length, said)) = bytes {
            let read = match expected {
                Some(expected) => format!("only {count} of about {expected}"),
                None => count.to_string(),
            };
            bail!(
                "{name}: {read} pictures could be read; the file is truncated: {length} of {said} \
                 bytes are there"
            );
        }
        let expected = expected.unwrap_or(count);
        if certain {
            bail!(
                "{name}: only {count} of about {expected} pictures could be read; the file is truncated or \
                 damaged"
            );
        }
        tracing::warn!(
            "{name}: only {count} of about {expected} pictures came; that is well where its frame rate \
             varies or its sound is longer, else it is damaged"
        );
    }
    Ok(())
}
