//! Files with the extension `.prior`: a network as `scripts/learned_prior/export.py` writes it.
//!
//! The first line is JSON: the layers and the constants. The parameters of each convolution follow in the order of
//! the layers: weights, `[out][in][y][x]`, one byte each; biases, little endian, four bytes each; shifts, one byte
//! each. The last four bytes are the CRC-32 of all bytes before.

use serde::Deserialize;

use super::{ACTIVATION_MAX, Convolution, Correlation, Layer, Network, Operation, PLANES, Value};

const FORMAT: &str = "stereo prior 1";
/// Sums of products stay below this, so that float32 would hold them exactly.
const SUM_MAX: i64 = 1 << 24;
/// Largest disparity in pixels of the full size: twice what 16 bits hold in 1/16 px of the half-size images.
const DISPARITY_MAX: usize = 4095;
const CHANNELS_MAX: usize = 1024;
const LAYERS_MAX: usize = 1000;

#[derive(Deserialize)]
struct Description {
    format: String,
    step: usize,
    multiple: usize,
    candidates: usize,
    reach: usize,
    table: Vec<u8>,
    confidence_threshold: i16,
    layers: Stages,
}

#[derive(Deserialize)]
struct Stages {
    view: Vec<Entry>,
    pair: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    inputs: Vec<String>,
    output: String,
    /// Divisor of the output's resolution.
    size: usize,
    #[serde(flatten)]
    kind: Kind,
}

#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
enum Kind {
    Conv(Conv),
    Correlate { channels_in: usize, candidates: usize, groups: usize, shift: u8 },
    Double,
}

#[derive(Deserialize)]
struct Conv {
    channels_in: usize,
    channels_out: usize,
    kernel: usize,
    stride: usize,
    dilation: usize,
    low: i16,
    high: i16,
    add: Option<String>,
}

/// Parts of the network that have been read so far.
struct Reader<'a> {
    /// Parameters that have not been read.
    rest: &'a [u8],
    multiple: usize,
    names: Vec<String>,
    values: Vec<Value>,
    /// Least and greatest number of each value.
    limits: Vec<(i16, i16)>,
}

/// Returns an error unless the condition holds.
fn check(condition: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if condition { Ok(()) } else { Err(otherwise()) }
}

impl Network {
    /// Reads a network and checks everything that running it relies on.
    ///
    /// # Errors
    /// Names what is wrong with the file.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let end = bytes.iter().position(|&byte| byte == b'\n');
        let (line, rest) = bytes.split_at(end.ok_or("no first line with a description")?);
        let described = serde_json::from_slice::<Description>(line);
        let described = described.map_err(|error| format!("description: {error}"))?;
        let Description { format, step, multiple, candidates, reach, .. } = described;
        check(format == FORMAT, || format!("format {format:?}, not {FORMAT:?}"))?;
        let (rest, checksum) =
            rest[1..].split_last_chunk::<4>().ok_or("no parameters and no checksum")?;
        let is_multiple =
            step > 0 && multiple.is_multiple_of(step) && (1..=1024).contains(&multiple);
        check(step % 2 == 0 && is_multiple, || format!("step {step} px, multiple {multiple} px"))?;
        let reaches = candidates.saturating_mul(step) <= DISPARITY_MAX;
        check(candidates > 0 && reaches, || format!("{candidates} candidates of {step} px"))?;
        check(reach <= 8, || format!("reach {reach}, above 8"))?;
        let table = described.table;
        check(table.first().is_some_and(|&first| first > 0), || "table without a weight".into())?;

        let mut reader = Reader {
            rest,
            multiple,
            names: vec!["planes".into()],
            values: vec![Value { channels: PLANES, size: 1 }],
            limits: vec![(0, ACTIVATION_MAX)],
        };
        let view = reader.layers(&described.layers.view, false)?;
        let features = reader.number("features")?;
        let of_view = reader.names.len();
        let pair = reader.layers(&described.layers.pair, true)?;
        let head = reader.number("head")?;
        check(features < of_view && head >= of_view, || {
            "features or head in the wrong list".into()
        })?;
        let expected = Value { channels: candidates + 1, size: step };
        let found = reader.values[head];
        check(found == expected, || format!("head: {found:?}, not {expected:?}"))?;
        check(reader.rest.is_empty(), || format!("{} bytes too many", reader.rest.len()))?;
        let damaged = crc32(&bytes[..bytes.len() - 4]) != u32::from_le_bytes(*checksum);
        check(!damaged, || "damaged: the checksum is wrong".into())?;
        let (threshold, values) = (described.confidence_threshold, reader.values);
        Ok(Self {
            step,
            multiple,
            candidates,
            reach,
            table,
            threshold,
            values,
            view,
            pair,
            features,
            head,
        })
    }
}

