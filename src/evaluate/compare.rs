//! `--compare`: the settings that are evaluated one after the other.

use std::collections::HashSet;
use std::str::FromStr;

use anyhow::{Result, bail};

use stereod_core::settings::parameter;

const OPENCV: &str = "opencv";
const NOISE: &str = "noise";
const SEED: &str = "seed";

/// Name of the settings that nothing is compared with but OpenCV.
const OURS: &str = "stereod";

const COMBINATIONS_MAX: usize = 1000;

/// A combination of settings: assignments as `--set` takes them, and their text for the report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Variant {
    pub name: String,
    pub assignments: Vec<String>,
    /// Standard deviation of the noise, if the comparison varies it.
    pub noise: Option<f64>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Settings of stereod, at least one.
    pub variants: Vec<Variant>,
    pub opencv: bool,
    /// Standard deviations of noise; none unless the comparison varies it.
    pub noises: Vec<f64>,
    /// Seeds of noise, over which the figures are averaged; none unless given.
    pub seeds: Vec<u64>,
}

/// Parses `KEY=VALUE,VALUE; KEY=VALUE; opencv` into all combinations, the last key varying fastest. `noise` and `seed`
/// are no settings, but keys as well.
pub fn comparison(text: &str) -> Result<Comparison> {
    let mut variants = vec![Variant::default()];
    let mut keys = HashSet::new();
    let (mut opencv, mut noises, mut seeds) = (false, Vec::new(), Vec::new());
    for axis in text.split(';').map(str::trim).filter(|axis| !axis.is_empty()) {
        if axis == OPENCV {
            opencv = true;
            continue;
        }
        let Some((key, values)) = axis.split_once('=') else {
            bail!(
                "--compare: `{axis}` is neither KEY=VALUE,VALUE, such as `paths=4,8`, nor `{OPENCV}`"
            );
        };
        let key = key.trim();
        let setting = match key {
            NOISE | SEED => None,
            _ => Some(
                parameter(&key.replace('-', "_"))
                    .map_err(|error| anyhow::anyhow!("--compare: {error}"))?,
            ),
        };
        if !keys.insert(setting.map_or(key, |(_, row)| row.key)) {
            bail!(
                "--compare: `{key}` occurs twice; give all its values at once, such as `paths=4,8`"
            );
        }
        let values: Vec<&str> = values.split(',').map(str::trim).collect();
        if let Some(next) = values.iter().find(|value| value.contains('=') || **value == OPENCV) {
            bail!(
                "--compare: `{next}` stands among the values of `{key}`; put `;` between keys, as in `paths=4,8; p1=7,10`"
            );
        }
        if values.contains(&"") {
            bail!("--compare: a value of `{key}` is missing");
        }
        if key == SEED {
            seeds = numbers(key, &values, |_: &u64| true)?;
            continue;
        }
        if key == NOISE {
            noises = numbers(key, &values, |sigma: &f64| (0.0..=255.0).contains(sigma))?;
        }
        let with = |variant: &Variant, value: &str| {
            let space = if variant.name.is_empty() { "" } else { " " };
            let mut with = variant.clone();
            with.name = format!("{}{space}{key}={value}", variant.name);
            match setting {
                Some((section, row)) => {
                    with.assignments.push(format!("{section}.{}={value}", row.key))
                }
                None => with.noise = value.parse().ok(),
            }
            with
        };
        variants = variants
            .iter()
            .flat_map(|variant| values.iter().map(move |value| with(variant, value)))
            .collect();
        if variants.len() > COMBINATIONS_MAX {
            bail!(
                "--compare: more than {COMBINATIONS_MAX} combinations; compare fewer values at once"
            );
        }
    }
    match (keys.is_empty(), opencv) {
        (true, false) => {
            bail!("--compare: nothing to compare; give KEY=VALUE,VALUE, such as `paths=4,8`")
        }
        _ if variants[0].name.is_empty() => variants[0].name = OURS.to_owned(),
        _ => {}
    }
    Ok(Comparison { variants, opencv, noises, seeds })
}

