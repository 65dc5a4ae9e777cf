//! `stereod schema`: the JSON Schema of the statistics.

use schemars::generate::SchemaSettings;

use super::statistics::Statistics;
use crate::commands::{Error, print};

/// Runs the command.
pub fn schema() -> Result<(), Error> {
    let schema =
        SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Statistics>();
    print(format!("{:#}\n", schema.as_value()))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const PAGE: &str = "docs/statistics.md";

    /// Appends a row for each key below `schema`.
    fn rows(path: &str, schema: &Value, table: &mut Vec<String>) {
        let Some(properties) = schema["properties"].as_object() else { return };
        for (key, value) in properties {
            // The text above the table says that both views have the same keys.
            if key == "right" && properties.contains_key("left") {
                continue;
            }
            // A value that may be absent is one of itself and null.
            let kind = value["anyOf"].as_array().map_or(value, |kinds| &kinds[0]);
            let is_list_of_objects = kind["items"]["properties"].is_object();
            let path = format!("{path}{key}{}", if is_list_of_objects { "[]" } else { "" });
            let meaning = value["description"].as_str().expect("every key has a description");
            let unit = match &kind["type"] {
                Value::String(name) => name.as_str(),
                Value::Array(names) => names[0].as_str().expect("a name"),
                _ if kind["oneOf"].is_array() => "string",
                _ => "object",
            };
            let meaning = meaning.replace('\n', " ").replace("[`", "`").replace("`]", "`");
            table.push(format!("| `{path}` | {unit} | {meaning} |"));
            let inner = if is_list_of_objects { &kind["items"] } else { kind };
            rows(&format!("{path}."), inner, table);
        }
    }

    #[test]
    fn the_page_lists_every_key() {
        let settings = SchemaSettings::draft2020_12().with(|s| s.inline_subschemas = true);
        let schema = settings.into_generator().into_root_schema_for::<Statistics>();
        let mut table =
            vec!["| key | type | meaning |".to_owned(), "| --- | --- | --- |".to_owned()];
        rows("", schema.as_value(), &mut table);
        let table = table.join("\n");
        let page = std::fs::read_to_string(PAGE).unwrap();
        let begin = page.find("| key |").expect("a table");
        let end = page[begin..].find("\n\n").map_or(page.trim_end().len(), |n| begin + n);
        if std::env::var_os("STEREOD_WRITE_DOCS").is_some() {
            let written = format!("{}{table}{}", &page[..begin], &page[end..]);
            std::fs::write(PAGE, written).unwrap();
        } else {
            assert_eq!(
                page[begin..end],
                table,
                "write {PAGE} anew: STEREOD_WRITE_DOCS=1 cargo test statistics"
            );
        }
    }
}
