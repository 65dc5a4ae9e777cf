//! `[serve]`: the live page over HTTP.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;

use super::metrics::{address, check_address};
use crate::settings::names::path_of;
use stereod_core::settings::row::Plain::Switch;
use stereod_core::settings::row::{Kind, OUTPUT, Row};

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Serve {
    pub listen: String,
    pub token_file: String,
    pub require_token: bool,
}

pub(in crate::settings) const ROWS: &[Row] = &[
    Row::text("listen", "", check_address)
    .flag(OUTPUT, "--serve", "PORT|ADDRESS:PORT")
    .help("Show the run on a web page: a port of this machine, or ADDRESS:PORT, which requires a token.")
    .more(
        "A port (\"9090\") serves this machine alone, \"0.0.0.0:9090\" every machine that can reach it; \
         the token is printed at the start. The names in [metrics] hosts are taken here, too.",
    ),
    Row::path("token_file")
        .help("File of the token, which is made with the first run and readable by its user only.")
        .more("\"\": a new token for each run."),
    Row::new("require_token", Switch(false), Kind::Switch)
        .help("Require the token on this machine, too, as behind a proxy.")
        .more("A proxy passes on the requests of others."),
];

impl Serve {
    /// Returns the address to listen on. A port alone is one of this machine only.
    pub fn listen(&self) -> Option<SocketAddr> {
        address(&self.listen)
    }

    /// Returns the file of the token; `None`: a new token for each run.
    pub fn token_file(&self) -> Option<PathBuf> {
        path_of(&self.token_file)
    }
}
