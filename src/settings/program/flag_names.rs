//! Names of flags in texts that name parameters in backticks.

use crate::settings::{row, rows};
use stereod_core::settings::row::{ENGINE, MATCHING};

/// Replaces each quoted parameter of a text by its flag: "`p1`" becomes "--p1", and
/// "`engine=cpu`" becomes "--engine cpu". Parameters without a flag become `--set` and their key.
pub fn with_flags(text: &str) -> String {
    replace_quoted(text, spell)
}

/// Replaces the parts of a text in backticks, together with these, unless `other` returns `None`.
pub fn replace_quoted(text: &str, other: impl Fn(&str) -> Option<String>) -> String {
    let mut named = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('`') {
        let Some((quoted, after)) = after.split_once('`') else { break };
        named += before;
        match other(quoted) {
            Some(other) => named += &other,
            None => named += &format!("`{quoted}`"),
        }
        rest = after;
    }
    named + rest
}

/// Returns the spelling of a parameter on the command line; `None` if there is no such parameter.
fn spell(quoted: &str) -> Option<String> {
    let (name, value) = match quoted.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (quoted, None),
    };
    let flags = rows().filter_map(|(_, row)| row.flag);
    let mut flags = flags.filter(|flag| [MATCHING, ENGINE].contains(&flag.group));
    let dashed = format!("--{}", name.replace('_', "-"));
    if flags.any(|flag| flag.name == dashed) {
        return Some(value.map_or(dashed.clone(), |value| format!("{dashed} {value}")));
    }
    let section =
        ["matching", "engine"].into_iter().find(|section| row(section, name).is_some())?;
    let value = value?;
    Some(format!("--set {section}.{name}={value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_become_flags_and_the_rest_stays() {
        for (text, shown) in [
            ("lower `p2_min` or use `engine=cpu`", "lower --p2-min or use --engine cpu"),
            ("`in_flight=1` needs less", "--set engine.in_flight=1 needs less"),
            ("the cost `ad`, `p1`", "the cost `ad`, --p1"),
            ("`stereod devices` lists them", "`stereod devices` lists them"),
            ("no quotes", "no quotes"),
            ("an odd ` and p1", "an odd ` and p1"),
        ] {
            assert_eq!(with_flags(text), shown);
        }
    }
}
