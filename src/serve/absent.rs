//! Stands in for the HTTP server in a program that was built without it.

pub mod metrics {
    use std::convert::Infallible;
    use std::net::SocketAddr;

    use anyhow::{Result, bail};

    /// A port that was bound; there is none.
    pub struct Listener(Infallible);

    impl Listener {
        /// Fails.
        pub fn bind(_: SocketAddr) -> Result<Self> {
            bail!("this stereod was built without a server (Cargo's feature `serve`)")
        }
    }
}
