//! Defaults that depend on the cost, on the paths or on the engine.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::super::row::Kind;
use super::super::schema::{self, Schema};
use super::{Origin, dotted};
use crate::matching::cost::COSTS;

/// Resolves the values of a table: every `auto` that depends on the cost or the paths becomes its number,
/// whole numbers become fractions where needed, and dates become texts. Returns the name of the cost.
pub(super) fn resolve<S: Schema>(values: &mut Table) -> &'static str {
    let name = values["matching"]["cost"].as_str();
    let cost = COSTS.iter().find(|cost| Some(cost.name) == name).expect("the cost was checked");
    let of_cost = &cost.defaults;
    let without_paths = match &values["matching"]["paths"] {
        Value::String(_) => of_cost.paths == 0,
        paths => paths.as_integer() == Some(0),
    };
    for (section, row) in schema::rows::<S>() {
        let value = &mut values[section][row.key];
        *value = match (row.kind, row.by_cost, &*value) {
            (_, Some(_), Value::String(_)) if without_paths && row.off_without_paths => 0.into(),
            (Kind::Real(_), Some(by_cost), Value::String(_)) => by_cost(of_cost).into(),
            (_, Some(by_cost), Value::String(_)) => (by_cost(of_cost) as i64).into(),
            (Kind::Real(_), _, Value::Integer(whole)) => (*whole as f64).into(),
            (_, _, Value::Datetime(date)) => date.to_string().into(),
            _ => continue,
        };
    }
    cost.name
}

/// Puts defaults that suit the engine in place of those that it cannot match with.
pub(super) fn follow_engine(
    values: &mut Table,
    origins: &mut BTreeMap<String, Origin>,
    cost: &str,
) {
    if cost == "ad" && values["engine"]["kind"].as_str() == Some("wgpu") {
        origins.entry(dotted("matching", "ad_window")).or_insert_with(|| {
            values["matching"]["ad_window"] = 1.into();
            Origin::For("wgpu")
        });
    }
}
