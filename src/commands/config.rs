//! `stereod config`: print and check the settings.

use super::{Error, layers, load, print};
use crate::cli::{ConfigArgs, ConfigCommand, FlagLayer};
use crate::run::refuse_collisions;
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
            let names: Vec<String> = loaded.rigs().map(str::to_owned).collect();
            let of_rig = |name: &String| {
                checked(Some(name))
                    .map_err(|error| Error::from(error).context(format!("rig {name}")))
            };
            let rigs = names.iter().map(of_rig).collect::<Result<Vec<_>, _>>()?;
            let sources: Vec<_> = rigs.iter().map(|rig| rig.settings.source.spec()).collect();
            refuse_collisions(&rigs, &sources, &names)?;
            let of_rigs = match &names[..] {
                [] => String::new(),
                names => format!(" (rigs: {})", names.join(", ")),
            };
            match file {
                Some(file) => print(format!("{}: no mistakes{of_rigs}\n", file.display())),
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
