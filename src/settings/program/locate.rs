//! Choice of the configuration file.

use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// The user's own, if there is a home folder.
    pub user: Option<PathBuf>,
    pub system: PathBuf,
}

impl Places {
    pub fn of_this_process() -> Places {
        Places::of(
            std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from),
            std::env::var_os("HOME").map(PathBuf::from),
        )
    }

    /// Returns the places for the variables XDG_CONFIG_HOME and HOME. Relative paths are ignored,
    /// as the XDG base directory specification demands.
    fn of(xdg_config_home: Option<PathBuf>, home: Option<PathBuf>) -> Places {
        let absolute = |path: &PathBuf| path.is_absolute();
        let folder = xdg_config_home
            .filter(absolute)
            .or_else(|| home.filter(absolute).map(|home| home.join(".config")));
        Places {
            user: folder.map(|folder| folder.join("stereod/config.toml")),
            system: PathBuf::from("/etc/stereod/config.toml"),
        }
    }

    /// Returns the machine's file if this user may not read it: it belongs to the service, and may
    /// hold passwords.
    pub fn forbidden(&self) -> Option<&Path> {
        let error = std::fs::File::open(&self.system).err()?;
        (error.kind() == std::io::ErrorKind::PermissionDenied).then_some(&self.system)
    }

    pub fn in_order(&self) -> impl Iterator<Item = &Path> {
        self.user.as_deref().into_iter().chain([self.system.as_path()])
    }
}

/// Returns the file to read: the named one, else the first that exists, else none. The machine's
/// file is skipped if this user may not read it.
pub fn config_file(named: Option<&Path>, places: &Places) -> Option<PathBuf> {
    match named {
        Some(named) => Some(named.to_owned()),
        // A file that exists but cannot be accessed is an error to report.
        None => places
            .in_order()
            .filter(|path| places.forbidden() != Some(*path))
            .find(|path| {
                !matches!(
                    path.symlink_metadata().map_err(|error| error.kind()),
                    Err(std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
                )
            })
            .map(Path::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xdg_before_home() {
        let user = |xdg: Option<&str>, home: Option<&str>| {
            Places::of(xdg.map(Into::into), home.map(Into::into)).user
        };
        assert_eq!(user(Some("/x"), Some("/h")), Some("/x/stereod/config.toml".into()));
        assert_eq!(user(None, Some("/h")), Some("/h/.config/stereod/config.toml".into()));
        assert_eq!(user(Some("x"), Some("/h")), Some("/h/.config/stereod/config.toml".into()));
        assert_eq!(user(Some(""), None), None);
    }

    #[test]
    fn named_before_user_before_system() {
        let folder = tempfile::tempdir().unwrap();
        let (user, system) = (folder.path().join("user.toml"), folder.path().join("system.toml"));
        let places = Places { user: Some(user.clone()), system: system.clone() };
        let named = Path::new("named.toml");

        assert_eq!(config_file(None, &places), None);
        std::fs::write(&system, "").unwrap();
        assert_eq!(config_file(None, &places), Some(system));
        std::fs::write(&user, "").unwrap();
        assert_eq!(config_file(None, &places), Some(user));
        assert_eq!(config_file(Some(named), &places), Some(named.to_owned()));
    }
}
