//! A network as it lies in its file: its inputs and outputs, and a run of it.

use std::borrow::Cow;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use ort::ep::CUDA;
use ort::session::{Session, SessionInputValue};
use ort::value::{Outlet, Tensor, TensorElementType, ValueType};

use super::convention::{Convention, Layout, Scale};
use super::runtime;
use crate::engine::cuda;
use crate::frame::Image;

pub struct Model {
    session: Session,
    pub layout: Layout,
    /// Channels of a view: 1 or 3.
    channels: usize,
    /// Width and height of the views that the network takes; `None`: any.
    pub fixed: Option<(usize, usize)>,
    /// Names of the inputs, the left view before the right one as far as the names tell.
    inputs: Vec<String>,
    /// Set if names tell which view is which.
    pub are_views_named: bool,
    /// The processor in words.
    pub processor: &'static str,
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
                 or 6 channels, two inputs of 1 or 3, or four, of 32-bit floats",
                file.display()
            )
        })?;
        let Views { layout, channels, fixed, inputs, are_named } = views;

        Ok(Self { session, layout, channels, fixed, inputs, are_views_named: are_named, processor })
    }

    /// Runs the network on two views of a size that it takes. Returns the outputs that are planes, with their numbers.
    pub fn run(
        &mut self,
        [left, right]: [&Image; 2],
        convention: &Convention,
    ) -> anyhow::Result<Vec<(usize, Plane)>> {
        let (width, height) = (left.width(), left.height());
        let views = if convention.swapped { [right, left] } else { [left, right] };
        let tensor = |views: &[&Image], half: bool| -> anyhow::Result<SessionInputValue<'static>> {
            let (width, height) = if half { (width / 2, height / 2) } else { (width, height) };
            let mut values = Vec::with_capacity(views.len() * self.channels * width * height);
            for view in views {
                fill(&mut values, view, half, self.channels, convention.scale);
            }
            let channels = views.len() * self.channels;
            Ok(Tensor::from_array(([1, channels, height, width], values))?.into())
        };
        let values = match self.layout {
            Layout::Stacked => vec![tensor(&views, false)?],
            Layout::Two => vec![tensor(&views[..1], false)?, tensor(&views[1..], false)?],
            Layout::Four => {
                let mut values = Vec::new();
                for half in [true, false] {
                    for view in views {
                        values.push(tensor(&[view], half)?);
                    }
                }
                values
            }
        };
        let names = self.inputs.iter().map(|name| Cow::Owned(name.clone()));
        let inputs: Vec<(Cow<'_, str>, _)> = names.zip(values).collect();
        let results = self.session.run(inputs)?;
        let planes = results.values().enumerate().filter_map(|(number, value)| {
            let (shape, values) = value.try_extract_tensor::<f32>().ok()?;
            let shape: Vec<usize> = shape.iter().map(|&size| size as usize).collect();
            // The first channel: of two, the second one is the vertical flow.
            let (width, height) = match shape[..] {
                [1, height, width, 1]
                | [1, _, height, width]
                | [1, height, width]
                | [height, width] => (width, height),
                _ => return None,
            };
            let values = values.get(..width * height)?.to_vec();
            Some((number, Plane { width, height, values }))
        });
        Ok(planes.collect())
    }
}

/// Appends a view, channel by channel, in the scale of the network.
fn fill(to: &mut Vec<f32>, view: &Image, half: bool, channels: usize, scale: Scale) {
    for channel in 0..channels {
        let level = scale.levels(channel);
        if !half {
            for y in 0..view.height() {
                to.extend(view.row(y).iter().map(|&grey| level[usize::from(grey)]));
            }
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
    inputs: Vec<String>,
    are_named: bool,
}

impl Views {
    fn of(inputs: &[Outlet]) -> anyhow::Result<Self> {
        let mut views = Vec::new();
        for input in inputs {
            let ValueType::Tensor { ty: TensorElementType::Float32, shape, .. } = input.dtype()
            else {
                bail!("{} holds no 32-bit floats", input.name());
            };
            let [1 | -1, channels, height, width] = shape[..] else {
                bail!("{} is no picture", input.name());
            };
            views.push((input.name().to_owned(), channels, (width, height)));
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
        let are_named =
            views.iter().any(|(name, ..)| names_side(name, "left") || names_side(name, "right"));
        // Stable: what names do not tell stays in the file's order.
        views.sort_by_key(|(name, _, (width, _))| {
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
        let inputs = views.into_iter().map(|(name, ..)| name).collect();
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
