//! Chooses format, size and rate from the offers of the cameras. Pure: lists in, choice out.

use super::modes::{Format, Mode, Rate};

/// Request to the cameras; `None` leaves a value to the choice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CameraRequest {
    /// Width and height in pixels of the camera's frame.
    pub size: Option<(u32, u32)>,
    /// Frames per second.
    pub rate: Option<f64>,
    pub format: Option<Format>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UsbBus {
    /// The kernel's number of the bus.
    pub number: u32,
    /// Speed in Mbit/s: 480 is USB 2.
    pub megabits: f64,
}

impl UsbBus {
    /// Returns the approximate capacity for frames in bytes a second. Periodic transfers may take
    /// 80 % of a microframe (Universal Serial Bus Specification 2.0, section 5.6.4); from 5 Gbit/s
    /// on, 8b/10b coding takes a fifth.
    fn capacity(self) -> f64 {
        let bits = 0.8 * self.megabits * 1e6;
        if self.megabits < 5000.0 { bits / 8.0 } else { bits / 10.0 }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Offer<'a> {
    pub name: &'a str,
    pub modes: &'a [Mode],
    pub bus: Option<UsbBus>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    pub format: Format,
    pub width: u32,
    pub height: u32,
    pub rate: Rate,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    pub picks: Vec<Pick>,
    /// Reason for the log; empty if there was no choice.
    pub why: String,
    pub warning: Option<String>,
}

/// Lowest rate that the choice accepts without need.
const ENOUGH: f64 = 25.0;

/// Preferred rate if several suffice: faster ones only cost light and computation.
const USUAL: f64 = 30.0;

/// Chooses one size and rate for all cameras and a format for each.
///
/// Without a request it takes the largest size up to `limit` pixels that all offer with at least 25
/// frames per second. It prefers uncompressed formats unless the shared USB bus cannot carry them,
/// and the same format for all.
pub fn choose(
    cameras: &[Offer],
    request: &CameraRequest,
    limit: (u32, u32),
) -> Result<Choice, String> {
    let sizes = sizes(cameras, request, limit);
    let floors: &[f64] = if request.rate.is_some() { &[0.0] } else { &[ENOUGH, 0.0] };
    for &floor in floors {
        for &size in &sizes {
            if let Some(choice) = at_size(cameras, request, size, floor) {
                return Ok(choice.explained(cameras.len(), request, limit, floor));
            }
        }
    }
    Err(refusal(cameras, request))
}

fn sizes(cameras: &[Offer], request: &CameraRequest, limit: (u32, u32)) -> Vec<(u32, u32)> {
    let has = |camera: &Offer, size| camera.modes.iter().any(|m| m.size() == size && usable(m));
    let first = cameras.first().map_or(&[][..], |camera| camera.modes);
    let mut sizes: Vec<_> = first
        .iter()
        .map(Mode::size)
        .filter(|&size| request.size.is_none_or(|wanted| wanted == size))
        .filter(|&size| cameras.iter().all(|camera| has(camera, size)))
        .collect();
    let area = |(width, height): (u32, u32)| u64::from(width) * u64::from(height);
    sizes.sort_by_key(|&size| std::cmp::Reverse((area(size), size)));
    sizes.dedup();
    // Sizes beyond the limit come last, the smallest of them first.
    let (mut within, mut beyond): (Vec<_>, Vec<_>) =
        sizes.into_iter().partition(|size| size.0 <= limit.0 && size.1 <= limit.1);
    beyond.reverse();
    within.append(&mut beyond);
    within
}

fn usable(mode: &Mode) -> bool {
    mode.format().is_some() && !mode.rates.is_empty()
}

/// Returns the formats for all cameras, preferred ones first: equal formats before different ones.
fn formats(count: usize, request: &CameraRequest) -> Vec<Vec<Format>> {
    if let Some(format) = request.format {
        return vec![vec![format; count]];
    }
    let same = Format::ALL.map(|format| vec![format; count]);
    let pairs = Format::ALL.into_iter().flat_map(|a| Format::ALL.map(|b| [a, b]));
    let mut mixed: Vec<_> =
        pairs.filter(|[a, b]| count == 2 && a != b).map(|pair| pair.to_vec()).collect();
    mixed.sort_by_key(|pair| pair.iter().copied().max());
    same.into_iter().chain(mixed).collect()
}

/// Returns the best choice at one size with at least `floor` frames per second.
fn at_size(
    cameras: &[Offer],
    request: &CameraRequest,
    size: (u32, u32),
    floor: f64,
) -> Option<Choice> {
    let mut too_much = None;
    let mut best: Option<(f64, Choice)> = None;
    for formats in formats(cameras.len(), request) {
        for rates in common_rates(cameras, &formats, size) {
            let rate = rates[0].value();
            if rate < 0.99 * floor || request.rate.is_some_and(|wanted| !rates[0].is_about(wanted))
            {
                continue;
            }
            let picks: Vec<Pick> = formats
                .iter()
                .zip(&rates)
                .map(|(&format, &rate)| Pick { format, width: size.0, height: size.1, rate })
                .collect();
            let overload = overload(cameras, &picks);
            if overload.is_some() && request.format.is_none() {
                too_much = too_much.or(overload);
                continue;
            }
            // Enough frames: nearest to the preferred rate. Too few: the fastest.
            let badness = if floor > 0.0 { (rate - USUAL).abs() } else { -rate };
            let warning = overload.map(|text| format!("{text}; frames may be lost"));
            if best.as_ref().is_none_or(|(least, _)| badness < *least) {
                best = Some((badness, Choice { picks, why: String::new(), warning }));
            }
        }
        // The next format is worse, but may be faster if no rate suffices.
        if best.is_some() && (floor > 0.0 || request.rate.is_some()) {
            break;
        }
    }
    let mut choice = best?.1;
    if let Some(text) = too_much
        && choice.picks.iter().any(|pick| pick.format.bytes_per_pixel().is_none())
    {
        let format = choice.picks[0].format;
        choice.warning = Some(format!(
            "{text}; {format} is taken instead, which costs detail. On USB buses of their own the \
             cameras could send uncompressed pictures"
        ));
    }
    Some(choice)
}

/// Returns the common rates of all cameras, each in its format, in this size; the rates of a row are about
/// equal.
fn common_rates(cameras: &[Offer], formats: &[Format], size: (u32, u32)) -> Vec<Vec<Rate>> {
    let rates = |(camera, &format): (&Offer, &Format)| -> Vec<Rate> {
        let fits = |mode: &&Mode| mode.size() == size && mode.format() == Some(format);
        camera.modes.iter().filter(fits).flat_map(|mode| mode.rates.iter().copied()).collect()
    };
    let all: Vec<Vec<Rate>> = cameras.iter().zip(formats).map(rates).collect();
    let Some((first, others)) = all.split_first() else { return Vec::new() };
    first
        .iter()
        .filter_map(|&rate| {
            let partner = |others: &Vec<Rate>| {
                others.iter().copied().find(|other| other.is_about(rate.value()))
            };
            let partners: Option<Vec<Rate>> = others.iter().map(partner).collect();
            Some([vec![rate], partners?].concat())
        })
        .collect()
}

/// Returns a warning if the uncompressed frames of all cameras exceed the capacity of a bus.
fn overload(cameras: &[Offer], picks: &[Pick]) -> Option<String> {
    let bytes = |pick: &Pick| {
        let pixels = f64::from(pick.width) * f64::from(pick.height);
        pixels * pick.format.bytes_per_pixel().unwrap_or(0.0) * pick.rate.value()
    };
    cameras.iter().filter_map(|camera| camera.bus).find_map(|bus| {
        let here: Vec<&Pick> = cameras
            .iter()
            .zip(picks)
            .filter(|(camera, _)| camera.bus.is_some_and(|other| other.number == bus.number))
            .map(|(_, pick)| pick)
            .collect();
        let needed: f64 = here.iter().map(|pick| bytes(pick)).sum();
        let pick = here[0];
        (needed > bus.capacity()).then(|| {
            format!(
                "{} pictures of {}x{} at {}/s are {:.0} MB/s, more than the {:.0} MB/s that USB bus \
                 {} ({} Mbit/s) carries{}",
                pick.format,
                pick.width,
                pick.height,
                pick.rate,
                needed / 1e6,
                bus.capacity() / 1e6,
                bus.number,
                bus.megabits,
                if here.len() > 1 { ", on which both cameras are" } else { "" },
            )
        })
    })
}

impl Choice {
    fn explained(
        mut self,
        count: usize,
        request: &CameraRequest,
        limit: (u32, u32),
        floor: f64,
    ) -> Self {
        let who = if count > 1 { "both cameras offer" } else { "the camera offers" };
        let pick = self.picks[0];
        let mut why = Vec::new();
        if request.size.is_none() {
            let up_to = format!("up to {}x{}", limit.0, limit.1);
            why.push(match () {
                () if pick.width > limit.0 || pick.height > limit.1 => {
                    format!("the smallest size that {who}; none is {up_to}")
                }
                () if floor > 0.0 => {
                    format!("the largest size {up_to} that {who} with {ENOUGH}/s or more")
                }
                () => format!("the largest size {up_to} that {who}"),
            });
        }
        if request.rate.is_none() && floor == 0.0 {
            why.push(format!("the highest rate there; none is {ENOUGH}/s or more"));
        }
        if request.format.is_none() && self.warning.is_none() {
            why.push(match pick.format.bytes_per_pixel() {
                Some(_) => "uncompressed".into(),
                None => "no uncompressed format is offered at this size and rate".into(),
            });
        }
        self.why = why.join("; ");
        self
    }
}

/// Explains why nothing fits: names the first camera that lacks the format, the size or the rate,
/// and its offers.
fn refusal(cameras: &[Offer], request: &CameraRequest) -> String {
    for camera in cameras {
        let name = camera.name;
        let mut left: Vec<&Mode> = camera.modes.iter().filter(|mode| usable(mode)).collect();
        if left.is_empty() {
            return format!("{name} offers no format that can be read ({})", join(Format::ALL));
        }
        if let Some(format) = request.format {
            let all = left.clone();
            left.retain(|mode| mode.format() == Some(format));
            if left.is_empty() {
                let mut has: Vec<Format> = all.iter().filter_map(|mode| mode.format()).collect();
                has.sort_unstable();
                has.dedup();
                return format!("{name} does not offer {format}; it offers {}", join(has));
            }
        }
        if let Some(size) = request.size {
            let all = left.clone();
            left.retain(|mode| mode.size() == size);
            if left.is_empty() {
                let mut has: Vec<_> = all.iter().map(|mode| mode.size()).collect();
                has.sort_unstable();
                has.dedup();
                let has = join(has.iter().map(|size| format!("{}x{}", size.0, size.1)));
                return format!("{name} does not offer {}x{}; it offers {has}", size.0, size.1);
            }
        }
        if let Some(rate) = request.rate {
            let mut has: Vec<Rate> = left.iter().flat_map(|mode| mode.rates.clone()).collect();
            if !has.iter().any(|has| has.is_about(rate)) {
                has.sort_by(|a, b| a.value().total_cmp(&b.value()));
                has.dedup();
                return format!(
                    "{name} does not offer {rate} frames a second there; it offers {}",
                    join(has)
                );
            }
        }
    }
    "the cameras offer no size and rate in common; `stereod devices` lists what they offer".into()
}

fn join(items: impl IntoIterator<Item = impl ToString>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
