//! Records of an MCAP file, and what the library makes of them.

use std::ops::Range;

use mcap::McapError;

use super::super::interface::{check_length, longest};
use stereod_core::thread;

/// Bytes of a record before its content: opcode and length.
pub(super) const RECORD: u64 = 1 + 8;

/// Bytes of a message's record before its data: channel, sequence and two times.
pub(super) const MESSAGE_HEADER: usize = 2 + 4 + 8 + 8;

/// Returns the opcode and the place of the data of the record at `at`, which is moved behind it.
pub(super) fn record(records: &[u8], at: &mut usize) -> Option<(u8, Range<usize>)> {
    let (head, rest) = records.get(*at..)?.split_first_chunk::<{ RECORD as usize }>()?;
    let [opcode, length @ ..] = *head;
    let length = usize::try_from(u64::from_le_bytes(length)).ok()?;
    let start = *at + RECORD as usize;
    (length <= rest.len()).then_some(())?;
    *at = start + length;
    Some((opcode, start..start + length))
}

pub(super) fn limit() -> usize {
    usize::try_from(longest()).unwrap_or(usize::MAX)
}

/// Returns the next result of the library's reader. Version 0.26 subtracts the lengths in a damaged record
/// without checking them; a panic counts as the end of the chunk.
pub(super) fn guarded<E>(
    next: impl FnOnce() -> Option<Result<E, McapError>>,
) -> Option<Result<E, McapError>> {
    thread::guarded("the reader of MCAP files", next).unwrap_or(Some(Err(McapError::UnexpectedEoc)))
}

/// Explains an error of the library.
pub(super) fn explain(error: McapError) -> anyhow::Error {
    match error {
        McapError::ChunkTooLarge(bytes) | McapError::RecordTooLarge { len: bytes, .. } => {
            match check_length("a chunk of the file", bytes) {
                Err(too_much) => too_much.into(),
                Ok(()) => anyhow::anyhow!(
                    "a chunk of the file takes more than a quarter of the memory budget decompressed; a larger [engine] \
                     memory_mib reads it"
                ),
            }
        }
        McapError::UnsupportedCompression(name) if name == "lz4" && !cfg!(feature = "bags") => {
            anyhow::anyhow!("LZ4 is read only by a program with the feature `bags`")
        }
        other => other.into(),
    }
}
