//! rosbag2's compression by zstd: of a whole file, or of each message.

use std::io::{Read, Seek, Write};
use std::path::Path;

use anyhow::{Context, Result};

use super::interface::{Encoding, Lost, Message, Reader, Topic, check_length, longest};
use super::mcap;
use stereod_core::memory::TooMuch;
use stereod_core::reading;

/// First bytes of what zstd has compressed.
pub(super) const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Decompresses a whole file into memory.
pub(super) fn decompressed(path: &Path) -> Result<Vec<u8>> {
    let file = reading::open(path)?;
    let mut content = Vec::new();
    let decoder = zstd::Decoder::new(file)?;
    let read = decoder.take(longest() + 1).read_to_end(&mut content);
    let on_disk = || format!("decompress it on disk instead (unzstd -k {})", path.display());
    check_length("the decompressed file", content.len() as u64).with_context(on_disk)?;
    read.context("the file is damaged or was cut off")?;
    Ok(content)
}

/// Opens a decompressed MCAP file, which needs a file: it has no name and is gone once it is closed.
pub(super) fn mcap_of(content: &[u8]) -> Result<Box<dyn Reader>> {
    let mut file = tempfile::tempfile().context("no temporary file can be made")?;
    file.write_all(content).context("the decompressed file cannot be kept")?;
    file.rewind()?;
    mcap::of_file(file).map(|(reader, _)| unpacked(reader))
}

/// Decompresses a message in place. Returns the loss if it is damaged.
pub(super) fn unpack(message: &mut Message) -> Result<Option<Lost>> {
    match decompress(&message.data) {
        Err(error) if !error.is::<TooMuch>() => {
            let s = message.log_ns as f64 * 1e-9;
            let what = format!(
                "the message of log time {s:.3} s is damaged: {error:#}; messages left out: 1"
            );
            Ok(Some(Lost { what, messages: vec![(message.topic, 1)] }))
        }
        data => {
            message.data = data?;
            Ok(None)
        }
    }
}

/// Reads an MCAP file whose messages rosbag2 may have compressed one by one. They are known by their first bytes,
/// which no message in CDR has, so that a file without its metadata.yaml is read, too.
struct Unpacked {
    packed: Box<dyn Reader>,
    lost: Vec<Lost>,
}

pub(super) fn unpacked(packed: Box<dyn Reader>) -> Box<dyn Reader> {
    Box::new(Unpacked { packed, lost: Vec::new() })
}

impl Reader for Unpacked {
    fn topics(&self) -> &[Topic] {
        self.packed.topics()
    }

    fn begin(&mut self, topics: &[usize]) -> Result<()> {
        self.lost.clear();
        self.packed.begin(topics)
    }

    fn next(&mut self, message: &mut Message) -> Result<bool> {
        while self.packed.next(message)? {
            let is_cdr = self.packed.topics()[message.topic].encoding == Encoding::Cdr;
            if is_cdr
                && message.data.starts_with(&ZSTD)
                && let Some(lost) = unpack(message)?
            {
                self.lost.push(lost);
                continue;
            }
            return Ok(true);
        }
        Ok(false)
    }

    fn lost(&mut self) -> Vec<Lost> {
        let mut lost = self.packed.lost();
        lost.append(&mut self.lost);
        lost
    }

    fn cut(&self) -> Option<String> {
        self.packed.cut()
    }
}

fn decompress(data: &[u8]) -> Result<Vec<u8>> {
    let mut content = Vec::new();
    let read = zstd::Decoder::new(data)?.take(longest() + 1).read_to_end(&mut content);
    check_length("a decompressed message", content.len() as u64)?;
    read.context("a message compressed by zstd is damaged")?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ::mcap::records::MessageHeader;

    use super::*;

    /// Returns an MCAP file with these messages.
    fn file(messages: &[&[u8]]) -> Vec<u8> {
        let mut content = std::io::Cursor::new(Vec::new());
        let mut writer = ::mcap::Writer::new(&mut content).unwrap();
        let schema = writer.add_schema("sensor_msgs/msg/Image", "ros2msg", b"").unwrap();
        let channel_id = writer.add_channel(schema, "/a", "cdr", &BTreeMap::new()).unwrap();
        for (time, data) in (1..).zip(messages) {
            let header =
                MessageHeader { channel_id, sequence: 0, log_time: time, publish_time: time };
            writer.write_to_known_channel(&header, data).unwrap();
        }
        writer.finish().unwrap();
        drop(writer);
        content.into_inner()
    }

    fn read(mut reader: Box<dyn Reader>) -> (Vec<Vec<u8>>, Vec<Lost>) {
        reader.begin(&[0]).unwrap();
        let (mut message, mut seen) = (Message::default(), Vec::new());
        while reader.next(&mut message).unwrap() {
            seen.push(message.data.clone());
        }
        (seen, reader.lost())
    }

    #[test]
    fn mcap_is_read_with_compressed_messages_and_as_a_compressed_file() {
        let plain: [&[u8]; 2] = [&[0, 1, 0, 0, 7], &[0, 1, 0, 0, 8]];
        let packed = plain.map(|message| zstd::encode_all(message, 1).unwrap());
        let packed = packed.each_ref().map(|message| &message[..]);
        let broken = &packed[1][..packed[1].len() - 2];
        for (messages, lost) in
            [(plain.to_vec(), 0), (packed.to_vec(), 0), (vec![plain[0], broken, packed[1]], 1)]
        {
            let (seen, told) = read(mcap_of(&file(&messages)).unwrap());
            assert_eq!(seen, plain);
            assert_eq!(told.len(), lost, "{told:?}");
            assert!(told.iter().all(|lost| lost.messages == [(0, 1)]), "{told:?}");
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.mcap.zstd");
        std::fs::write(&path, zstd::encode_all(&file(&plain)[..], 1).unwrap()).unwrap();
        let opened = super::super::rosbag2::open(&path, None).unwrap();
        assert_eq!(read(opened).0, plain);
        std::fs::write(&path, zstd::encode_all(&b"#ROSBAG V2.0\n"[..], 1).unwrap()).unwrap();
        let refused = super::super::rosbag2::open(&path, None).err().unwrap().to_string();
        assert!(refused.contains("`unzstd -k "), "{refused}");
    }

    #[test]
    fn a_bomb_is_refused() {
        let bomb = zstd::encode_all(std::io::repeat(0).take(1 << 20), 1).unwrap();
        assert_eq!(decompress(&bomb).unwrap().len(), 1 << 20);
        assert!(decompress(&bomb[..bomb.len() - 3]).is_err());
    }
}
