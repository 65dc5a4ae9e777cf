//! SIGHUP: the configuration is read again while pairs are being matched.

use std::fs;
use std::path::PathBuf;

use super::manager::Manager;
use super::*;

/// A live camera that shows the first image of a video for ever.
fn still(video: &str) -> String {
    format!(
        "filesrc location={video} ! matroskademux ! avdec_ffv1 ! imagefreeze is-live=true ! \
         video/x-raw,framerate=25/1"
    )
}

/// A run in the background that is controlled through `rig.toml`.
struct Daemon {
    folder: std::sync::Arc<tempfile::TempDir>,
    child: Option<Child>,
    manager: Manager,
}

impl Daemon {
    /// Starts it with these sections in addition to the source's, and waits until it is ready.
    fn start(sections: &str, arguments: &[&str]) -> Self {
        let folder = std::sync::Arc::new(tempfile::tempdir().unwrap());
        write_eyes(folder.path(), 1, 1);
        let manager = Manager::bind(folder.path());
        let mut daemon = Self { folder, child: None, manager };
        daemon.configure(sections);
        let arguments = [&["run", "--headless", "--config", "rig.toml", "--stats", "-"], arguments];
        let child = stereod(daemon.folder.path(), &arguments.concat())
            .env("NOTIFY_SOCKET", &daemon.manager.socket)
            .stdout(Stdio::piped())
            .stderr(fs::File::create(daemon.path("log")).unwrap())
            .spawn();
        daemon.child = Some(child.unwrap());
        daemon.manager.listen_for("READY=1");
        daemon
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn configure(&self, sections: &str) {
        let [left, right] = ["l.mkv", "r.mkv"].map(still);
        let text = format!("[source]\nleft = '{left}'\nright = '{right}'\n{sections}");
        fs::write(self.path("rig.toml"), text).unwrap();
    }

    fn signal(&self, signal: i32) {
        super::signal(self.child.as_ref().unwrap(), signal);
    }

    /// Makes it read its configuration again and returns the log of that time.
    fn reload(&self) -> String {
        let before = self.log().len();
        self.signal(libc::SIGHUP);
        let mut heard = self.manager.listen_for("RELOADING=1");
        heard.extend(self.manager.listen_for("READY=1"));
        let times: Vec<u64> = heard
            .iter()
            .filter_map(|line| line.strip_prefix("MONOTONIC_USEC=")?.parse().ok())
            .collect();
        assert_eq!(times.len(), 1, "{heard:?}");
        self.log()[before..].to_owned()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap()
    }

    fn stop(mut self) -> (std::sync::Arc<tempfile::TempDir>, Value) {
        self.signal(libc::SIGTERM);
        let output = ended(self.child.take().unwrap());
        let log = self.log();
        assert_eq!(output.status.code(), Some(0), "{log}");
        assert!(!log.contains("panicked"), "{log}");
        (self.folder.clone(), serde_json::from_slice(&output.stdout).unwrap())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The images of a folder, in order; only complete ones have their final name.
fn pictures(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(folder)
        .map(|entries| entries.map(|entry| entry.unwrap().path()).collect())
        .unwrap_or_default();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "png"));
    paths.sort();
    paths
}

fn stored_with(matching: &Matching) -> Vec<u16> {
    let pair = demo_pair(0);
    stored(&match_pair(&pair.left, &pair.right, &matching.params().unwrap()))
}

#[test]
fn a_new_configuration_takes_effect_between_two_pairs() {
    let before = "[matching]\ndisparities = 24\n[output]\npictures = 'out'\n";
    let daemon = Daemon::start(before, &[]);
    let out = daemon.path("out");
    let more = |count: usize| wait_until("more pictures", || pictures(&out).len() >= count);
    more(3);

    // The cost, and with it the `auto` settings; a number; a setting that cannot change.
    let after = "picture_rate = 12.5\n[matching]\ncost = 'census'\np2 = 70\npaths = 4\ndisparities = 32\n\
                 [output]\npictures = 'elsewhere'\n[colour]\nmap = 'grey'\n[log]\nfilter = 'warn'\n";
    daemon.configure(after);
    let said = daemon.reload();
    for expected in [
        "needs a restart: [source] picture_rate",
        "needs a restart: [output] pictures",
        "needs a restart: [matching] disparities (disparity.json says",
    ] {
        assert!(said.contains(expected), "no {expected:?} in {said}");
    }
    // A change is logged at the level that was in force when it was requested.
    for expected in [
        "configuration read again: ",
        "[matching] cost = \"census\" (was \"combined\")",
        "[matching] p2 = 70 (was \"auto\")",
        "[colour] map = \"grey\" (was \"turbo\")",
        "[log] filter = \"warn\" (was \"info\")",
    ] {
        assert!(said.contains(expected), "no {expected:?} in {said}");
    }
    daemon.manager.wait_for_pairs();
    more(pictures(&out).len() + 30);

    // A file with an error changes nothing, and the message gives its place.
    daemon.configure("[matching]\ncost = 'ad'\nmedian = 4\n");
    let said = daemon.reload();
    assert!(
        said.contains("the configuration stays as it was: rig.toml:6: wrong value 4"),
        "{said}"
    );
    daemon.configure("[matching\n");
    let said = daemon.reload();
    assert!(said.contains("the configuration stays as it was: rig.toml:4"), "{said}");
    more(pictures(&out).len() + 3);

    let (folder, statistics) = daemon.stop();
    assert_eq!(statistics["retuned"], 1, "{statistics}");
    let matching = &statistics["settings"]["matching"];
    assert_eq!((&matching["cost"], &matching["disparities"]), (&"census".into(), &24.into()));
    assert_eq!((&matching["p1"], &matching["p2"]), (&20.into(), &70.into()));

    let old = Matching { disparities: Some(24), ..Matching::default() };
    let mut new = stereod::settings::Layers::new();
    for told in ["disparities=24", "cost=census", "p2=70", "paths=4"] {
        new.assignment(&format!("matching.{told}"));
    }
    let new = new.finish().unwrap().settings.matching;
    let (old, new) = (stored_with(&old), stored_with(&new));
    assert_ne!(old, new);
    let mut seen = Vec::new();
    for path in pictures(&folder.path().join("out")) {
        let picture = image::open(&path).unwrap().into_luma16().into_raw();
        let which = [&old, &new].iter().position(|reference| **reference == picture);
        seen.push(which.unwrap_or_else(|| panic!("{}: neither old nor new", path.display())));
    }
    assert!(seen.is_sorted() && seen[0] == 0 && seen[seen.len() - 1] == 1, "{seen:?}");
}

#[test]
fn the_range_changes_where_no_file_says_otherwise() {
    let daemon = Daemon::start("[matching]\ndisparities = 24\n", &["--p1", "31"]);
    daemon.configure("[matching]\ndisparities = 40\nmin_disparity = -8\np1 = 5\n");
    let said = daemon.reload();
    assert!(said.contains("[matching] disparities = 40 (was 24)"), "{said}");
    assert!(said.contains("[matching] min_disparity = -8 (was 0)"), "{said}");
    // A flag overrides the file.
    assert!(!said.contains("p1") && !said.contains("restart"), "{said}");
    assert!(daemon.reload().contains("configuration read again: nothing to change"));
    // Settings that no engine can compute are refused as at the start.
    daemon.configure("[matching]\np2 = 30\n");
    let said = daemon.reload();
    assert!(said.contains("stays as it was") && said.contains("matching.p2: rig.toml:5"), "{said}");
    let sections = "[matching]\ndisparities = 40\nmin_disparity = -8\n[[rig]]\nname = 'new'\n";
    daemon.configure(sections);
    let said = daemon.reload();
    assert!(said.contains("nothing to change"), "{said}");
    assert!(said.contains("needs a restart: the new rig new"), "{said}");
    daemon.manager.wait_for_pairs();
    let (_, statistics) = daemon.stop();
    assert_eq!(statistics["settings"]["matching"]["disparities"], 40);
    assert_eq!(statistics["retuned"], 1, "{statistics}");
}
