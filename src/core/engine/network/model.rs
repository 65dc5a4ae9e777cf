//! A network as it lies in its file: its inputs and outputs, and a run of it.

use std::borrow::Cow;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use half::f16;
use ort::ep::CUDA;
use ort::session::{OutputSelector, RunOptions, Session, SessionInputValue};
use ort::value::{DynValue, Outlet, Tensor, TensorElementType, ValueType};

use super::convention::{Convention, Layout};
use super::runtime;
use crate::engine::cuda;
use crate::frame::Image;

pub struct Model {
    session: Session,
    pub layout: Layout,
    /// Channels of a view: 1 or 3.
    pub channels: usize,
    /// Width and height of the views that the network takes; `None`: any.
    pub fixed: Option<(usize, usize)>,
    /// The left view before the right one as far as the names tell.
    inputs: Vec<Input>,
    /// Set if names tell which view is which.
    pub are_views_named: bool,
    /// The processor in words.
    pub processor: &'static str,
}

struct Input {
    name: String,
    /// Set for 16-bit floats; others have 32 bits.
    is_f16: bool,
}

/// One output of a run.
pub struct Plane {
    pub width: usize,
    pub height: usize,
    pub values: Vec<f32>,
}

impl Model {
    pub fn load(file: &Path, threads: usize) -> anyhow::Result<Self> {
        let environment = runtime::environment()?;
        ensure!(file.is_file(), "there is no network {}", file.display());
        let open = |is_on_gpu: bool| -> Result<Session, ort::Error> {
            let mut builder = Session::builder(environment)?.with_intra_threads(threads)?;
            if is_on_gpu {
                builder = builder
                    .with_execution_providers([CUDA::default().build().error_on_failure()])?;
            }
            builder.commit_from_file(file)
        };
        // A library without CUDA, or a machine without a GPU, leaves the CPU.
        let (session, processor) = match open(true) {
            Ok(session) => (session, "CUDA"),
            Err(error) => {
                if cuda::is_fitted(Path::new("/sys")) {
                    tracing::info!("the network runs on the CPU, not CUDA: {error}");
                }
                let opened = open(false);
                let wrong = || format!("{} is no network that ONNX Runtime runs", file.display());
                (opened.with_context(wrong)?, "CPU")
            }
        };
        let described = describe(&session);
        let views = Views::of(session.inputs()).with_context(|| {
            format!(
                "{} is no stereo network: it takes {described}; a network of depth takes two views, as one input of 2 \
                 or 6 channels, two inputs of 1 or 3, or four, of 32- or 16-bit floats",
                file.display()
            )
        })?;
        let Views { layout, channels, fixed, inputs, are_named } = views;

        Ok(Self { session, layout, channels, fixed, inputs, are_views_named: are_named, processor })
    }

    /// Describes the inputs: their names, types and shapes.
    pub fn describe(&self) -> String {
        describe(&self.session)
    }

    /// Runs the network on the planes ([`super::planes`]) of two views, of a size that it takes. Returns the outputs that
    /// are planes, with their numbers; only the output of the number `only` is computed, if there is one.
    pub fn run(
        &mut self,
        [left, right]: [&[Image]; 2],
        convention: &Convention,
        only: Option<usize>,
    ) -> anyhow::Result<Vec<(usize, Plane)>> {
        let (width, height) = (left[0].width(), left[0].height());
        let views = if convention.swapped { [right, left] } else { [left, right] };
        let mut inputs: Vec<(Cow<'_, str>, SessionInputValue<'static>)> = Vec::new();
        for (number, Input { name, is_f16 }) in self.inputs.iter().enumerate() {
            let (views, half) = match self.layout {
                Layout::Stacked => (&views[..], false),
                Layout::Two => (&views[number..=number], false),
                Layout::Four => (&views[number % 2..=number % 2], number < 2),
            };
            let (width, height) = if half { (width / 2, height / 2) } else { (width, height) };
            let mut values = Vec::with_capacity(views.len() * self.channels * width * height);
            for view in views {
                fill(&mut values, view, half, self.channels, convention);
            }
            let shape = [1, views.len() * self.channels, height, width];
            let tensor: SessionInputValue<'_> = if *is_f16 {
                let values: Vec<f16> = values.into_iter().map(f16::from_f32).collect();
                Tensor::from_array((shape, values))?.into()
            } else {
                Tensor::from_array((shape, values))?.into()
            };
            inputs.push((Cow::Owned(name.clone()), tensor));
        }
        let selected = match only {
            Some(number) => {
                let output = self.session.outputs().get(number).context("no such output")?;
                OutputSelector::no_default().with(output.name())
            }
            None => OutputSelector::default(),
        };
        let options = RunOptions::new()?.with_outputs(selected);
        let results = self.session.run_with_options(inputs, &options)?;
        let numbers = only.unwrap_or(0)..;
        let planes =
            numbers.zip(results.values()).filter_map(|(n, value)| Some((n, plane_of(&value)?)));
        Ok(planes.collect())
    }
}

