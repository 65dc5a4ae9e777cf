//! A stand-in for the service manager (sd_notify(3)).

use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};

use super::*;

/// Hears what a program notifies. It reads all the time, because notifications to a full socket are lost.
pub struct Manager {
    pub socket: PathBuf,
    heard: Receiver<String>,
}

impl Manager {
    pub fn bind(folder: &Path) -> Self {
        let path = folder.join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let (send, heard) = channel();
        std::thread::spawn(move || {
            let mut message = [0; 4096];
            while let Ok(length) = socket.recv(&mut message) {
                let text = String::from_utf8_lossy(&message[..length]).into_owned();
                if send.send(text).is_err() {
                    return;
                }
            }
        });
        Self { socket: path, heard }
    }

    /// Returns the next notification.
    pub fn hear(&self) -> String {
        self.heard.recv_timeout(LIMIT).expect("the daemon speaks")
    }

    /// Returns the lines of all notifications up to one with a line that begins so.
    pub fn listen_for(&self, what: &str) -> Vec<String> {
        let (mut lines, mut patience) = (Vec::new(), Patience::begin());
        loop {
            let begin = lines.len();
            lines.extend(self.hear().lines().map(str::to_owned));
            if lines[begin..].iter().any(|line: &String| line.starts_with(what)) {
                return lines;
            }
            assert!(!patience.is_over(), "no {what} in {lines:?}");
        }
    }

    /// Waits until the present engine has matched pairs of its own: more than are on their way.
    pub fn wait_for_pairs(&self) {
        let matched = |line: &str| -> Option<u64> {
            let (count, _) = line.strip_prefix("STATUS=")?.split_once(" pairs matched")?;
            count.parse().ok()
        };
        let mut first = None;
        wait_until("pairs of the present engine", || {
            let count = self.hear().lines().find_map(matched);
            first = first.or(count);
            count > first.map(|first| first + 30)
        });
    }
}
