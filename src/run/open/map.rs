//! The map of a run: fuses its pairs, writes the file at the end, and hands out the ground plan.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::run::live::finding::NewestGrid;
use crate::run::live::opened::Opened;
use crate::settings::Loaded;
use stereod_core::frame::Matched;
use stereod_io::sink::Sink;
use stereod_map::{Map, Rules, files, usual_voxel_m};

/// Time between two ground plans.
const PERIOD: Duration = Duration::from_secs(1);

/// Adds what makes the map, if somebody wants it.
pub fn add(sinks: &mut Vec<Box<dyn Sink>>, loaded: &Loaded, run: &Opened) -> Result<()> {
    let settings = &loaded.settings;
    if !settings.makes_map() {
        return Ok(());
    }
    let geometry = run.rig.pairs.geometry.context("a map needs known cameras")?;
    let (mount, obstacles) = (settings.mount.mount(), settings.obstacles.clone());
    let mapping = settings.map.clone();
    let begin = Box::new(move |frame: &Matched| {
        let voxel_m = mapping.voxel_m.or_else(|| usual_voxel_m(frame, mapping.confidence))?;
        let rules = mapping.rules(voxel_m, mount, &obstacles, &geometry);
        tracing::info!(
            "map: voxels of {voxel_m} m, up to {:.1} m away (map.voxel_m, map.far_m)",
            rules.far_m
        );
        Some(Map::new(rules))
    });
    let file = settings.output.map();
    let grid = settings.shows_grid().then(|| run.finding.grid.clone());
    let tally = Tally::default();
    sinks.push(Box::new(MapSink {
        map: None,
        begin,
        file,
        grid,
        part: None,
        planned: None,
        tally,
    }));
    Ok(())
}

/// Begins the map with the first pair that says how fine it can be.
type Begin = Box<dyn Fn(&Matched) -> Option<Map> + Send>;

/// Fuses pairs whose pose is known.
struct MapSink {
    map: Option<Map>,
    begin: Begin,
    file: Option<PathBuf>,
    grid: Option<NewestGrid>,
    /// Part of the path of the pair before.
    part: Option<u32>,
    /// Time of the last ground plan, and when the next one may be made.
    planned: Option<(Duration, Instant)>,
    tally: Tally,
}

#[derive(Default)]
struct Tally {
    fused: u64,
    lost: u64,
    /// Pairs before the map, with too few measured pixels.
    poor: u64,
    given_up: u64,
}

impl Sink for MapSink {
    fn name(&self) -> &str {
        "map"
    }

    fn counted_as(&self) -> Option<&'static str> {
        Some("map")
    }

    fn consume(&mut self, frame: &Arc<Matched>) -> Result<()> {
        let Some((pose, part)) = frame.odometry.as_ref().and_then(|odometry| odometry.known())
        else {
            self.tally.lost += 1;
            return Ok(());
        };
        if self.map.is_none() {
            self.map = (self.begin)(frame);
        }
        let Some(map) = &mut self.map else {
            self.tally.poor += 1;
            return Ok(());
        };
        if self.part.replace(part).is_some_and(|before| before != part) {
            tracing::warn!(
                "the path is broken: what the map shows from pair {} on has its own place (part {})",
                frame.pair.sequence,
                part + 1
            );
            map.begin_part();
        }
        let added = map.add(frame, &pose).map_err(|reason| anyhow::anyhow!(reason.in_words()))?;
        self.tally.fused += 1;
        let given_up = added.given_up.map(u64::from).iter().sum::<u64>();
        if given_up > 0 && self.tally.given_up == 0 {
            tracing::warn!(
                "the map is full: its least certain voxels are given up; see map.voxels and map.voxel_m"
            );
        }
        self.tally.given_up += given_up;
        self.plan(frame.pair.timestamp)
    }

    fn finish(&mut self) -> Result<()> {
        let Some(file) = self.file.take() else { return Ok(()) };
        let map = self.map.take().unwrap_or_else(|| Map::new(Rules::default()));
        let points =
            files::write(&file, &map).with_context(|| format!("--map {}", file.display()))?;
        let Tally { fused, lost, poor, given_up } = self.tally;
        let told = format!(
            "map {}: {points} points of {fused} pairs; {lost} pairs without a pose, {poor} with too little depth, \
             {given_up} voxels given up",
            file.display()
        );
        if points == 0 {
            tracing::warn!("{told}")
        } else {
            tracing::info!("{told}")
        }
        Ok(())
    }
}

impl MapSink {
    /// Hands out the ground plan, if it is time.
    fn plan(&mut self, now: Duration) -> Result<()> {
        let (Some(newest), Some(map)) = (&self.grid, &self.map) else { return Ok(()) };
        let begun = Instant::now();
        let is_early =
            |(last, next): (Duration, Instant)| now.abs_diff(last) < PERIOD || begun < next;
        if self.planned.is_some_and(is_early) {
            return Ok(());
        }
        newest.put(map.grid()?);
        // A large plan must not take the time of the map.
        self.planned = Some((now, begun + 10 * begun.elapsed()));
        Ok(())
    }
}
