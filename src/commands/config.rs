//! `stereod config`: print and check the settings.

use super::{Error, layers, load, print};
use crate::cli::{ConfigArgs, ConfigCommand, FlagLayer};
use crate::settings::{Places, config_file};
use stereod_core::redact::HIDDEN;

pub fn run(args: ConfigArgs) -> Result<(), Error> {
    match args.command {
        ConfigCommand::Print { origin, common } => {
            let loaded = load(&common, FlagLayer::default())?;
            let text = crate::settings::to_toml(&loaded, origin);
            if text.contains(HIDDEN) {
                tracing::warn!(
                    "passwords are shown as {HIDDEN}: write them in again before this text is used as a \
                     configuration"
                );
            }
            print(text)
        }
        ConfigCommand::Check { file, common } => {
            if file.is_some() && common.config.is_some() {
                return Err(Error::usage(
                    "name the file once: `config check FILE` or --config FILE",
                ));
            }
            let named = file.or_else(|| common.config.clone());
            let places = Places::of_this_process();
            let file = config_file(named.as_deref(), &places);
            let checked = |rig: Option<&String>| {
                layers(file.as_deref(), &common.of_rig(rig), FlagLayer::default()).finish()
            };
            let loaded = checked(common.rig.as_ref())?;
            for rig in loaded.rigs() {
                checked(Some(&rig.to_owned()))?;
            }
            match file {
                Some(file) => print(format!("{}: no mistakes\n", file.display())),
                None => {
                    let looked: Vec<_> =
                        places.in_order().map(|path| path.display().to_string()).collect();
                    print(format!(
                        "no configuration file ({}): the defaults hold\n",
                        looked.join(", ")
                    ))
                }
            }
        }
    }
}
