//! The entropy-coded data of a sequential scan (ITU-T T.81, F.2.2), read code by code.

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// Everything is there but the marker at the end.
    #[error("the JPEG picture has no end: it was cut off")]
    NoEnd,
    /// It ends within the headers, or has no image data at all.
    #[error("the JPEG picture is cut off before its data begins")]
    NoData,
    /// It ends before all blocks are there.
    #[error("the JPEG picture is cut off or damaged: {share} % of its data can be read")]
    Short {
        /// Part of the image that is there, in per cent.
        share: u8,
    },
    /// The codes make no sense from some point on.
    #[error("the JPEG picture is damaged after {share} % of its data")]
    Senseless {
        /// Part of the image before that point, in per cent.
        share: u8,
    },
    /// There is much more data than the image needs.
    #[error("the JPEG picture is damaged: its data does not fit its size")]
    Surplus,
}

/// Largest number of bytes between the last block and the next marker: some cameras fill up.
const FILLING: usize = 64;

pub(super) struct Table {
    /// Length and value of the code at the start of a byte; length 0 means a longer code.
    short: [(u8, u8); 256],
    /// For each code length: the upper bound of its codes, left-aligned, and the offset to their values.
    limits: [(u32, i32); 17],
    values: Vec<u8>,
}

impl Table {
    /// Creates the table with `counts` codes of each length from 1 on, for `values` in this order;
    /// `None` if there are more codes than bits allow.
    pub(super) fn new(counts: &[u8; 16], values: &[u8]) -> Option<Self> {
        let mut table =
            Self { short: [(0, 0); 256], limits: [(0, 0); 17], values: values.to_vec() };
        let (mut code, mut index) = (0u32, 0usize);
        for (length, &count) in (1..=16u8).zip(counts) {
            code <<= 1;
            table.limits[usize::from(length)].1 = index as i32 - code as i32;
            for _ in 0..count {
                if code >> length != 0 {
                    return None;
                }
                if length <= 8 {
                    let first = (code << (8 - length)) as usize;
                    table.short[first..first + (1 << (8 - length))].fill((length, values[index]));
                }
                (code, index) = (code + 1, index + 1);
            }
            table.limits[usize::from(length)].0 = code << (16 - length);
        }
        Some(table)
    }

    /// Returns the length and value of the code at the start of these 16 bits.
    fn find(&self, bits: u32) -> Option<(u8, u8)> {
        let (length, value) = self.short[(bits >> 8) as usize];
        if length > 0 {
            return Some((length, value));
        }
        let length = (9..=16u8).find(|&length| bits < self.limits[usize::from(length)].0)?;
        let index = (bits >> (16 - length)) as i32 + self.limits[usize::from(length)].1;
        self.values.get(usize::try_from(index).ok()?).map(|&value| (length, value))
    }
}

/// One component's part of each unit.
pub(super) struct Part<'a> {
    pub(super) blocks: usize,
    pub(super) dc: &'a Table,
    pub(super) ac: &'a Table,
}

/// Why a unit cannot be read.
enum Trouble {
    Short,
    Senseless,
}

/// Reads `units` units of `parts` from the beginning of `data`, with a marker after every `restart`
/// of them unless that is 0; how many bytes they take, up to the next marker.
pub(super) fn walk(
    data: &[u8],
    units: usize,
    restart: usize,
    parts: &[Part<'_>],
) -> Result<usize, Flaw> {
    let mut bits = Bits { data, at: 0, held: 0, count: 0 };
    for unit in 0..units {
        let share = (100 * unit / units) as u8;
        if restart > 0 && unit > 0 && unit.is_multiple_of(restart) {
            bits.skip_to_marker()?;
            match bits.marker() {
                Some(marker) if marker == 0xd0 + ((unit / restart - 1) % 8) as u8 => bits.at += 2,
                Some(0xd0..=0xd7) => return Err(Flaw::Senseless { share }),
                _ => return Err(Flaw::Short { share }),
            }
        }
        for part in parts {
            for _ in 0..part.blocks {
                bits.block(part).map_err(|trouble| match trouble {
                    Trouble::Short => Flaw::Short { share },
                    Trouble::Senseless => Flaw::Senseless { share },
                })?;
            }
        }
    }
    bits.skip_to_marker()?;
    Ok(bits.at)
}

/// The bits of entropy-coded data, without the zeros that are stuffed behind each 0xff.
struct Bits<'a> {
    data: &'a [u8],
    at: usize,
    /// Bits that have been taken from the data, the next one uppermost.
    held: u64,
    count: u8,
}

impl Bits<'_> {
    fn fill(&mut self) {
        while self.count <= 56 {
            let Some(&byte) = self.data.get(self.at) else { return };
            if byte == 0xff {
                if self.data.get(self.at + 1) != Some(&0) {
                    return;
                }
                self.at += 1;
            }
            self.at += 1;
            self.held |= u64::from(byte) << (56 - self.count);
            self.count += 8;
        }
    }

    fn skip(&mut self, bits: u8) -> Result<(), Trouble> {
        if self.count < bits {
            self.fill();
        }
        self.count = self.count.checked_sub(bits).ok_or(Trouble::Short)?;
        self.held <<= bits;
        Ok(())
    }

    fn code(&mut self, table: &Table) -> Result<u8, Trouble> {
        if self.count < 16 {
            self.fill();
        }
        let whole = self.count >= 16;
        match table.find((self.held >> 48) as u32) {
            Some((length, value)) => self.skip(length).map(|()| value),
            None if whole => Err(Trouble::Senseless),
            None => Err(Trouble::Short),
        }
    }

    fn block(&mut self, part: &Part<'_>) -> Result<(), Trouble> {
        let size = self.code(part.dc)?;
        if size > 15 {
            return Err(Trouble::Senseless);
        }
        self.skip(size)?;
        let mut index = 1;
        while index < 64 {
            let code = self.code(part.ac)?;
            let (run, size) = (code >> 4, code & 15);
            match (run, size) {
                (15, 0) => index += 16,
                (_, 0) => return Ok(()),
                _ => {
                    index += run + 1;
                    self.skip(size)?;
                }
            }
        }
        if index == 64 { Ok(()) } else { Err(Trouble::Senseless) }
    }

    /// Moves to the next marker, or to the end of the data.
    fn skip_to_marker(&mut self) -> Result<(), Flaw> {
        let mut surplus = usize::from(self.count / 8);
        (self.held, self.count) = (0, 0);
        while self.at < self.data.len() && self.marker().is_none() {
            surplus += usize::from(!matches!(self.data[self.at], 0 | 0xff));
            self.at += 1;
        }
        if surplus > FILLING { Err(Flaw::Surplus) } else { Ok(()) }
    }

    fn marker(&self) -> Option<u8> {
        match self.data.get(self.at..)? {
            [0xff, marker, ..] if !matches!(marker, 0 | 0xff) => Some(*marker),
            _ => None,
        }
    }
}
