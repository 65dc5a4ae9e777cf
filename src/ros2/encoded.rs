//! An encoded message.

use serde::ser::{Serialize, SerializeTuple, Serializer};

/// Bytes of the header before a message, which the crate writes itself.
const HEADER: usize = 4;

/// A message with its header. The crate serialises it as its bytes.
pub(super) struct Encoded(pub(super) Vec<u8>);

impl Serialize for Encoded {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // A tuple has no length before it. Eight bytes at once are as many calls fewer, and aligned.
        let (words, rest) = self.0[HEADER..].as_chunks();
        let mut bytes = serializer.serialize_tuple(words.len() + rest.len())?;
        words.iter().try_for_each(|word| bytes.serialize_element(&u64::from_le_bytes(*word)))?;
        rest.iter().try_for_each(|byte| bytes.serialize_element(byte))?;
        bytes.end()
    }
}