/// Reads the values of a key, which differ.
fn numbers<T: FromStr + PartialEq>(
    key: &str,
    values: &[&str],
    fits: fn(&T) -> bool,
) -> Result<Vec<T>> {
    let mut numbers = Vec::new();
    for value in values {
        match value.parse() {
            Ok(number) if fits(&number) && !numbers.contains(&number) => numbers.push(number),
            Ok(number) if fits(&number) => bail!("--compare: `{key}={value}` occurs twice"),
            _ => bail!(
                "--compare: `{key}={value}`: expected {}",
                if key == SEED {
                    "a whole number"
                } else {
                    "a number of grey levels from 0 to 255"
                }
            ),
        }
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_comes_once() {
        let Comparison { variants, opencv, .. } =
            comparison("cost=census,ad; opencv; min-confidence=0,80;").unwrap();
        assert!(opencv && !comparison("paths=4").unwrap().opencv);
        let alone = comparison("opencv").unwrap();
        let ours = Variant { name: "stereod".into(), ..Variant::default() };
        let (noises, seeds) = (Vec::new(), Vec::new());
        assert_eq!(alone, Comparison { variants: vec![ours], opencv: true, noises, seeds });
        let names: Vec<&str> = variants.iter().map(|variant| &*variant.name).collect();
        assert_eq!(
            names,
            [
                "cost=census min-confidence=0",
                "cost=census min-confidence=80",
                "cost=ad min-confidence=0",
                "cost=ad min-confidence=80",
            ]
        );
        assert_eq!(variants[1].assignments, ["matching.cost=census", "matching.min_confidence=80"]);
    }

    #[test]
    fn noise_and_seeds_are_keys() {
        let found = comparison("noise=0,2.5; seed=3,1; paths=4,8").unwrap();
        assert_eq!((&found.noises[..], &found.seeds[..]), (&[0.0, 2.5][..], &[3, 1][..]));
        let names: Vec<&str> = found.variants.iter().map(|variant| &*variant.name).collect();
        let expected =
            ["noise=0 paths=4", "noise=0 paths=8", "noise=2.5 paths=4", "noise=2.5 paths=8"];
        assert_eq!(names, expected);
        assert_eq!(found.variants[3].noise, Some(2.5));
        assert_eq!(found.variants[3].assignments, ["matching.paths=8"]);
        let seeds = comparison("seed=1,2").unwrap();
        assert_eq!((&*seeds.variants[0].name, seeds.variants.len()), ("stereod", 1));
        let wrong = |text: &str| comparison(text).unwrap_err().to_string();
        assert!(wrong("seed=1,1").contains("`seed=1` occurs twice"));
        assert!(wrong("seed=1,-2").contains("`seed=-2`: expected a whole number"));
        assert!(wrong("noise=300").contains("`noise=300`: expected a number of grey levels"));
        assert!(wrong("noise=NaN").contains("`noise=NaN`"));
    }

    #[test]
    fn mistakes_are_named() {
        let wrong = |text: &str| comparison(text).unwrap_err().to_string();
        assert!(wrong("paths").contains("KEY=VALUE"));
        assert!(wrong(" ; ").contains("nothing to compare"));
        assert!(wrong("path=4").contains("did you mean `paths`?"), "{}", wrong("path=4"));
        assert!(wrong("paths=4,,8").contains("is missing"));
        for text in ["cost=census,paths=4", "paths=4,8,opencv", "paths=4 cost=ad", "seed=1,noise=2"]
        {
            assert!(wrong(text).contains("put `;` between keys"), "{text}");
        }
        assert!(wrong("paths=4; paths=8").contains("twice"));
        let numbers = (0..40).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        assert!(wrong(&format!("p1={numbers};p2={numbers}")).contains("more than 1000"));
    }
}
