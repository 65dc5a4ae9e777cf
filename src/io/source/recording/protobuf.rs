//! Reads messages in Protocol Buffers (protobuf.dev, "Encoding"): numbered fields in any order; the last one
//! of a number counts.

use anyhow::{Context, Result, bail};

const NUMBER_MAX: usize = 8;

pub struct Message<'a>([Value<'a>; NUMBER_MAX + 1]);

#[derive(Clone, Copy)]
enum Value<'a> {
    /// It is not in the message, which stands for 0 or nothing.
    Missing,
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Message<'a> {
    pub fn read(mut message: &'a [u8]) -> Result<Self> {
        let mut fields = [Value::Missing; NUMBER_MAX + 1];
        while !message.is_empty() {
            let (number, value) = field(&mut message)?;
            if let Some(field) = usize::try_from(number).ok().and_then(|n| fields.get_mut(n)) {
                *field = value;
            }
        }
        Ok(Self(fields))
    }

    pub fn number(&self, field: usize) -> u64 {
        if let Value::Number(number) = self.0[field] { number } else { 0 }
    }

    pub fn bytes(&self, field: usize) -> &'a [u8] {
        if let Value::Bytes(bytes) = self.0[field] { bytes } else { &[] }
    }

    pub fn text(&self, field: usize) -> Result<&'a str> {
        std::str::from_utf8(self.bytes(field)).context("a text is not UTF-8")
    }

    /// Returns a list of numbers with double precision.
    pub fn f64s(&self, field: usize) -> Result<Vec<f64>> {
        let (numbers, rest) = self.bytes(field).as_chunks::<8>();
        anyhow::ensure!(rest.is_empty(), "a list of numbers ends within a number");
        Ok(numbers.iter().map(|number| f64::from_le_bytes(*number)).collect())
    }

    /// Returns a `google.protobuf.Timestamp` in nanoseconds; 0 if it is not set.
    pub fn stamp(&self, field: usize) -> Result<u64> {
        let time = Self::read(self.bytes(field))?;
        let (seconds, nanoseconds) = (time.number(1), time.number(2));
        let stamp = seconds.checked_mul(1_000_000_000).and_then(|ns| ns.checked_add(nanoseconds));
        stamp.with_context(|| format!("the stamp {seconds} s is out of range"))
    }
}

fn field<'a>(message: &mut &'a [u8]) -> Result<(u64, Value<'a>)> {
    let key = number(message)?;
    let value = match key & 7 {
        0 => Value::Number(number(message)?),
        2 => {
            let length = number(message)?;
            Value::Bytes(take(message, length)?)
        }
        1 => Value::Number(u64::from_le_bytes(take(message, 8)?.try_into()?)),
        5 => Value::Number(u32::from_le_bytes(take(message, 4)?.try_into()?).into()),
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
        let video = Message::read(&message).unwrap();
        assert_eq!(video.stamp(1).unwrap(), 300_000_000_005);
        assert_eq!((video.bytes(3), video.text(4).unwrap()), (&[8, 9][..], "h264"));
        assert!(Message::read(&message[..message.len() - 1]).is_err());
        let empty = Message::read(&[]).unwrap();
        assert_eq!((empty.stamp(1).unwrap(), empty.number(5), empty.bytes(3)), (0, 0, &[][..]));
        assert!(Message::read(&[0x0b]).is_err());
        // 32 and 64 bits, and a list.
        let fixed = [&[0x15, 64, 1, 0, 0, 0x2a, 8][..], &1.5_f64.to_le_bytes()].concat();
        let fixed = Message::read(&fixed).unwrap();
        assert_eq!((fixed.number(2), fixed.f64s(5).unwrap()), (320, vec![1.5]));
        assert!(Message::read(&[0x2a, 1, 7]).unwrap().f64s(5).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(message in prop::collection::vec(any::<u8>(), 0..100)) {
            if let Ok(read) = Message::read(&message) {
                let _ = (read.stamp(1), read.text(2));
                prop_assert!(read.bytes(3).len() <= message.len());
            }
        }
    }
}
