//! rosbag2's SQLite files (.db3) of ROS 2, plain or compressed by zstd, by message or as a whole.
//!
//! The file is opened as immutable: SQLite neither locks nor writes it, and creates no other files.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use rusqlite::limits::Limit;
use rusqlite::{Connection, MAIN_DB, OpenFlags, OptionalExtension};

use super::interface::{Encoding, Lost, Message, Reader, TOPICS_MAX, Topic, check_length, longest};
use super::packed::{self, ZSTD, unpack};
use stereod_core::memory::Budget;
use stereod_core::reading;

const METADATA_MAX: u64 = 16 << 20;

#[derive(Clone, Copy, Debug)]
struct Row {
    id: i64,
    topic: usize,
    log_ns: u64,
    length: u64,
}

struct Database {
    connection: Connection,
    topics: Vec<Topic>,
    numbers: Vec<i64>,
    are_compressed: bool,
    wanted: std::vec::IntoIter<Row>,
    read: u64,
    /// True if the file is shorter than it says.
    is_short: bool,
    /// Journal, or difference from the number of messages in metadata.yaml.
    flaw: Option<String>,
    lost: Vec<Lost>,
    cut: Option<String>,
}

/// Opens a file and finds its topics. `folder`: the folder of its metadata.yaml.
pub(super) fn open(path: &Path, folder: Option<&Path>) -> Result<Box<dyn Reader>> {
    let mut start = Vec::new();
    reading::open(path)?.take(ZSTD.len() as u64).read_to_end(&mut start)?;
    if start != ZSTD {
        return of_connection(in_place(path)?, path, folder);
    }
    let content = packed::decompressed(path)?;
    if content.starts_with(mcap::MAGIC) {
        return packed::mcap_of(&content);
    }
    of_connection(in_memory(path, &content)?, path, folder)
}

/// Finds the topics of an open database.
fn of_connection(
    connection: Connection,
    path: &Path,
    folder: Option<&Path>,
) -> Result<Box<dyn Reader>> {
    let metadata = match folder.or(path.parent()) {
        Some(folder) => metadata(&folder.join("metadata.yaml"))?,
        None => String::new(),
    };
    let mode = value(&metadata, "compression_mode");
    let are_compressed = mode.eq_ignore_ascii_case("message");
    let format = value(&metadata, "compression_format");
    if are_compressed && format != "zstd" {
        bail!("its messages are compressed by \"{format}\"; only zstd is read");
    }
    // SQLite refuses a file that is shorter than its header says, except in repair mode.
    let is_whole =
        connection.query_row("SELECT COUNT(*) FROM sqlite_master", [], |_| Ok(())).is_ok();
    if !is_whole {
        connection.execute_batch("PRAGMA writable_schema = ON")?;
    }
    // No value takes more memory than a message may.
    connection
        .set_limit(Limit::SQLITE_LIMIT_LENGTH, i32::try_from(longest()).unwrap_or(i32::MAX))?;
    // Views, virtual tables and generated columns could compute anything.
    for table in ["topics", "messages"] {
        let sql = "SELECT 1 FROM sqlite_master WHERE name = ?1 AND type = 'table' AND rootpage > 0 \
                   AND NOT EXISTS (SELECT 1 FROM pragma_table_xinfo(?1) WHERE hidden > 0)";
        let found = connection.query_row(sql, [table], |_| Ok(())).optional();
        let found = found.with_context(|| damaged("its tables"))?;
        ensure!(
            found.is_some(),
            "the database has no plain table \"{table}\", so it is no recording of rosbag2"
        );
    }
    let mut database = Database {
        connection,
        topics: Vec::new(),
        numbers: Vec::new(),
        are_compressed,
        wanted: Vec::new().into_iter(),
        read: 0,
        is_short: !is_whole,
        flaw: journal(path),
        lost: Vec::new(),
        cut: None,
    };
    database.find_topics()?;
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let found: Option<u64> = database.topics.iter().map(|topic| topic.messages).sum();
    if let (Some(stated), Some(found)) = (stated_messages(&metadata, &name), found)
        && found < stated
        && database.flaw.is_none()
    {
        let what = format!("metadata.yaml states {stated} messages of {name}, but it has {found}");
        database.flaw = Some(what);
    }
    Ok(Box::new(database))
}

fn damaged(what: &str) -> String {
    format!("{what} cannot be read: the database is damaged or was cut off")
}

