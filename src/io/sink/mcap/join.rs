//! Joins MCAP files of one stream, message by message.

use std::collections::BTreeMap;
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use mcap::records::{Channel, MessageHeader, Record};
use mcap::sans_io::linear_reader::{LinearReadEvent, LinearReader};
use mcap::write::NoSeek;
use mcap::{Attachment, Writer};

use super::file::options;
use crate::sink::messages::STATIC;
use stereod_core::files::explain;
use stereod_core::files::new_file::NewFile;
use stereod_core::reading;

/// Joins the files `parts`, which stereod has written from consecutive ranges of one source, into `to`.
/// Returns the number of messages. Metadata, attachments and once-per-file messages come from the first file.
pub fn join_files(parts: &[PathBuf], to: &Path) -> Result<u64> {
    let mut file = NewFile::create(to)?;
    let mut joined = Joined {
        writer: options()
            .create(NoSeek::new(&mut file))
            .with_context(|| to.display().to_string())?,
        schemas: BTreeMap::new(),
        channels: BTreeMap::new(),
        is_static: None,
        pair: None,
        messages: 0,
    };
    for (number, path) in parts.iter().enumerate() {
        let added = joined.add(path, number == 0);
        added.with_context(|| format!("joining {} into {}", path.display(), to.display()))?;
    }
    joined.writer.flush().with_context(|| to.display().to_string())?;
    joined.writer.finish().with_context(|| to.display().to_string())?;
    let messages = joined.messages;
    drop(joined);
    file.flush().and_then(|()| file.put_in_place()).map_err(|error| explain(to, &error))?;
    Ok(messages)
}

struct Joined<'a> {
    writer: Writer<NoSeek<&'a mut NewFile>>,
    schemas: BTreeMap<String, u16>,
    channels: BTreeMap<String, u16>,
    /// The channel with one message per file, valid for the whole stream.
    is_static: Option<u16>,
    pair: Option<u32>,
    messages: u64,
}

/// New numbers of a file's schemas and channels by those that they have in it.
#[derive(Default)]
struct Numbers {
    schemas: BTreeMap<u16, u16>,
    channels: BTreeMap<u16, u16>,
}

impl Joined<'_> {
    fn add(&mut self, path: &Path, is_first: bool) -> Result<()> {
        let mut file = BufReader::with_capacity(1 << 20, reading::open(path)?);
        let mut reader = LinearReader::new();
        let (mut numbers, mut is_finished) = (Numbers::default(), false);
        while let Some(event) = reader.next_event() {
            match event? {
                LinearReadEvent::ReadRequest(wanted) => {
                    let read = file.read(reader.insert(wanted))?;
                    reader.notify_read(read);
                }
                LinearReadEvent::Record { data, opcode } => {
                    let record = mcap::parse_record(opcode, data)?;
                    is_finished |= matches!(record, Record::Footer(_));
                    self.record(record, &mut numbers, is_first)?;
                }
            }
        }
        ensure!(is_finished, "it is not finished");
        Ok(())
    }

    fn record(&mut self, record: Record<'_>, own: &mut Numbers, is_first: bool) -> Result<()> {
        match record {
            Record::Schema { header, data } => {
                let number = match self.schemas.get(&header.name) {
                    Some(number) => *number,
                    None => self.writer.add_schema(&header.name, &header.encoding, &data)?,
                };
                self.schemas.insert(header.name, number);
                own.schemas.insert(header.id, number);
            }
            Record::Channel(channel) => self.channel(channel, own, is_first)?,
            Record::Message { header, data } => {
                let channel = own.channels.get(&header.channel_id);
                let channel_id = *channel.context("a message has no channel")?;
                if is_first || Some(channel_id) != self.is_static {
                    self.message(MessageHeader { channel_id, ..header }, &data)?;
                }
            }
            Record::Metadata(metadata) if is_first => self.writer.write_metadata(&metadata)?,
            Record::Attachment { header, data, .. } if is_first => {
                self.writer.attach(&Attachment {
                    log_time: header.log_time,
                    create_time: header.create_time,
                    name: header.name,
                    media_type: header.media_type,
                    data,
                })?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds a channel. Only the first file may have new topics.
    fn channel(&mut self, channel: Channel, own: &mut Numbers, is_first: bool) -> Result<()> {
        let schema = *own.schemas.get(&channel.schema_id).context("a channel has no schema")?;
        let known = self.channels.get(&channel.topic).copied();
        ensure!(is_first || known.is_some(), "it has the topic {}, others not", channel.topic);
        let number = match known {
            Some(number) => number,
            None => self.writer.add_channel(
                schema,
                &channel.topic,
                &channel.message_encoding,
                &channel.metadata,
            )?,
        };
        if channel.topic == STATIC {
            self.is_static = Some(number);
        }
        self.channels.insert(channel.topic, number);
        own.channels.insert(channel.id, number);
        Ok(())
    }

    /// Adds a message. A chunk ends with its pair, as in every file.
    fn message(&mut self, header: MessageHeader, data: &[u8]) -> Result<()> {
        if self.pair.replace(header.sequence).is_some_and(|pair| pair != header.sequence) {
            self.writer.flush()?;
        }
        self.writer.write_to_known_channel(&header, data)?;
        self.messages += 1;
        Ok(())
    }
}
