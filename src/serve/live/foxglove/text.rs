//! Messages in text.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::viewer::{Knob, Tuned, Wish};
use stereod_io::sink::messages::{TOPICS, definition, full_name};

/// Number of the diagnostics' channel; those before are the topics of pairs.
pub(super) const DIAGNOSTICS: usize = TOPICS.len();

const DIAGNOSTIC_ARRAY: &str = "diagnostic_msgs/DiagnosticArray";

#[derive(Clone, Copy)]
pub(super) enum Level {
    Warning = 1,
    Error = 2,
}

#[derive(Debug, Deserialize)]
pub(super) struct Parameter {
    name: String,
    value: Value,
}

impl Parameter {
    pub(super) fn wish(self) -> Wish {
        let text = match self.value {
            Value::String(text) => text,
            // Some clients have no whole numbers.
            Value::Number(number) => {
                number.as_f64().map_or_else(|| number.to_string(), |number| number.to_string())
            }
            value => value.to_string(),
        };
        (self.name, text)
    }
}

#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "camelCase")]
pub(super) enum Request {
    Subscribe {
        subscriptions: Vec<Subscription>,
    },
    Unsubscribe {
        #[serde(rename = "subscriptionIds")]
        subscriptions: Vec<u32>,
    },
    GetParameters {
        #[serde(rename = "parameterNames", default)]
        names: Vec<String>,
        id: Option<String>,
    },
    SetParameters {
        parameters: Vec<Parameter>,
        id: Option<String>,
    },
    SubscribeParameterUpdates {},
    UnsubscribeParameterUpdates {},
}

#[derive(Debug, Deserialize)]
pub(super) struct Subscription {
    pub(super) id: u32,
    /// Number of the channel, from 1.
    #[serde(rename = "channelId")]
    pub(super) channel: usize,
}

/// `session` tells viewers whether a server that is back is the same run.
pub(super) fn server_info(source: &str, may_change: bool, session: &str) -> String {
    let capabilities: &[&str] =
        if may_change { &["parameters", "parametersSubscribe"] } else { &[] };
    json!({
        "op": "serverInfo",
        "name": format!("stereod {}: {source}", env!("CARGO_PKG_VERSION")),
        "capabilities": capabilities,
        "sessionId": session,
        "supportedEncodings": [],
        "metadata": {},
    })
    .to_string()
}

pub(super) fn advertise(channels: &[usize]) -> String {
    let channel = |&number: &usize| {
        let (topic, schema) = match number {
            DIAGNOSTICS => ("/diagnostics", DIAGNOSTIC_ARRAY),
            _ => (TOPICS[number].path, TOPICS[number].schema),
        };
        json!({
            "id": number + 1,
            "topic": topic,
            "encoding": "cdr",
            "schemaName": full_name(schema),
            "schemaEncoding": "ros2msg",
            "schema": definition(schema),
        })
    };
    let channels: Vec<Value> = channels.iter().map(channel).collect();
    json!({ "op": "advertise", "channels": channels }).to_string()
}

pub(super) fn status(level: Level, text: &str) -> String {
    json!({ "op": "status", "level": level as u8, "message": text }).to_string()
}

/// Returns the values of the named parameters, or of all; `id` is the client's name of its request.
pub(super) fn parameters(tuned: &Tuned, names: &[String], id: Option<&str>) -> String {
    let wanted = |knob: &&Knob| names.is_empty() || names.contains(&knob.path());
    let values: Vec<Value> = tuned
        .knobs
        .iter()
        .filter(wanted)
        .map(|knob| json!({ "name": knob.path(), "value": knob.typed() }))
        .collect();
    let mut message = json!({ "op": "parameterValues", "parameters": values });
    if let Some(id) = id.filter(|id| !id.is_empty()) {
        message["id"] = json!(id);
    }
    message.to_string()
}