/// Returns a note on the messages in a journal, which are not read.
fn journal(path: &Path) -> Option<String> {
    let has = |ending: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        std::fs::metadata(name).is_ok_and(|about| about.len() > 0)
    };
    (has("-wal") || has("-journal")).then(|| {
        let path = path.display();
        format!(
            "the recorder was killed or is still at work, and the messages in its journal are left out; \
             `sqlite3 {path} .schema` adds them to the file"
        )
    })
}

/// Opens a database without a lock and without its journals.
fn in_place(path: &Path) -> Result<Connection> {
    let path = path.canonicalize()?;
    let escaped: String =
        path.as_os_str().as_encoded_bytes().iter().map(|byte| format!("%{byte:02x}")).collect();
    let uri = format!("file:{escaped}?mode=ro&immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    Ok(Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?)
}

/// Opens a decompressed database.
fn in_memory(path: &Path, content: &[u8]) -> Result<Connection> {
    ensure!(
        content.starts_with(b"SQLite format 3\0"),
        "decompressed, it is neither a database nor MCAP; `unzstd -k {}` decompresses anything else",
        path.display()
    );
    let mut connection = Connection::open_in_memory()?;
    connection.deserialize_read_exact(MAIN_DB, content, content.len(), true)?;
    Ok(connection)
}

/// Reads metadata.yaml; empty if there is none.
fn metadata(path: &Path) -> Result<String> {
    if !path.is_file() {
        return Ok(String::new());
    }
    let name = || path.display().to_string();
    let text = reading::read(path, METADATA_MAX).with_context(name)?;
    String::from_utf8(text).with_context(name)
}

/// Returns the value of a key in a line of its own; empty if there is none.
fn value<'a>(metadata: &'a str, key: &str) -> &'a str {
    let of_line = |line: &'a str| line.trim().strip_prefix(key)?.strip_prefix(':');
    let value = metadata.lines().find_map(of_line).unwrap_or_default();
    value.trim().trim_matches(['"', '\''])
}

/// Returns the number of messages that metadata.yaml states for a file; version 5 of it and later ones do.
fn stated_messages(metadata: &str, file: &str) -> Option<u64> {
    let mut lines = metadata.lines().map(|line| line.trim().trim_start_matches("- "));
    lines.find(|line| value(line, "path") == file)?;
    lines
        .map_while(|line| value(line, "path").is_empty().then_some(line))
        .find_map(|line| value(line, "message_count").parse().ok())
}

impl Database {
    fn find_topics(&mut self) -> Result<()> {
        let sql = "SELECT id, name, type, serialization_format FROM topics ORDER BY id LIMIT ?1";
        let mut query = self.connection.prepare(sql)?;
        let rows = query.query_map([TOPICS_MAX as i64 + 1], |row| {
            let [name, kind, encoding]: [String; 3] = [row.get(1)?, row.get(2)?, row.get(3)?];
            Ok((row.get(0)?, Topic::new(&name, &kind, Encoding::of(&encoding), None)))
        })?;
        for row in rows {
            let (number, topic) = row.with_context(|| damaged("its topics"))?;
            self.numbers.push(number);
            self.topics.push(topic);
        }
        ensure!(self.topics.len() <= TOPICS_MAX, "the file has more than {TOPICS_MAX} topics");
        drop(query);
        // Of a file that was cut off they cannot be counted.
        if let Ok(counts) = self.counts() {
            for (number, topic) in self.numbers.iter().zip(&mut self.topics) {
                topic.messages = Some(counts.get(number).copied().unwrap_or(0).max(0) as u64);
            }
        }
        Ok(())
    }

    fn counts(&self) -> rusqlite::Result<HashMap<i64, i64>> {
        let sql = "SELECT topic_id, COUNT(*) FROM messages GROUP BY topic_id";
        let mut query = self.connection.prepare(sql)?;
        query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    }

