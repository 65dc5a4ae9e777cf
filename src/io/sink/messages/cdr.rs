//! Encoding of ROS 2 messages: CDR, little-endian (OMG DDS-XTypes, section 7.4, encoding version 1).

/// Encapsulation header: plain CDR, little-endian, no options.
const HEADER: [u8; 4] = [0, 1, 0, 0];

/// A message being written, field by field in the order of its definition.
#[derive(Debug)]
pub struct Cdr(Vec<u8>);

impl Cdr {
    /// Begins a message; `room` is its expected size in bytes.
    pub fn with_room(room: usize) -> Self {
        let mut bytes = Vec::with_capacity(HEADER.len() + room);
        bytes.extend(HEADER);
        Self(bytes)
    }

    /// Writes a number at a multiple of its size, counted from the end of the header.
    fn number<const SIZE: usize>(&mut self, bytes: [u8; SIZE]) -> &mut Self {
        let length = (self.0.len() - HEADER.len()).next_multiple_of(SIZE);
        self.0.resize(HEADER.len() + length, 0);
        self.0.extend(bytes);
        self
    }

    /// Writes a `uint8`, `byte` or `bool`.
    pub fn u8(&mut self, value: u8) -> &mut Self {
        self.number([value])
    }

    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.number(value.to_le_bytes())
    }

    pub fn i32(&mut self, value: i32) -> &mut Self {
        self.number(value.to_le_bytes())
    }

    pub fn f32(&mut self, value: f32) -> &mut Self {
        self.number(value.to_le_bytes())
    }

    /// Writes `float64` numbers: an array of fixed length.
    pub fn f64s(&mut self, values: &[f64]) -> &mut Self {
        for value in values {
            self.number(value.to_le_bytes());
        }
        self
    }

    /// Writes the length of a sequence; its elements follow.
    pub fn length(&mut self, length: usize) -> &mut Self {
        self.u32(length as u32)
    }

    pub fn text(&mut self, text: &str) -> &mut Self {
        self.length(text.len() + 1);
        self.0.extend(text.as_bytes());
        self.u8(0)
    }

    /// Writes a sequence of `uint8`, which `fill` appends.
    pub fn bytes(&mut self, fill: impl FnOnce(&mut Vec<u8>)) -> &mut Self {
        self.length(0);
        let start = self.0.len();
        fill(&mut self.0);
        let length = (self.0.len() - start) as u32;
        self.0[start - 4..start].copy_from_slice(&length.to_le_bytes());
        self
    }

    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_aligned_from_the_end_of_the_header() {
        let mut cdr = Cdr::with_room(0);
        cdr.u8(7).u32(1).text("ab").f64s(&[1.0]).bytes(|out| out.extend([5, 6])).i32(-1);
        let expected: [&[u8]; 9] = [
            &[0, 1, 0, 0],
            &[7, 0, 0, 0, 1, 0, 0, 0],
            &[3, 0, 0, 0],
            b"ab\0\0",
            &1.0_f64.to_le_bytes(),
            &[2, 0, 0, 0],
            &[5, 6, 0, 0],
            &[255; 4],
            &[],
        ];
        assert_eq!(cdr.finish(), expected.concat());
    }
}