impl Reader<'_> {
    fn layers(&mut self, entries: &[Entry], of_pair: bool) -> Result<Vec<Layer>, String> {
        check(entries.len() <= LAYERS_MAX, || format!("{} layers", entries.len()))?;
        entries
            .iter()
            .map(|entry| {
                self.layer(entry, of_pair).map_err(|error| format!("{}: {error}", entry.output))
            })
            .collect()
    }

    fn number(&self, name: &str) -> Result<usize, String> {
        let place = self.names.iter().position(|known| known == name);
        place.ok_or_else(|| format!("no value {name:?} before it is needed"))
    }

    fn layer(&mut self, entry: &Entry, of_pair: bool) -> Result<Layer, String> {
        let inputs = entry.inputs.iter().map(|name| self.number(name));
        let inputs = inputs.collect::<Result<Vec<usize>, String>>()?;
        let input = inputs.first().map(|&first| self.values[first]).ok_or("no input")?;
        let channels: usize = inputs.iter().map(|&input| self.values[input].channels).sum();
        check(channels <= CHANNELS_MAX, || format!("{channels} input channels"))?;
        let (operation, value, limits) = match &entry.kind {
            Kind::Conv(conv) => {
                let same_size = inputs.iter().all(|&i| self.values[i].size == input.size);
                check(same_size, || "inputs of different sizes".into())?;
                check(inputs.iter().all(|&i| self.is_activation(i)), || "signed inputs".into())?;
                let convolution = self.convolution(conv, channels, entry.size)?;
                let size = input.size * convolution.stride;
                let value = Value { channels: convolution.channels_out, size };
                let limits = convolution.limits();
                (Operation::Convolution(convolution), value, limits)
            }
            &Kind::Correlate { channels_in, candidates, groups, shift } => {
                check(of_pair && entry.inputs == ["features"], || "compares no features".into())?;
                check(channels_in == channels, || {
                    format!("{channels_in} channels, not {channels}")
                })?;
                let divides = groups > 0 && channels.is_multiple_of(groups);
                check(divides, || format!("{groups} groups of {channels} channels"))?;
                check(shift < 32, || format!("shift {shift}"))?;
                let channels = groups.saturating_mul(candidates);
                let value = Value { channels, size: input.size };
                let correlation = Correlation { candidates, groups, shift };
                (Operation::Correlation(correlation), value, (0, ACTIVATION_MAX))
            }
            Kind::Double => {
                check(inputs.len() == 1 && self.is_activation(inputs[0]), || {
                    "unfit inputs".into()
                })?;
                check(input.size % 2 == 0, || "no larger size than that of the images".into())?;
                let value = Value { channels, size: input.size / 2 };
                (Operation::Double, value, (0, ACTIVATION_MAX))
            }
        };
        let named = format!("size {}, not {}", entry.size, value.size);
        check(entry.size == value.size && self.multiple.is_multiple_of(value.size), || named)?;
        let fits = (1..=CHANNELS_MAX).contains(&value.channels);
        check(fits, || format!("{} channels", value.channels))?;
        check(!self.names.contains(&entry.output), || "written twice".into())?;
        let fits = match entry.output.as_str() {
            "head" => matches!(operation, Operation::Convolution(_)),
            "features" => limits.0 >= -ACTIVATION_MAX && limits.1 <= ACTIVATION_MAX,
            _ => limits.0 >= 0 && limits.1 <= ACTIVATION_MAX,
        };
        check(fits, || format!("unfit for values {} to {}", limits.0, limits.1))?;
        self.names.push(entry.output.clone());
        self.values.push(value);
        self.limits.push(limits);
        Ok(Layer { inputs, output: self.values.len() - 1, operation })
    }

    /// Reports whether convolutions may read the value. The features of the two views differ, so they may not.
    fn is_activation(&self, value: usize) -> bool {
        self.limits[value].0 >= 0 && !["features", "head"].contains(&self.names[value].as_str())
    }

    fn convolution(
        &mut self,
        conv: &Conv,
        channels: usize,
        size: usize,
    ) -> Result<Convolution, String> {
        let &Conv { channels_in, channels_out, kernel, stride, dilation, low, high, .. } = conv;
        check(channels_in == channels, || {
            format!("{channels_in} channels, inputs have {channels}")
        })?;
        let fits = (1..=CHANNELS_MAX).contains(&channels_out);
        check(fits, || format!("{channels_out} channels"))?;
        check([1, 3].contains(&kernel), || format!("kernel {kernel}, not 1 or 3"))?;
        check([1, 2].contains(&stride), || format!("stride {stride}, not 1 or 2"))?;
        check((1..=16).contains(&dilation), || format!("dilation {dilation}, not 1 to 16"))?;
        let fits = (-4096..=0).contains(&low) && (0..=4095).contains(&high);
        check(fits, || format!("limits {low} and {high}"))?;
        let add = conv.add.as_ref().map(|name| self.number(name)).transpose()?;
        if let Some(add) = add {
            check(self.is_activation(add), || "adds signed values".into())?;
            let shape = Value { channels: channels_out, size };
            check(self.values[add] == shape, || "adds a value of another shape".into())?;
        }
        let per_channel = channels_in * kernel * kernel;
        let weights = self.take(channels_out * per_channel)?.iter().map(|&byte| byte as i8);
        let weights: Vec<i8> = weights.collect();
        let (biases, _) = self.take(4 * channels_out)?.as_chunks::<4>();
        let biases: Vec<i32> = biases.iter().map(|&bytes| i32::from_le_bytes(bytes)).collect();
        let shifts = self.take(channels_out)?.to_vec();
        check(!weights.contains(&i8::MIN), || "a weight of -128".into())?;
        check(shifts.iter().all(|&shift| shift < 32), || "a shift above 31".into())?;
        for (weights, &bias) in weights.chunks(per_channel).zip(&biases) {
            let total: i64 = weights.iter().map(|&weight| i64::from(weight).abs()).sum();
            let largest = i64::from(ACTIVATION_MAX) * total + i64::from(bias).abs();
            check(largest < SUM_MAX, || format!("sums up to {largest}"))?;
        }
        Ok(Convolution {
            channels_in,
            channels_out,
            kernel,
            stride,
            dilation,
            low,
            high,
            add,
            weights,
            biases,
            shifts,
        })
    }

    fn take(&mut self, count: usize) -> Result<&[u8], String> {
        let ends = || format!("the file ends {} bytes early", count - self.rest.len());
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(ends)?;
        self.rest = rest;
        Ok(taken)
    }
}

/// The CRC-32 of zlib and PNG.
pub fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg());
    !bytes.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step))
}