    /// Lists messages in `order`, up to the first that cannot be read.
    fn list(&self, topics: &[usize], order: &str) -> Result<(Vec<Row>, Option<String>)> {
        let ids: Vec<_> = topics.iter().map(|&topic| self.numbers[topic].to_string()).collect();
        let sql = format!(
            "SELECT id, topic_id, timestamp, length(data) FROM messages WHERE topic_id IN ({}) \
             ORDER BY {order}",
            ids.join(",")
        );
        let mut query = self.connection.prepare(&sql)?;
        let rows = query.query_map([], |row| {
            Ok((row.get(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?, row.get::<_, i64>(3)?))
        })?;
        let mut found = Vec::new();
        for row in rows {
            let (id, number, time, length) = match row {
                Ok(row) => row,
                Err(error) => return Ok((found, Some(error.to_string()))),
            };
            let topic = self.numbers.iter().position(|own| *own == number);
            let topic = topic.context("a message belongs to no topic")?;
            found.push(Row { id, topic, log_ns: time.max(0) as u64, length: length.max(0) as u64 });
            if found.len().is_multiple_of(1 << 16) {
                let bytes = (found.len() * size_of::<Row>()) as u64;
                Budget::of_process().check("the list of messages", bytes, "a smaller recording")?;
            }
        }
        Ok((found, None))
    }
}

impl Reader for Database {
    fn topics(&self) -> &[Topic] {
        &self.topics
    }

    fn begin(&mut self, topics: &[usize]) -> Result<()> {
        (self.cut, self.read) = (None, 0);
        self.lost.clear();
        if let Some(what) = self.flaw.clone() {
            let messages = topics.iter().map(|topic| (*topic, 1)).collect();
            self.lost.push(Lost { what, messages });
        }
        let (mut rows, mut failed) = self.list(topics, "timestamp, id")?;
        if failed.is_some() {
            // Without the index, which may lie in the part that is gone, in the order of the file.
            (rows, failed) = self.list(topics, "id")?;
            rows.sort_by_key(|row| row.log_ns);
            let why = failed.unwrap_or_else(|| "its index is damaged".to_owned());
            self.cut = Some(format!("{} messages could be listed: {why}", rows.len()));
        }
        self.wanted = rows.into_iter();
        Ok(())
    }

    fn next(&mut self, message: &mut Message) -> Result<bool> {
        for row in self.wanted.by_ref() {
            check_length("a message", row.length)?;
            let mut query =
                self.connection.prepare_cached("SELECT data FROM messages WHERE id = ?1")?;
            message.data.clear();
            let read = query.query_row([row.id], |found| {
                message.data.extend_from_slice(found.get_ref(0)?.as_bytes()?);
                Ok(())
            });
            if let Err(error) = read {
                // The others may be whole: pages are filled in any order.
                let why = format!("a message could not be read after {}: {error}", self.read);
                self.cut.get_or_insert(why);
                continue;
            }
            (message.topic, message.log_ns) = (row.topic, row.log_ns);
            if self.are_compressed
                && let Some(lost) = unpack(message)?
            {
                self.lost.push(lost);
                continue;
            }
            self.read += 1;
            return Ok(true);
        }
        Ok(false)
    }

    fn lost(&mut self) -> Vec<Lost> {
        std::mem::take(&mut self.lost)
    }

