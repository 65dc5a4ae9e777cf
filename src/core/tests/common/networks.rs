//! Random networks, for tests of the definition and of the engines.

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use stereod_core::matching::learned::Network;
use stereod_core::matching::learned::file::crc32;

/// Shape of a random network: channels of its values from the first convolution to the last but one, and more.
#[derive(Clone, Debug)]
pub struct Shape {
    pub channels: [usize; 5],
    pub candidates: usize,
    pub groups: usize,
    pub kernel: usize,
    pub dilations: [usize; 2],
}

pub fn shapes() -> impl Strategy<Value = Shape> {
    let channels = [1..20usize, 1..40, 1..20, 1..100, 1..70];
    let dilation = || prop::sample::select(vec![1, 2, 4]);
    let kernel = prop::sample::select(vec![1, 3]);
    let rest = (1..30usize, 1..5usize, kernel, [dilation(), dilation()]);
    (channels, rest).prop_map(|(channels, (candidates, groups, kernel, dilations))| Shape {
        channels,
        candidates,
        groups,
        kernel,
        dilations,
    })
}

/// Deterministic random numbers, the same on every machine.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, limit: u64) -> i64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) % limit) as i64
    }
}

/// The description of a network of this shape: cells of 4 x 4 px, one level of half that resolution.
fn description(shape: &Shape) -> Json {
    let &Shape { channels: [a, b, c, d, e], candidates, groups, kernel, dilations: [far, farther] } =
        shape;
    let conv = |output: &str,
                inputs: Json,
                channels: [usize; 2],
                size,
                [kernel, stride, dilation]: [usize; 3]| {
        let limits = match output {
            "head" => [-2047, 2047],
            "trunk" | "up" | "features" => [-127, 127],
            _ => [0, 127],
        };
        let add = match output {
            "trunk" => Some("stem_1"),
            "up" => Some("join"),
            _ => None,
        };
        json!({
            "op": "conv", "inputs": inputs, "output": output, "channels_in": channels[0],
            "channels_out": channels[1], "size": size, "kernel": kernel, "stride": stride,
            "dilation": dilation, "low": limits[0], "high": limits[1], "add": add,
        })
    };
    let features = groups * c;
    let table: Vec<u8> = (0..=255u8).rev().collect();
    json!({
        "format": "stereo prior 1", "config": "random", "step": 4, "multiple": 8, "candidates": candidates,
        "reach": 2, "table": table, "logit_unit": 16, "confidence_threshold": 0,
        "layers": {
            "view": [
                conv("stem_0", json!(["planes"]), [4, a], 2, [3, 2, 1]),
                conv("stem_1", json!(["stem_0"]), [a, b], 4, [kernel, 2, far]),
                conv("inner", json!(["stem_1"]), [b, b], 4, [3, 1, far]),
                conv("trunk", json!(["inner"]), [b, b], 4, [kernel, 1, 1]),
                conv("features", json!(["trunk"]), [b, features], 4, [1, 1, 1]),
            ],
            "pair": [
                {"op": "correlate", "inputs": ["features"], "output": "costs", "candidates": candidates,
                 "groups": groups, "shift": 8, "channels_in": features, "size": 4},
                conv("merge", json!(["costs", "trunk"]), [groups * candidates + b, d], 4, [1, 1, 1]),
                conv("reduce", json!(["merge"]), [d, e], 8, [3, 2, farther]),
                {"op": "double", "inputs": ["reduce"], "output": "double", "size": 4},
                conv("join", json!(["double", "merge"]), [e + d, d], 4, [kernel, 1, farther]),
                conv("up", json!(["join"]), [d, d], 4, [3, 1, 1]),
                conv("head", json!(["up"]), [d, candidates + 1], 4, [3, 1, 1]),
            ],
        },
    })
}

/// The file of a description and these parameters.
pub fn file(description: &str, parameters: &[u8]) -> Vec<u8> {
    let mut bytes = [description.as_bytes(), b"\n", parameters].concat();
    bytes.extend(crc32(&bytes).to_le_bytes());
    bytes
}

/// Description and random parameters of a network; shifts keep most activations within their limits.
pub fn random_parts(shape: &Shape, dice: &mut Dice) -> (String, Vec<u8>) {
    let (description, mut parameters) = (description(shape), Vec::new());
    for layer in
        ["view", "pair"].iter().flat_map(|stage| description["layers"][stage].as_array().unwrap())
    {
        let Some(out) = layer["channels_out"].as_u64() else { continue };
        let per_channel =
            layer["channels_in"].as_u64().unwrap() * layer["kernel"].as_u64().unwrap().pow(2);
        parameters.extend((0..out * per_channel).map(|_| (dice.below(255) - 127) as i8 as u8));
        let biases = (0..out).flat_map(|_| (dice.below(40000) as i32 - 10000).to_le_bytes());
        parameters.extend(biases.collect::<Vec<u8>>());
        let shift = (55.0 * (per_channel as f64).sqrt()).log2() as i64;
        parameters.extend((0..out).map(|_| (shift - 1 + dice.below(3)) as u8));
    }
    (description.to_string(), parameters)
}

pub fn random_network(shape: &Shape, dice: &mut Dice) -> Network {
    let (description, parameters) = random_parts(shape, dice);
    Network::read(&file(&description, &parameters)).unwrap()
}
