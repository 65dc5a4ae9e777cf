//! Reads `foxglove.CompressedVideo` in Protocol Buffers (protobuf.dev, "Encoding"): fields with numbers, in any
//! order, of which the last one of a number counts.

use anyhow::{Context, Result, bail};

/// A frame of a video.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompressedVideo<'a> {
    /// Stamp in nanoseconds; 0 if it is not set.
    pub stamp: u64,
    /// Bytes of the frame.
    pub data: &'a [u8],
    /// Name of the codec.
    pub format: &'a str,
}

/// Value of a field.
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// A number of fixed length.
    Fixed,
}

impl<'a> CompressedVideo<'a> {
    /// Reads a message.
    pub fn read(mut message: &'a [u8]) -> Result<Self> {
        let mut video = Self::default();
        while !message.is_empty() {
            match field(&mut message)? {
                (1, Value::Bytes(time)) => video.stamp = timestamp(time)?,
                (3, Value::Bytes(data)) => video.data = data,
                (4, Value::Bytes(format)) => {
                    video.format =
                        std::str::from_utf8(format).context("the format is not UTF-8")?;
                }
                _ => {}
            }
        }
        Ok(video)
    }
}

/// Reads a `google.protobuf.Timestamp`.
fn timestamp(mut message: &[u8]) -> Result<u64> {
    let (mut seconds, mut nanoseconds) = (0_u64, 0);
    while !message.is_empty() {
        match field(&mut message)? {
            (1, Value::Number(number)) => seconds = number,
            (2, Value::Number(number)) => nanoseconds = number,
            _ => {}
        }
    }
    let stamp = seconds.checked_mul(1_000_000_000).and_then(|ns| ns.checked_add(nanoseconds));
    stamp.with_context(|| format!("the stamp {seconds} s is out of range"))
}

/// Takes a field with its number from the front of a message.
fn field<'a>(message: &mut &'a [u8]) -> Result<(u64, Value<'a>)> {
    let key = number(message)?;
    let value = match key & 7 {
        0 => Value::Number(number(message)?),
        2 => {
            let length = number(message)?;
            Value::Bytes(take(message, length)?)
        }
        1 => take(message, 8).map(|_| Value::Fixed)?,
        5 => take(message, 4).map(|_| Value::Fixed)?,
        other => bail!("the message has a field of the unknown kind {other}"),
    };
    Ok((key >> 3, value))
}

/// Takes a number of at most ten bytes with seven bits each.
fn number(message: &mut &[u8]) -> Result<u64> {
    let mut value = 0;
    for place in 0..10 {
        let byte = take(message, 1)?[0];
        value |= u64::from(byte & 0x7f) << (7 * place);
        if byte < 0x80 {
            return Ok(value);
        }
    }
    bail!("the message has a number of more than ten bytes")
}

fn take<'a>(message: &mut &'a [u8], length: u64) -> Result<&'a [u8]> {
    let taken = usize::try_from(length).ok().and_then(|length| message.split_at_checked(length));
    let (taken, rest) = taken.with_context(|| {
        format!("the message names {length} bytes more, but has {}", message.len())
    })?;
    *message = rest;
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fields_are_found_by_number() {
        // 300 s and 5 ns; an unknown number, the frame's name, the bytes, the format.
        let message = [
            &[0x0a, 5, 0x08, 0xac, 0x02, 0x10, 5][..],
            &[0x49, 1, 2, 3, 4, 5, 6, 7, 8, 0x4d, 1, 2, 3, 4, 0x50, 1],
            &[0x12, 1, b'a'],
            &[0x1a, 2, 8, 9],
            &[0x22, 4, b'h', b'2', b'6', b'4'],
        ]
        .concat();
        let video = CompressedVideo { stamp: 300_000_000_005, data: &[8, 9], format: "h264" };
        assert_eq!(CompressedVideo::read(&message).unwrap(), video);
        assert!(CompressedVideo::read(&message[..message.len() - 1]).is_err());
        assert_eq!(CompressedVideo::read(&[]).unwrap(), CompressedVideo::default());
        assert!(CompressedVideo::read(&[0x0b]).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(message in prop::collection::vec(any::<u8>(), 0..100)) {
            if let Ok(video) = CompressedVideo::read(&message) {
                prop_assert!(video.data.len() <= message.len());
            }
        }
    }
}
