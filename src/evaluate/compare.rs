//! `--compare`: the settings that are evaluated one after the other.

use std::collections::HashSet;

use anyhow::{Result, bail};

use stereod_core::settings::parameter;

const OPENCV: &str = "opencv";

/// Name of the settings that nothing is compared with but OpenCV.
const OURS: &str = "stereod";

const COMBINATIONS_MAX: usize = 1000;

/// A combination of settings: assignments as `--set` takes them, and their text for the report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Variant {
    pub name: String,
    pub assignments: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Settings of stereod, at least one.
    pub variants: Vec<Variant>,
    pub opencv: bool,
}

/// Parses `KEY=VALUE,VALUE; KEY=VALUE; opencv` into all combinations, the last key varying fastest.
pub fn comparison(text: &str) -> Result<Comparison> {
    let mut variants = vec![Variant::default()];
    let mut keys = HashSet::new();
    let mut opencv = false;
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
        let (section, row) = parameter(&key.replace('-', "_"))
            .map_err(|error| anyhow::anyhow!("--compare: {error}"))?;
        if !keys.insert(row.key) {
            bail!(
                "--compare: `{key}` occurs twice; give all its values at once, such as `paths=4,8`"
            );
        }
        let values: Vec<&str> = values.split(',').map(str::trim).collect();
        if values.contains(&"") {
            bail!("--compare: a value of `{key}` is missing");
        }
        let with = |variant: &Variant, value: &str| {
            let space = if variant.name.is_empty() { "" } else { " " };
            let mut assignments = variant.assignments.clone();
            assignments.push(format!("{section}.{}={value}", row.key));
            Variant { name: format!("{}{space}{key}={value}", variant.name), assignments }
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
        (true, true) => variants[0].name = OURS.to_owned(),
        (false, _) => {}
    }
    Ok(Comparison { variants, opencv })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_comes_once() {
        let Comparison { variants, opencv } =
            comparison("cost=census,ad; opencv; min-confidence=0,80;").unwrap();
        assert!(opencv && !comparison("paths=4").unwrap().opencv);
        let alone = comparison("opencv").unwrap();
        let ours = Variant { name: "stereod".into(), assignments: Vec::new() };
        assert_eq!(alone, Comparison { variants: vec![ours], opencv: true });
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
    fn mistakes_are_named() {
        let wrong = |text: &str| comparison(text).unwrap_err().to_string();
        assert!(wrong("paths").contains("KEY=VALUE"));
        assert!(wrong(" ; ").contains("nothing to compare"));
        assert!(wrong("path=4").contains("did you mean `paths`?"), "{}", wrong("path=4"));
        assert!(wrong("paths=4,,8").contains("is missing"));
        assert!(wrong("paths=4; paths=8").contains("twice"));
        let numbers = (0..40).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        assert!(wrong(&format!("p1={numbers};p2={numbers}")).contains("more than 1000"));
    }
}
