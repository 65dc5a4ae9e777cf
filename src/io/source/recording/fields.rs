//! Reads the fields of a message in the order of its definition: CDR of ROS 2 (OMG DDS-XTypes 1.3, section 7.4,
//! encoding version 1) and the encoding of ROS 1, which has no header, no alignment and no zero after a text.

use anyhow::{Context, Result, ensure};

use super::interface::Encoding;

const HEADER: usize = 4;

#[derive(Clone, Debug)]
pub struct Fields<'a> {
    data: &'a [u8],
    at: usize,
    is_cdr: bool,
    is_big_endian: bool,
}

impl<'a> Fields<'a> {
    /// Begins a message. Fails for an encoding that is not read.
    pub fn new(data: &'a [u8], encoding: &Encoding) -> Result<Self> {
        match encoding {
            Encoding::Ros1 => Ok(Self { data, at: 0, is_cdr: false, is_big_endian: false }),
            Encoding::Cdr => {
                let (header, data) =
                    data.split_at_checked(HEADER).context("the message has no CDR header")?;
                ensure!(
                    header[0] == 0 && header[1] <= 1,
                    "the message has the CDR encoding {:02x}{:02x}; only plain CDR (0000, 0001) is read",
                    header[0],
                    header[1]
                );
                Ok(Self { data, at: 0, is_cdr: true, is_big_endian: header[1] == 0 })
            }
            other => anyhow::bail!("messages encoded as \"{other}\" are not read"),
        }
    }

    /// Takes `length` bytes.
    fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let end = self.at.checked_add(length).filter(|&end| end <= self.data.len());
        let end = end.with_context(|| {
            format!("the message ends after {} bytes, but names {length} more", self.data.len())
        })?;
        let taken = &self.data[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn number<const SIZE: usize>(&mut self) -> Result<[u8; SIZE]> {
        if self.is_cdr {
            self.at = self.at.next_multiple_of(SIZE);
        }
        let mut bytes: [u8; SIZE] = self.take(SIZE)?.try_into()?;
        if self.is_big_endian {
            bytes.reverse();
        }
        Ok(bytes)
    }

    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.number::<1>()?[0])
    }

    /// Reads a `uint32`, or an `int32` that is not negative.
    pub fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.number()?))
    }

    /// Reads an array of `float64` of fixed length.
    pub fn f64s<const LENGTH: usize>(&mut self) -> Result<[f64; LENGTH]> {
        let mut values = [0.0; LENGTH];
        for value in &mut values {
            *value = f64::from_le_bytes(self.number()?);
        }
        Ok(values)
    }

    /// Reads a sequence of at most `longest` `float64`.
    pub fn f64_list(&mut self, longest: usize) -> Result<Vec<f64>> {
        let length = self.u32()? as usize;
        ensure!(length <= longest, "the message has a list of {length} numbers");
        (0..length).map(|_| Ok(f64::from_le_bytes(self.number()?))).collect()
    }

    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = self.u32()? as usize;
        self.take(length)
    }

    pub fn text(&mut self) -> Result<&'a str> {
        let bytes = self.bytes()?;
        let bytes = if self.is_cdr { bytes.strip_suffix(b"\0").unwrap_or(bytes) } else { bytes };
        std::str::from_utf8(bytes).context("the message has a text that is not UTF-8")
    }

    /// Reads a `std_msgs/Header`, and returns its stamp in nanoseconds.
    pub fn stamp(&mut self) -> Result<u64> {
        if !self.is_cdr {
            // The sequence number, which ROS 2 does not have.
            self.u32()?;
        }
        let stamp = self.time()?;
        self.text()?;
        Ok(stamp)
    }

    /// Reads a `time`, and returns it in nanoseconds.
    pub fn time(&mut self) -> Result<u64> {
        let (seconds, nanoseconds) = (self.u32()?, self.u32()?);
        Ok(u64::from(seconds) * 1_000_000_000 + u64::from(nanoseconds))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_two_encodings_of_one_message() {
        // Header with the stamp 5.000000007 s and the frame "ab", then a uint8 and a float64.
        let cdr: [&[u8]; 6] = [
            &[0, 1, 0, 0, 5, 0, 0, 0, 7, 0, 0, 0],
            &[3, 0, 0, 0],
            b"ab\0",
            &[9],
            &[0; 0],
            &1.5_f64.to_le_bytes(),
        ];
        let ros1: [&[u8]; 5] = [
            &[1, 0, 0, 0, 5, 0, 0, 0, 7, 0, 0, 0],
            &[2, 0, 0, 0],
            b"ab",
            &[9],
            &1.5_f64.to_le_bytes(),
        ];
        for (data, encoding) in [(cdr.concat(), Encoding::Cdr), (ros1.concat(), Encoding::Ros1)] {
            let mut fields = Fields::new(&data, &encoding).unwrap();
            assert_eq!(fields.stamp().unwrap(), 5_000_000_007);
            assert_eq!(fields.u8().unwrap(), 9);
            assert_eq!(fields.f64s::<1>().unwrap(), [1.5]);
            assert!(fields.u8().is_err());
        }
    }

    #[test]
    fn either_byte_order_of_cdr() {
        let mut fields = Fields::new(&[0, 0, 0, 0, 0, 0, 1, 2], &Encoding::Cdr).unwrap();
        assert_eq!(fields.u32().unwrap(), 258);
        for wrong in [&[0, 1][..], &[0, 7, 0, 0, 1], &[1, 0, 0, 0]] {
            assert!(Fields::new(wrong, &Encoding::Cdr).is_err());
        }
        let error = Fields::new(&[], &Encoding::Other("protobuf".into())).unwrap_err();
        assert!(error.to_string().contains("protobuf"));
    }

    #[test]
    fn a_length_beyond_the_message_is_refused() {
        let data = [0, 1, 0, 0, 255, 255, 255, 255, 1];
        let error = Fields::new(&data, &Encoding::Cdr).unwrap().bytes().unwrap_err().to_string();
        assert!(error.contains("ends after 5 bytes"), "{error}");
        assert!(Fields::new(&data, &Encoding::Cdr).unwrap().f64_list(99).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            data in prop::collection::vec(any::<u8>(), 0..80),
            is_cdr: bool,
            calls in prop::collection::vec(0..6, 0..20),
        ) {
            let encoding = if is_cdr { Encoding::Cdr } else { Encoding::Ros1 };
            let Ok(mut fields) = Fields::new(&data, &encoding) else { return Ok(()) };
            for call in calls {
                let _ = match call {
                    0 => fields.u8().map(drop),
                    1 => fields.u32().map(drop),
                    2 => fields.text().map(drop),
                    3 => fields.bytes().map(drop),
                    4 => fields.f64_list(9).map(drop),
                    _ => fields.stamp().map(drop),
                };
                prop_assert!(fields.at <= data.len() + 8);
            }
        }
    }
}
