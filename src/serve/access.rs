//! Access to the server: a token, and the origin of the calling page.
//!
//! On a loopback address everybody on this machine may look; on any other address, through a proxy, and
//! with `require_token` the token is required. Changes always require it. A page of another origin is
//! refused in any case, so that no web site can use the browser of somebody who may look.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use hyper::header::{AUTHORIZATION, ORIGIN};
use hyper::{Request, StatusCode};

use super::hosts::Hosts;
use stereod_core::{files::explain, reading};

const TOKEN_BYTES: usize = 16;

/// Shortest token that is read from a file, and the longest such file.
const SHORTEST: usize = 16;
const LONGEST: u64 = 4096;

#[derive(Clone)]
pub struct Token(String);

impl Token {
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
            Ok(text) => {
                let text = String::from_utf8_lossy(&text);
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
                written.map_err(|error| explain(path, &error).context("[serve] token_file"))?;
                Ok(token)
            }
            Err(error) => Err(error).with_context(|| format!("cannot read the token in {shown}")),
        }
    }

    pub fn text(&self) -> &str {
        &self.0
    }

    /// Compares in a time that does not depend on the place of the first difference.
    fn is(&self, other: &str) -> bool {
        let differences = self.0.bytes().zip(other.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
        self.0.len() == other.len() && differences == 0
    }
}

#[derive(Clone, Default)]
pub struct Access {
    /// The token; `None` if nobody may change anything.
    pub token: Option<Token>,
    /// Set if looking requires the token, too.
    pub is_required: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// Set if it may change the run.
    pub may_change: bool,
}

impl Access {
    pub fn rights<B>(&self, request: &Request<B>) -> Result<Rights, (StatusCode, String)> {
        let Some(token) = &self.token else { return Ok(Rights { may_change: false }) };
        let mut given = tokens_of(request).peekable();
        let is_given = given.peek().is_some();
        if given.any(|given| token.is(given)) {
            return Ok(Rights { may_change: true });
        }
        let problem = match is_given {
            true => "the token is wrong",
            false if self.is_required || is_forwarded(request) => "a token is needed",
            false => return Ok(Rights { may_change: false }),
        };
        let text = format!("{problem}; the program prints the page's address at its start");
        Err((StatusCode::UNAUTHORIZED, text))
    }
}

/// Name of the host that a proxy was called by.
const FORWARDED_HOST: &str = "x-forwarded-host";

/// Reports whether a proxy has passed a request on. Whoever sent it is elsewhere, although the proxy may be on
/// this machine.
fn is_forwarded<B>(request: &Request<B>) -> bool {
    let names = ["x-forwarded-for", FORWARDED_HOST, "x-real-ip", "forwarded", "via"];
    names.iter().any(|name| request.headers().contains_key(*name))
}

/// Checks that a request comes from no page of another origin. A browser says so in `Sec-Fetch-Site`, unless it
/// is an old one or the address is neither of this machine nor HTTPS, and in `Origin`, unless the page only
/// wants an image or a script.
pub fn check_origin<B>(request: &Request<B>, hosts: &Hosts) -> Result<(), (StatusCode, String)> {
    let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    let refuse = |who: &str, cure: &str| {
        Err((StatusCode::FORBIDDEN, format!("{who} may not ask this server{cure}")))
    };
    match header("sec-fetch-site") {
        Some("same-origin") => return Ok(()),
        // Nothing but a link to a page may lead here.
        Some("cross-site" | "same-site")
            if header("sec-fetch-dest") != Some("document")
                || request.uri().path().starts_with("/snapshot/") =>
        {
            return refuse("a page of another origin", "");
        }
        _ => {}
    }
    let Some(origin) = request.headers().get(ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().unwrap_or_default();
    let page = origin.split_once("://").map(|(_, host)| host);
    // A page cannot add this header, so a proxy did.
    let forwarded = header(FORWARDED_HOST).filter(|host| hosts.are_called(host));
    match page.is_some() && (page == header("host") || page == forwarded) {
        true => Ok(()),
        false => refuse(
            &format!("a page of {origin}"),
            "; a proxy must pass on the name that it was called by as Host (docs/remote.md)",
        ),
    }
}

/// Returns the tokens that a request has in its query and, as programs send it, in its header
/// `Authorization: Bearer`.
fn tokens_of<B>(request: &Request<B>) -> impl Iterator<Item = &str> {
    let query = request.uri().query().unwrap_or_default();
    let in_query = query.split('&').filter_map(|pair| pair.strip_prefix("token="));
    let headers = request.headers().get_all(AUTHORIZATION).iter();
    let in_headers = headers.filter_map(|header| {
        let (scheme, token) = header.to_str().ok()?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    });
    in_query.chain(in_headers).filter(|token| !token.is_empty())
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
        let hosts = Hosts::new(["rig.example".to_owned()]);
        let checked = check_origin(&request, &hosts).and_then(|()| access.rights(&request));
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
            for path in ["/metrics", "/metrics?token=", "/metrics?token=&x=1"] {
                for given in [&bearer, &bearer.replace("Bearer", "bearer")] {
                    assert_eq!(
                        status(&access, path, &[("authorization", given)]),
                        Ok(true),
                        "{path}"
                    );
                }
            }
            let proxied = ("x-forwarded-for", "192.0.2.7");
            assert_eq!(status(&access, "/live", &[proxied]), Err(401));
            assert_eq!(status(&access, &right, &[proxied]), Ok(true));
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
    fn a_browser_says_where_a_request_comes_from() {
        let asks = |path: &str, site, dest, more: &[(&str, &str)]| {
            let own = [("host", "127.0.0.1:1"), ("sec-fetch-site", site), ("sec-fetch-dest", dest)];
            status(&Access::default(), path, &[&own[..], more].concat()).is_ok()
        };
        for site in ["cross-site", "same-site"] {
            for (path, dest) in [
                ("/snapshot/cloud.ply", "image"),
                ("/snapshot/cloud.ply", "document"),
                ("/page.js", "script"),
                ("/", "iframe"),
                ("/live", "websocket"),
            ] {
                assert!(!asks(path, site, dest, &[]), "{site} {path} {dest}");
            }
            assert!(asks("/", site, "document", &[]), "a link to the page");
        }
        assert!(asks("/snapshot/cloud.ply", "same-origin", "document", &[]));
        assert!(asks("/snapshot/cloud.ply", "none", "document", &[]), "typed by the user");
        // Behind a proxy that does not pass the name on.
        let (page, called) = (("origin", "https://rig.example:8443"), "x-forwarded-host");
        assert!(asks("/live", "same-origin", "websocket", &[page]));
        let old = |more: &[(&str, &str)]| {
            status(
                &Access::default(),
                "/live",
                &[&[("host", "127.0.0.1:1"), page][..], more].concat(),
            )
        };
        assert_eq!(old(&[]), Err(403));
        assert_eq!(old(&[(called, "rig.example:8443")]), Ok(false));
        assert_eq!(old(&[(called, "rig.example")]), Err(403));
        let evil =
            [("origin", "http://evil.example"), ("host", "127.0.0.1:1"), (called, "evil.example")];
        assert_eq!(status(&Access::default(), "/live", &evil), Err(403), "a name of nobody here");
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
        assert!(Token::of_file(folder.path()).is_err());
        // It has no end.
        let error = format!("{:#}", Token::of_file(Path::new("/dev/zero")).err().unwrap());
        assert!(error.contains("/dev/zero: it is longer than 4 KiB"), "{error}");
    }
}