    fn cut(&self) -> Option<String> {
        let short = || format!("it ends after {} messages: the file was cut off", self.read);
        self.cut.clone().or_else(|| self.is_short.then(short))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;

    fn write(path: &Path, messages: u32) {
        let connection = Connection::open(path).unwrap();
        connection
            .execute_batch(
                "CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL, \
                 serialization_format TEXT NOT NULL, offered_qos_profiles TEXT NOT NULL); \
                 CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER NOT NULL, \
                 timestamp INTEGER NOT NULL, data BLOB NOT NULL); \
                 CREATE INDEX timestamp_idx ON messages (timestamp ASC); \
                 INSERT INTO topics VALUES (7, '/a', 'sensor_msgs/msg/Image', 'cdr', '');",
            )
            .unwrap();
        for number in 0..messages {
            // In the wrong order.
            let time = i64::from(messages - number);
            let sql = "INSERT INTO messages(topic_id, timestamp, data) VALUES (7, ?1, ?2)";
            connection.execute(sql, (time, vec![time as u8; 3000])).unwrap();
        }
    }

    fn read(path: &Path) -> Result<(Vec<u8>, Option<String>)> {
        let mut database = open(path, None)?;
        assert_eq!(database.topics()[0].kind, "sensor_msgs/Image");
        database.begin(&[0])?;
        let (mut message, mut seen) = (Message::default(), Vec::new());
        while database.next(&mut message)? {
            assert_eq!(message.data.len(), 3000);
            seen.push(message.data[0]);
        }
        Ok((seen, database.cut()))
    }

    #[test]
    fn messages_come_in_order_of_time_and_nothing_is_created() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a %?#.db3");
        write(&path, 5);
        assert_eq!(read(&path).unwrap(), (vec![1, 2, 3, 4, 5], None));
        let compressed = folder.path().join("a.db3.zstd");
        let content = zstd::encode_all(&std::fs::read(&path).unwrap()[..], 1).unwrap();
        std::fs::write(&compressed, content).unwrap();
        assert_eq!(read(&compressed).unwrap(), (vec![1, 2, 3, 4, 5], None));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_file_that_was_cut_off_is_read_as_far_as_it_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db3");
        write(&path, 60);
        let content = std::fs::read(&path).unwrap();
        for percent in [95, 60, 30] {
            std::fs::write(&path, &content[..content.len() * percent / 100]).unwrap();
            let (seen, cut) = read(&path).unwrap();
            assert!(seen.len() > 60 * percent / 200 && seen.is_sorted(), "{percent} %: {seen:?}");
            assert!(cut.is_some());
        }
        for length in [16, 100, 4096] {
            std::fs::write(&path, &content[..length]).unwrap();
            assert!(read(&path).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn a_database_of_another_program_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db3");
        let connection = Connection::open(&path).unwrap();
        let endless = "CREATE VIEW messages AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 \
                       FROM n) SELECT id FROM n; CREATE TABLE topics(id);";
        connection.execute_batch(endless).unwrap();
        let error = open(&path, None).err().unwrap().to_string();
        assert!(error.contains("no plain table \"messages\""), "{error}");
        // A column of 450 MB in a file of 12 KiB.
        std::fs::remove_file(&path).unwrap();
        write(&path, 3);
        let column = "ALTER TABLE messages DROP COLUMN data; ALTER TABLE messages ADD COLUMN data BLOB \
                      GENERATED ALWAYS AS (zeroblob(450000000))";
        Connection::open(&path).unwrap().execute_batch(column).unwrap();
        let error = open(&path, None).err().unwrap().to_string();
        assert!(error.contains("no plain table \"messages\""), "{error}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn damage_is_an_error_at_worst(
            places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        ) {
            static WHOLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("a.db3");
                write(&path, 4);
                std::fs::read(&path).unwrap()
            });
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.db3");
            let mut content = WHOLE.clone();
            for (place, byte) in places {
                let at = place.index(content.len());
                content[at] = byte;
            }
            std::fs::write(&path, content).unwrap();
            let Ok(mut database) = open(&path, None) else { return Ok(()) };
            let all: Vec<usize> = (0..database.topics().len()).collect();
            if database.begin(&all).is_ok() {
                let mut message = Message::default();
                while matches!(database.next(&mut message), Ok(true)) {}
            }
        }
    }

    #[test]
    fn a_journal_beside_the_file_is_told_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db3");
        write(&path, 4);
        std::fs::write(folder.path().join("a.db3-wal"), [1]).unwrap();
        let mut database = open(&path, None).unwrap();
        database.begin(&[0]).unwrap();
        let lost = database.lost();
        assert!(lost.len() == 1 && lost[0].what.contains("a.db3 .schema` adds them"), "{lost:?}");
        assert!(database.lost().is_empty());
    }

    #[test]
    fn messages_that_the_metadata_states_and_the_file_lacks_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a_0.db3");
        write(&path, 5);
        for (stated, lost) in [(5, 0), (7, 1)] {
            let about = format!(
                "rosbag2_bagfile_information:\n  message_count: 99\n  files:\n    - path: a_0.db3\n      \
                 duration:\n        nanoseconds: 3\n      message_count: {stated}\n    - path: b.db3\n"
            );
            std::fs::write(folder.path().join("metadata.yaml"), about).unwrap();
            let mut database = open(&path, None).unwrap();
            database.begin(&[0]).unwrap();
            let told = database.lost();
            assert_eq!(told.len(), lost, "{told:?}");
            assert!(told.iter().all(|lost| lost.what.contains("states 7 messages of a_0.db3")));
        }
        assert_eq!(
            stated_messages("message_count: 3\n- path: a\n- path: b\n  message_count: 4", "a"),
            None
        );
    }

    #[test]
    fn lines_of_the_metadata() {
        let text = "rosbag2_bagfile_information:\n  compression_format: \"zstd\"\n  compression_mode: FILE";
        assert_eq!(value(text, "compression_format"), "zstd");
        assert_eq!(value(text, "compression_mode"), "FILE");
        assert_eq!(value(text, "other"), "");
    }
}
