//! Access to the server: a token, and the origin of the calling page.
//!
//! On a loopback address everybody on this machine may look; on any other address the token is
//! required. Changes always require it. A page of another origin is refused in any case, so that no
//! web site can use the browser of somebody who may look.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use hyper::header::{AUTHORIZATION, HOST, ORIGIN};
use hyper::{Request, StatusCode};

use crate::core::reading;

/// Bytes of a token: 128 random bits.
const TOKEN_BYTES: usize = 16;

/// Shortest token that is read from a file.
const SHORTEST: usize = 16;

/// Longest file with a token in bytes.
const LONGEST: u64 = 4096;

/// The secret that opens the page.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// Makes a random token.
    pub fn random() -> Result<Self> {
        let mut bytes = [0; TOKEN_BYTES];
        getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("no random token: {error}"))?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// Reads the token of a file, or makes one and writes it into a new file that only this user may
    /// read.
    pub fn of_file(path: &Path) -> Result<Self> {
        let shown = path.display();
        match reading::read(path, LONGEST) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                let token = text.trim();
                let is_plain = token.bytes().all(|byte| byte.is_ascii_alphanumeric());
                ensure!(
                    token.len() >= SHORTEST && is_plain,
                    "{shown} holds no token: at least {SHORTEST} letters and digits; delete the file, and \
                     stereod makes one"
                );
                #[cfg(unix)]
                if fs::metadata(path)
                    .is_ok_and(|about| std::os::unix::fs::MetadataExt::mode(&about) & 0o077 != 0)
                {
                    tracing::warn!(
                        "other users may read the token in {shown}; `chmod 600` keeps it from them"
                    );
                }
                Ok(Self(token.to_owned()))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let token = Self::random()?;
                let mut options = fs::OpenOptions::new();
                options.write(true).create_new(true);
                #[cfg(unix)]
                std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
                let written = options.open(path).and_then(|mut file| writeln!(file, "{}", token.0));
                written.with_context(|| format!("cannot write the token to {shown}"))?;
                Ok(token)
            }
            Err(error) => Err(error).with_context(|| format!("cannot read the token in {shown}")),
        }
    }

    /// Returns the text, for the address of the page.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Compares in a time that does not depend on the place of the first difference.
    fn is(&self, other: &str) -> bool {
        let differences = self.0.bytes().zip(other.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
        self.0.len() == other.len() && differences == 0
    }
}

/// The rule for a listener.
#[derive(Clone, Default)]
pub struct Access {
    /// The token; `None` if nobody may change anything.
    pub token: Option<Token>,
    /// Set if looking requires the token, too.
    pub is_required: bool,
}

/// Rights of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// Set if it may change the run.
    pub may_change: bool,
}

impl Access {
    /// Returns the rights of a request, or status and text of its refusal.
    pub fn rights<B>(&self, request: &Request<B>) -> Result<Rights, (StatusCode, String)> {
        let given = token_of(request);
        let may_change = match (&self.token, given) {
            (Some(token), Some(given)) if token.is(given) => true,
            (Some(_), Some(_)) => {
                let text = "the token is wrong; the program prints the page's address at its start";
                return Err((StatusCode::UNAUTHORIZED, text.into()));
            }
            _ => false,
        };
        if self.is_required && !may_change {
            let text = "a token is needed; the program prints the page's address at its start";
            return Err((StatusCode::UNAUTHORIZED, text.into()));
        }
        Ok(Rights { may_change })
    }
}

/// Checks that a request comes from no page of another origin.
pub fn check_origin<B>(request: &Request<B>) -> Result<(), (StatusCode, String)> {
    let Some(origin) = request.headers().get(ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().unwrap_or_default();
    let called = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let page = origin.split_once("://").map(|(_, host)| host);
    match page.is_some() && page == called {
        true => Ok(()),
        false => {
            Err((StatusCode::FORBIDDEN, format!("a page of {origin} may not ask this server")))
        }
    }
}

/// Returns the token that a request has in its query or, as programs send it, in its header
/// `Authorization: Bearer`.
fn token_of<B>(request: &Request<B>) -> Option<&str> {
    let query = request.uri().query().unwrap_or_default();
    let in_query = query.split('&').find_map(|pair| pair.strip_prefix("token="));
    let header = request.headers().get(AUTHORIZATION).and_then(|header| header.to_str().ok());
    in_query.or_else(|| header?.strip_prefix("Bearer ")).filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(uri: &str, headers: &[(&str, &str)]) -> Request<()> {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap()
    }

    fn status(access: &Access, uri: &str, headers: &[(&str, &str)]) -> Result<bool, u16> {
        let request = request(uri, headers);
        let checked = check_origin(&request).and_then(|()| access.rights(&request));
        checked.map(|rights| rights.may_change).map_err(|(status, _)| status.as_u16())
    }

    #[test]
    fn looking_is_free_on_loopback_and_changing_never() {
        let token = Token::random().unwrap();
        assert_eq!(token.text().len(), 32);
        assert_ne!(token.text(), Token::random().unwrap().text());
        let right = format!("/live?x=1&token={}", token.text());
        let bearer = format!("Bearer {}", token.text());
        for is_required in [false, true] {
            let access = Access { token: Some(token.clone()), is_required };
            let without = if is_required { Err(401) } else { Ok(false) };
            assert_eq!(status(&access, "/live", &[]), without);
            assert_eq!(status(&access, "/live?token=", &[]), without);
            assert_eq!(status(&access, &right, &[]), Ok(true));
            assert_eq!(status(&access, "/metrics", &[("authorization", &bearer)]), Ok(true));
            for wrong in ["/?token=x", &right[..right.len() - 1], &format!("{right}0")] {
                assert_eq!(status(&access, wrong, &[]), Err(401), "{wrong}");
            }
        }
        assert_eq!(status(&Access::default(), "/?token=x", &[]), Ok(false));
    }

    #[test]
    fn pages_of_others_are_refused() {
        let access = Access::default();
        let host = ("host", "rig:9100");
        for (origin, allowed) in [
            ("http://rig:9100", true),
            ("https://rig:9100", true),
            ("http://rig:9101", false),
            ("http://rig", false),
            ("http://evil.example", false),
            ("null", false),
            ("", false),
        ] {
            let checked = status(&access, "/live", &[host, ("origin", origin)]);
            assert_eq!(checked, if allowed { Ok(false) } else { Err(403) }, "{origin}");
        }
    }

    #[test]
    fn a_token_in_a_file_lasts_and_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let made = Token::of_file(&path).unwrap();
        assert_eq!(Token::of_file(&path).unwrap().text(), made.text());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        fs::write(&path, "short").unwrap();
        let error = Token::of_file(&path).err().unwrap().to_string();
        assert!(error.contains("holds no token") && error.contains("delete the file"), "{error}");
        assert!(Token::of_file(&folder.path().join("none/token")).is_err());
        // It has no end.
        let error = format!("{:#}", Token::of_file(Path::new("/dev/zero")).err().unwrap());
        assert!(error.contains("/dev/zero: it is longer than 4 KiB"), "{error}");
    }
}
