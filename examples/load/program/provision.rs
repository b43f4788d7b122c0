//! The mode `provision`: writes the configuration and the directory of an engine that the other modes can call.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::program::error::LoadError;
use crate::program::options::ProvisionOptions;
use crate::program::site::{CARRIER_NETWORK, DOMAIN, FIRST_EXTENSION, NUMBER_PREFIX, PASSWORD};

/// Writes both files and prints the commands that use them.
///
/// # Errors
/// The folder cannot be written, or the calls need more ports than exist.
pub(crate) fn run(options: &ProvisionOptions) -> Result<(), LoadError> {
    let (config, site) = write_site(options)?;
    let commands = format!(
        "sidetone apply {site} --config {config}\nsidetone serve --config {config}\n",
        site = site.display(),
        config = config.display()
    );
    // A closed stdout is no failure of the run.
    let _ = std::io::stdout().write_all(commands.as_bytes());
    Ok(())
}

/// Writes both files and returns their paths, that of the configuration first.
///
/// # Errors
/// As [`run`].
pub(crate) fn write_site(options: &ProvisionOptions) -> Result<(PathBuf, PathBuf), LoadError> {
    let configuration = configuration(options)?;
    let (config, site) = (options.dir.join("sidetone.toml"), options.dir.join("site.toml"));
    fs::create_dir_all(&options.dir)
        .map_err(|source| LoadError::File { path: options.dir.clone(), source })?;
    for (path, text) in [(&config, configuration), (&site, directory(options.extensions))] {
        fs::write(path, text).map_err(|source| LoadError::File { path: path.clone(), source })?;
    }
    Ok((config, site))
}

/// The text of `sidetone.toml`.
fn configuration(options: &ProvisionOptions) -> Result<String, LoadError> {
    let last =
        options.calls.checked_mul(PORTS_PER_CALL).and_then(|ports| options.first_port.checked_add(ports - 1));
    let last =
        last.ok_or_else(|| LoadError::Usage("--calls needs more media ports than there are".to_owned()))?;
    let (sip, http) = (options.sip, options.http);
    let data = options.dir.join("data");
    let database = match &options.database_url {
        Some(url) => format!("[database]\nurl = {}\n", toml::Value::from(url.as_str())),
        None => format!("[database]\nurl = {}\n", toml::Value::from(sqlite(&data))),
    };
    Ok(format!(
        "[node]\ndata_dir = {}\n{database}\
         [sip]\nlisten = [\"udp://{sip}\", \"tcp://{sip}\"]\n\
         # The load comes from few addresses; an engine on a network keeps the defaults.\n\
         requests_per_source = {RATE_MAX}\nburst_per_source = {RATE_MAX}\nrequests_of_strangers = {RATE_MAX}\n\
         [media]\nports = \"{}-{last}\"\nworkers = {}\n[http]\nlisten = \"{http}\"\n[log]\nlevel = \"warn\"\n",
        toml::Value::from(data.display().to_string()),
        options.first_port,
        options.workers,
    ))
}

/// The text of the apply file: an organisation with its phones, a number for each of the first of them, and the trunk.
fn directory(extensions: u32) -> String {
    let mut text = format!(
        "[[organisations]]\nname = \"Load\"\nsip_domain = \"{DOMAIN}\"\ncurrency = \"EUR\"\n\
         [[organisations.api_keys]]\nname = \"load\"\nkey = \"{KEY}\"\npermissions = [\"calls:read\"]\n\
         allow = [\"127.0.0.1\"]\nrate_per_minute = 60000\n"
    );
    for number in FIRST_EXTENSION..FIRST_EXTENSION.saturating_add(extensions) {
        text += &format!("[[organisations.extensions]]\nnumber = \"{number}\"\npassword = \"{PASSWORD}\"\n");
    }
    for number in FIRST_EXTENSION..FIRST_EXTENSION.saturating_add(extensions.min(NUMBERS_MAX)) {
        text += &format!(
            "[[organisations.numbers]]\nnumber = \"{NUMBER_PREFIX}{number}\"\ndestination = {{ extension = \"{number}\" }}\n"
        );
    }
    text + &format!("[[trunks]]\nname = \"carrier\"\naccept_from = [\"{CARRIER_NETWORK}\"]\n")
}

fn sqlite(data: &Path) -> String {
    format!("sqlite://{}", data.join("sidetone.db").display())
}

/// The key that reads the call log over HTTP; for tests and scripts on the same machine.
pub(crate) const KEY: &str = "tel_loadboss0001_0123456789abcdefghijklmnopqrstuvwxyz";
/// Ports for RTP and RTCP of two legs.
const PORTS_PER_CALL: u16 = 4;
/// The extensions that also have a number of the public network.
const NUMBERS_MAX: u32 = 1_000;
const RATE_MAX: u32 = 1_000_000;

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::program::options::{Arguments, Command};

    fn options(more: &[&str]) -> ProvisionOptions {
        let arguments = ["load", "provision", "--dir", "/tmp/a \"b\""].iter().chain(more);
        match Arguments::parse_from(arguments).command {
            Command::Provision(options) => options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_configuration_is_what_the_engine_reads() {
        let text = configuration(&options(&["--calls", "10", "--first-port", "20000"])).unwrap();
        let table: toml::Table = text.parse().unwrap();
        assert_eq!(table["node"]["data_dir"].as_str(), Some("/tmp/a \"b\"/data"));
        assert_eq!(table["media"]["ports"].as_str(), Some("20000-20039"));
        assert!(configuration(&options(&["--calls", "20000"])).is_err());
    }

    #[test]
    fn every_phone_has_a_number_up_to_a_thousand() {
        for (extensions, numbers) in [(1, 1), (1_200, 1_000)] {
            let text = directory(extensions);
            assert!(sidetone::provision::Declaration::parse(text.parse().unwrap()).is_ok());
            assert_eq!(text.matches("[[organisations.numbers]]").count(), numbers);
            assert_eq!(text.matches("[[organisations.extensions]]").count(), extensions as usize);
        }
    }
}
