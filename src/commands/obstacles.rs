//! `stereod obstacles`: what one pair shows, in words.

use std::time::Duration;

use anyhow::Context;

use super::match_still::{match_pair, pair};
use super::stills::Stills;
use super::{Error, inputs, load, print};
use crate::cli::ObstaclesArgs;
use crate::observe::range::Spare;
use crate::run::open::obstacles;
use crate::run::prepare::ranging;
use crate::run::prepare::rig::Cameras;
use stereod_core::files;
use stereod_core::obstacles::Obstacles;
use stereod_io::sink::still::check_png_name;
use stereod_obstacles::{lines, words};

pub fn run(args: ObstaclesArgs) -> Result<(), Error> {
    let loaded = load(&args.common, args.flags())?;
    let settings = &loaded.settings;
    let spec = args.pair.spec().ok_or_else(|| Error::usage("give a picture for each view"))?;
    let stills = Stills::find(&spec, &settings.source)?;
    if let Some(picture) = &args.picture {
        check_png_name(picture).context("--picture").map_err(Error::Usage)?;
        inputs(&loaded, spec.local_files()).refuse(picture).map_err(Error::Usage)?;
        files::check_writable(picture)?;
    }
    let cameras = Cameras::read(settings, Some(&spec))?;
    cameras.required_by("stereod obstacles")?;
    let [left, right] = stills.read_for(&settings.engine)?;
    let rig = cameras.for_pictures([&left, &right].map(|view| (view.width(), view.height())))?;
    let geometry = rig.pairs.geometry.context("the cameras have no known geometry")?;
    let mut finder = obstacles::of_settings(settings, &geometry, None)?;
    let raw = pair(left, right);
    let (loaded, _) = ranging::with_choice(&loaded, [&raw], &rig, Spare::None)?;
    let loaded = loaded.with_confidence()?;
    let matched = match_pair(raw, &loaded, &loaded.params.of_still(), &rig)?.matched;
    let found = finder.find(&matched).context("the pair has no known geometry")?;
    if let Some(path) = &args.picture {
        obstacles::draw(path, &matched, &found)?;
    }
    if args.json {
        // Pictures tell no time of capture.
        let json = lines::to_json(&found, 0, Duration::ZERO, Duration::ZERO);
        return print(format!("{json:#}\n"));
    }
    print(told(&found))
}

fn told(found: &Obstacles) -> String {
    let zones = found.zones.iter().map(words::of_zone);
    [words::in_words(found)].into_iter().chain(zones).map(|line| line + "\n").collect()
}