/// Returns the first channel of an output, if it is a plane: of two, the second one is the vertical flow.
fn plane_of(value: &DynValue) -> Option<Plane> {
    let (shape, values) = match value.try_extract_tensor::<f32>() {
        Ok((shape, values)) => (shape, Cow::Borrowed(values)),
        Err(_) => {
            let (shape, values) = value.try_extract_tensor::<f16>().ok()?;
            (shape, values.iter().map(|value| value.to_f32()).collect())
        }
    };
    let shape: Vec<usize> = shape.iter().map(|&size| size as usize).collect();
    let (width, height) = match shape[..] {
        [1, height, width, 1] | [1, _, height, width] | [1, height, width] | [height, width] => {
            (width, height)
        }
        _ => return None,
    };
    Some(Plane { width, height, values: values.get(..width * height)?.to_vec() })
}

/// Appends a view, channel by channel, as the convention says; grey is repeated.
fn fill(to: &mut Vec<f32>, planes: &[Image], half: bool, channels: usize, convention: &Convention) {
    for channel in 0..channels {
        let colour = if convention.bgr { channels - 1 - channel } else { channel };
        let (level, view) = (convention.scale.levels(colour), &planes[colour % planes.len()]);
        if !half {
            to.extend(view.pixels().iter().map(|&value| level[usize::from(value)]));
            continue;
        }
        for y in 0..view.height() / 2 {
            let rows = [view.row(2 * y), view.row(2 * y + 1)];
            to.extend((0..view.width() / 2).map(|x| {
                let four = rows
                    .map(|row| level[usize::from(row[2 * x])] + level[usize::from(row[2 * x + 1])]);
                (four[0] + four[1]) / 4.0
            }));
        }
    }
}

struct Views {
    layout: Layout,
    channels: usize,
    fixed: Option<(usize, usize)>,
    inputs: Vec<Input>,
    are_named: bool,
}

impl Views {
    fn of(inputs: &[Outlet]) -> anyhow::Result<Self> {
        let mut views = Vec::new();
        for input in inputs {
            let ValueType::Tensor {
                ty: ty @ (TensorElementType::Float32 | TensorElementType::Float16),
                shape,
                ..
            } = input.dtype()
            else {
                bail!("{} holds neither 32- nor 16-bit floats", input.name());
            };
            let is_f16 = *ty == TensorElementType::Float16;
            let [1 | -1, channels, height, width] = shape[..] else {
                bail!("{} is no picture", input.name());
            };
            let input = Input { name: input.name().to_owned(), is_f16 };
            views.push((input, channels, (width, height)));
        }
        let layout = match views.len() {
            1 => Layout::Stacked,
            2 => Layout::Two,
            4 => Layout::Four,
            count => bail!("{count} inputs"),
        };
        let of_both = if layout == Layout::Stacked { 2 } else { 1 };
        let channels = views.iter().map(|(_, channels, _)| *channels).collect::<Vec<_>>();
        let each = channels[0] / of_both;
        ensure!(
            matches!(each, 1 | 3) && channels.iter().all(|&count| count == each * of_both),
            "channels: {channels:?}"
        );
        let names_side = |name: &str, side: &str| name.to_lowercase().contains(side);
        let are_named = views
            .iter()
            .any(|(it, ..)| names_side(&it.name, "left") || names_side(&it.name, "right"));
        // Stable: what names do not tell stays in the file's order.
        views.sort_by_key(|(Input { name, .. }, _, (width, _))| {
            (
                if layout == Layout::Four { half_first(name, *width) } else { 0 },
                names_side(name, "right"),
            )
        });
        let (width, height) = views.last().map_or((-1, -1), |(.., size)| *size);
        let fixed = match (usize::try_from(width), usize::try_from(height)) {
            (Ok(width), Ok(height)) => Some((width, height)),
            (Err(_), Err(_)) => None,
            _ => bail!("only one side of {width}x{height} is fixed"),
        };
        let inputs = views.into_iter().map(|(input, ..)| input).collect();
        Ok(Self { layout, channels: each as usize, fixed, inputs, are_named })
    }
}

/// Orders the views at half size before those at full size: by their widths, or else as CREStereo names them.
fn half_first(name: &str, width: i64) -> i64 {
    if width > 0 { width } else { i64::from(!name.to_lowercase().contains("init")) }
}

fn describe(session: &Session) -> String {
    let inputs =
        session.inputs().iter().map(|input| format!("{} ({})", input.name(), input.dtype()));
    inputs.collect::<Vec<_>>().join(", ")
}
