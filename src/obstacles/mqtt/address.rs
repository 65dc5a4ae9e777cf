//! Address of a broker, its login and its certificates, as options of the MQTT library.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use rumqttc::{LastWill, MqttOptions, QoS, TlsConfiguration, Transport};
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use rustls::{ClientConfig, RootCertStore};

use super::topics::{LONGEST_DISCOVERY, OFFLINE, Topics};
use super::{PASSWORD, Settings, USER};
use crate::boxes::unix_time;

/// Silence after which the broker is asked whether it is there; after twice this it counts as lost. The broker
/// publishes the last will after a silence of 1.5 times this.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

#[derive(Debug, PartialEq)]
struct Address {
    host: String,
    port: u16,
    is_tls: bool,
}

/// Returns options for a connection with a last will, and with the login of the environment.
pub(super) fn options(settings: &Settings, topics: &Topics) -> Result<MqttOptions> {
    let Address { host, port, is_tls } = parse(&settings.address)?;
    // Two clients of one id would disconnect each other, and programs in containers share their process ids.
    let id = format!("stereod-{:x}-{:x}", std::process::id(), unix_time().subsec_nanos());
    let mut options = MqttOptions::new(id, &host, port);
    options.set_keep_alive(KEEP_ALIVE);
    options.set_max_packet_size(LONGEST_DISCOVERY, LONGEST_DISCOVERY);
    options.set_last_will(LastWill::new(&topics.status, OFFLINE, QoS::AtLeastOnce, true));
    if is_tls {
        ServerName::try_from(host.as_str())
            .with_context(|| format!("\"{host}\" is no host name"))?;
        options.set_transport(Transport::tls_with_config(tls(settings.ca.as_deref())?));
    }
    let is_near =
        host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    let [user, password] = [variable(USER)?, variable(PASSWORD)?];
    match (user, password) {
        (None, None) => {}
        (None, Some(_)) => bail!("{PASSWORD} is set, but {USER} is not"),
        (Some(user), password) => {
            if password.is_some() && !is_tls && !is_near {
                tracing::warn!(
                    "the password for the MQTT broker {host} crosses the network unencrypted: mqtts:// encrypts it"
                );
            }
            options.set_credentials(user, password.unwrap_or_default());
        }
    }
    Ok(options)
}

/// Returns an environment variable that is not empty. Its text is in no error.
fn variable(name: &str) -> Result<Option<String>> {
    let text = std::env::var_os(name).filter(|text| !text.is_empty());
    text.map(|text| text.into_string().ok().with_context(|| format!("{name} is not UTF-8")))
        .transpose()
}

fn parse(address: &str) -> Result<Address> {
    // A password that was written into the address by mistake must not come into the log.
    ensure!(
        !address.contains('@'),
        "the MQTT address has an @: user and password come from the environment variables {USER} and {PASSWORD}"
    );
    let wrong = || {
        format!(
            "the MQTT address \"{address}\" is not of the form mqtt://HOST[:PORT] or mqtts://HOST[:PORT]"
        )
    };
    let (scheme, rest) = address.split_once("://").with_context(wrong)?;
    let (is_tls, usual) = match scheme {
        "mqtt" => (false, 1883),
        "mqtts" => (true, 8883),
        _ => bail!(wrong()),
    };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    // Only an IPv6 address has colons of its own, and it stands in brackets.
    let (host, port) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once(']').with_context(wrong)?,
        None => rest.split_at(rest.find(':').unwrap_or(rest.len())),
    };
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => usual,
        Some(port) => port.parse().ok().filter(|port| *port > 0).with_context(wrong)?,
        None => bail!(wrong()),
    };
    let is_host = |c: char| !c.is_whitespace() && !c.is_control() && !"/?#".contains(c);
    ensure!(!host.is_empty() && host.chars().all(is_host), wrong());
    Ok(Address { host: host.into(), port, is_tls })
}

/// Returns TLS that trusts the authorities of the file, or the system's.
fn tls(ca: Option<&Path>) -> Result<TlsConfiguration> {
    let mut roots = RootCertStore::empty();
    if let Some(path) = ca {
        add_file(&mut roots, path)
            .with_context(|| format!("certificates for the MQTT broker in {}", path.display()))?;
    } else {
        let (used, _unusable) =
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        ensure!(
            used > 0,
            "the system has no certificates of authorities: install ca-certificates, or give a file of them"
        );
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(config.with_root_certificates(roots).with_no_client_auth().into())
}

fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<()> {
    for certificate in CertificateDer::pem_file_iter(path)? {
        roots.add(certificate?)?;
    }
    ensure!(!roots.is_empty(), "it has no PEM certificate");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        for (address, host, port, is_tls) in [
            ("mqtt://broker", "broker", 1883, false),
            ("mqtts://broker.example/", "broker.example", 8883, true),
            ("mqtt://10.0.0.1:1884", "10.0.0.1", 1884, false),
            ("mqtts://[::1]:8884", "::1", 8884, true),
            ("mqtt://[fe80::1]", "fe80::1", 1883, false),
        ] {
            assert_eq!(parse(address).unwrap(), Address { host: host.into(), port, is_tls });
        }
    }

    #[test]
    fn wrong_addresses_are_refused_without_telling_a_password() {
        for address in [
            "",
            "broker",
            "mqtt:broker",
            "http://broker",
            "mqtt://",
            "mqtt://:1883",
            "mqtt://a:0",
            "mqtt://a:70000",
            "mqtt://a:b",
            "mqtt://a/b",
            "mqtt://[::1",
            "mqtt://[::1]1883",
            "mqtt://a b",
            "mqtt://a:1:2",
            "mqtt://a?b",
        ] {
            assert!(parse(address).unwrap_err().to_string().contains("mqtts://HOST"), "{address}");
        }
        let error = format!("{:#}", parse("mqtt://user:secret@broker").unwrap_err());
        assert!(error.contains(PASSWORD) && !error.contains("secret"), "{error}");
    }

    #[test]
    fn files_without_certificates_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        for (text, words) in [
            (None, "ca.pem"),
            (Some("nothing"), "no PEM certificate"),
            (Some("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), "ca.pem"),
        ] {
            if let Some(text) = text {
                std::fs::write(&path, text).unwrap();
            }
            let error = format!("{:#}", tls(Some(&path)).err().unwrap());
            assert!(error.contains(words), "{error}");
        }
    }
}
