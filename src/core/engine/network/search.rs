//! The way in which a network is fed, found by trying it on a scene with known disparity.

use anyhow::{Context, bail};

use super::convention::{Convention, Scale};
use super::model::{Model, Plane};
use super::planes::planes;
use super::scene::Scene;

/// The best convention for a network, and its error.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    pub convention: Convention,
    /// Share of the scene's pixels with an error above [`BAD`] px, in percent.
    pub bad: f64,
}

/// Error in pixels of a wrong pixel.
const BAD: f32 = 2.0;

/// Largest share of wrong pixels of a network that can be used, in percent.
const BAD_MOST: f64 = 30.0;

/// By how many more percent of the pixels red before blue has to be wrong for the other order to be taken: most networks
/// hardly differ, and take red first.
const BGR_BETTER: f64 = 1.0;

/// Multiples that networks need, each with a size that is a multiple of it and not of the next one.
const MULTIPLES: [(usize, (usize, usize)); 3] =
    [(32, (352, 224)), (64, (448, 192)), (128, (384, 384))];

/// The scene for a network, with the multiple that its size stands for.
fn scenes(model: &Model) -> Vec<(usize, Scene)> {
    let scene = |(width, height): (usize, usize)| {
        Scene::new((width, height), (width as f64 / 9.0).clamp(8.0, 48.0))
    };
    match model.fixed {
        Some(size) => vec![(1, scene(size))],
        None => MULTIPLES.map(|(multiple, size)| (multiple, scene(size))).into(),
    }
}

/// Tries the ways in which networks are fed, or only `known`, and returns the best one. Fails if none gives the scene's
/// disparity.
pub fn find(model: &mut Model, known: Option<Convention>) -> anyhow::Result<Found> {
    let mut failure = None;
    for (multiple, scene) in scenes(model) {
        if known.is_some_and(|known| known.multiple != multiple) {
            continue;
        }
        match best(model, &scene, multiple, known) {
            Ok(Some(found)) if found.bad <= BAD_MOST => return Ok(found),
            Ok(Some(found)) => bail!(
                "this network does not find depth: fed in every known way, at best {:.0} % of the pixels of a scene with \
                 known disparity are wrong by more than {BAD} px ({}); it is of another kind, or was exported wrongly",
                found.bad,
                found.convention.describe(model.layout)
            ),
            Ok(None) => bail!(
                "this network gives no disparity for each pixel: no output has the size of the views and numbers in it"
            ),
            Err(error) => failure = Some(error),
        }
    }
    Err(failure.unwrap_or_else(|| anyhow::anyhow!("no scene")))
        .context("ONNX Runtime cannot run this network on pictures whose sides are multiples of 32, 64 or 128")
}

/// The best way to feed the network this scene; `None` if no output has its size and numbers. Fails if it cannot be run.
fn best(
    model: &mut Model,
    scene: &Scene,
    multiple: usize,
    known: Option<Convention>,
) -> anyhow::Result<Option<Found>> {
    let found = best_of(model, scene, feedings(model, multiple, known), known)?;
    if model.channels < 3 || known.is_some() {
        return Ok(found);
    }
    // The other order of the colours: once, or in every way if none works with the usual one.
    let usable = found.filter(|found| found.bad <= BAD_MOST);
    let tried = usable.map_or_else(|| feedings(model, multiple, None), |it| vec![it.convention]);
    let bgr = tried.into_iter().map(|feeding| Convention { bgr: true, ..feeding });
    let other = best_of(model, scene, bgr.collect(), None)?;
    Ok(match (found, other) {
        (Some(rgb), Some(bgr)) if rgb.bad <= bgr.bad + BGR_BETTER => Some(rgb),
        (rgb, bgr) => bgr.or(rgb),
    })
}

/// The best of these ways; the first one of equals.
fn best_of(
    model: &mut Model,
    scene: &Scene,
    feedings: Vec<Convention>,
    known: Option<Convention>,
) -> anyhow::Result<Option<Found>> {
    let views = [&scene.left, &scene.right].map(|view| planes(view, model.channels));
    let mut all = Vec::new();
    for feeding in feedings {
        let only = known.map(|known| known.output);
        for (output, plane) in model.run([&views[0], &views[1]], &feeding, only)? {
            for (negative, of_width) in [(false, false), (true, false), (false, true), (true, true)]
            {
                let convention = Convention { output, negative, of_width, ..feeding };
                let is_wanted = known.is_none_or(|known| known == convention);
                let bad = wrong_percent(&plane, scene, &convention).filter(|_| is_wanted);
                all.extend(bad.map(|bad| Found { convention, bad }));
            }
        }
    }
    Ok(all.into_iter().min_by(|a, b| a.bad.total_cmp(&b.bad)))
}

/// The values and orders of the views to try.
fn feedings(model: &Model, multiple: usize, known: Option<Convention>) -> Vec<Convention> {
    if let Some(known) = known {
        return vec![known];
    }
    let orders: &[bool] = if model.are_views_named { &[false] } else { &[false, true] };
    let feeding = |scale, &swapped: &bool| Convention {
        scale,
        bgr: false,
        swapped,
        output: 0,
        negative: false,
        of_width: false,
        multiple,
    };
    Scale::ALL
        .into_iter()
        .flat_map(|scale| orders.iter().map(move |order| feeding(scale, order)))
        .collect()
}

/// Share of wrong pixels in percent; `None` if the plane is not of the scene's size, or has no number.
fn wrong_percent(plane: &Plane, scene: &Scene, convention: &Convention) -> Option<f64> {
    let (width, height) = (scene.left.width(), scene.left.height());
    if (plane.width, plane.height) != (width, height)
        || plane.values.iter().all(|value| !value.is_finite())
    {
        return None;
    }
    let (mut count, mut bad) = (0, 0);
    for (value, truth) in plane.values.iter().zip(&scene.truth) {
        if truth.is_finite() {
            count += 1;
            let error = (convention.disparity(*value, width) - truth).abs();
            let is_right = error <= BAD;
            // Not a number is wrong, too.
            bad += u32::from(!is_right);
        }
    }
    Some(100.0 * f64::from(bad) / f64::from(count.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Convention = Convention {
        scale: Scale::Levels,
        bgr: false,
        swapped: false,
        output: 0,
        negative: false,
        of_width: false,
        multiple: 32,
    };

    #[test]
    fn wrong_pixels_are_counted_where_the_truth_is_known() {
        let scene = Scene::new((64, 48), 8.0);
        let values = |of: &dyn Fn(f32) -> f32| scene.truth.iter().map(|&truth| of(truth)).collect();
        let plane = |values| Plane { width: 64, height: 48, values };
        let wrong = |of: &dyn Fn(f32) -> f32, convention| {
            wrong_percent(&plane(values(of)), &scene, &convention)
        };
        assert_eq!(wrong(&|truth| truth + 1.9, PLAIN), Some(0.0));
        assert_eq!(wrong(&|truth| truth + 2.1, PLAIN), Some(100.0));
        assert_eq!(wrong(&|truth| -truth, Convention { negative: true, ..PLAIN }), Some(0.0));
        assert_eq!(wrong(&|truth| truth / 64.0, Convention { of_width: true, ..PLAIN }), Some(0.0));
        assert_eq!(wrong(&|_| f32::NAN, PLAIN), None);
        let half = Plane { width: 32, height: 24, values: vec![1.0; 32 * 24] };
        assert_eq!(wrong_percent(&half, &scene, &PLAIN), None);
    }
}
