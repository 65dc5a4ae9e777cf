//! Names and coefficients of lens models in the formats.

use super::tree::At;
use crate::Lens;
use crate::error::Result;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Model {
    /// Brown-Conrady, with the number of terms from the number of coefficients.
    Brown,
    /// Brown-Conrady with at most 5 coefficients.
    PlumbBob,
    /// Kannala-Brandt.
    Fisheye,
    /// No distortion.
    None,
}

pub(super) fn model(name: &str) -> Option<Model> {
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    Some(match name.to_ascii_lowercase().as_str() {
        "plumbbob" | "radtan" | "radialtangential" => Model::PlumbBob,
        "brown" | "brownconrady" | "opencv" | "pinhole" | "perspective" | "rational"
        | "rationalpolynomial" | "thinprism" | "thinprismmodel" | "tilted" => Model::Brown,
        "equidistant" | "equi" | "fisheye" | "kannalabrandt" | "kannalabrandt4"
        | "kannalabrandt8" => Model::Fisheye,
        "none" | "" => Model::None,
        _ => return None,
    })
}

pub(super) fn named(at: &At) -> Result<Model> {
    let name = at.text()?;
    model(name).ok_or_else(|| {
        at.error(format!(
            "the lens model {name:?} is not supported; supported: plumb_bob (radtan), \
             rational_polynomial, thin prism and tilted sensor, equidistant (fisheye, equi), none"
        ))
    })
}

/// Returns the model named in a file as the distortion's, the camera's (Kalibr's `camera_model`) or both;
/// `None` if neither determines it.
pub(super) fn of_file(distortion: Option<&At>, camera: Option<&At>) -> Result<Option<Model>> {
    let of_camera = camera.map(named).transpose()?;
    let Some(distortion) = distortion else {
        // A pinhole goes with any lens.
        return Ok(of_camera.filter(|model| *model == Model::Fisheye));
    };
    let model = named(distortion)?;
    match camera {
        Some(camera) if of_camera == Some(Model::Fisheye) && model != Model::Fisheye => {
            Err(camera.error(format!(
                "contradicts {} in the same file, which names no fisheye lens; correct the wrong one",
                distortion.path()
            )))
        }
        _ => Ok(Some(model)),
    }
}

/// Returns the lens of these coefficients; trailing zeros beyond the model's are ignored.
pub(super) fn lens(model: Model, coefficients: &[f64]) -> Result<Lens, String> {
    let count = coefficients.len();
    // OpenCV, ROS and Kalibr let a camera without distortion have none.
    if count == 0 {
        return Ok(match model {
            Model::Fisheye => Lens::Fisheye([0.0; 4]),
            _ => Lens::Brown([0.0; 14]),
        });
    }
    let most = match model {
        Model::Fisheye => 4,
        Model::PlumbBob => 5,
        Model::Brown | Model::None => 14,
    };
    let coefficients = match coefficients.split_at_checked(most) {
        Some((used, rest)) if rest.iter().all(|k| *k == 0.0) => used,
        _ => coefficients,
    };
    let used = coefficients.len();
    let fits = match model {
        Model::Brown => matches!(used, 4 | 5 | 8 | 12 | 14),
        Model::PlumbBob => matches!(used, 4 | 5),
        Model::Fisheye => used == 4,
        Model::None => coefficients.iter().all(|k| *k == 0.0) && used <= 14,
    };
    if !fits {
        let expected = match model {
            Model::Brown => {
                "this lens has 4 (k1 k2 p1 p2), 5 (k3), 8 (k4 k5 k6), 12 (s1 to s4) or 14 (tau_x \
                 tau_y)"
            }
            Model::PlumbBob => {
                "a plumb-bob lens has 4 (k1 k2 p1 p2) or 5 (k3); one with k4 k5 k6 is called \
                 rational_polynomial"
            }
            Model::Fisheye => "a fisheye lens has 4 (k1 k2 k3 k4)",
            Model::None => "a camera without distortion has none, or zeros",
        };
        return Err(format!("{count} distortion coefficients, but {expected}"));
    }
    if model == Model::Fisheye {
        return Ok(Lens::Fisheye(coefficients.try_into().expect("four, as checked")));
    }
    let mut all = [0.0; 14];
    all[..used].copy_from_slice(coefficients);
    Ok(Lens::Brown(all))
}

pub(super) fn read(model: Model, coefficients: &At) -> Result<Lens> {
    lens(model, &coefficients.numbers()?).map_err(|what| coefficients.error(what))
}

/// Returns the coefficients to write: of Brown-Conrady the shortest form from 5 on.
pub(super) fn coefficients(lens: &Lens) -> &[f64] {
    match lens {
        Lens::Brown(all) => {
            let used = all.iter().rposition(|k| *k != 0.0).map_or(0, |last| last + 1);
            let count = [5, 8, 12, 14].into_iter().find(|count| used <= *count);
            &all[..count.expect("there are 14")]
        }
        Lens::Fisheye(all) => all,
    }
}

/// Returns ROS's name of the model, which other programs know, too.
pub(super) fn ros_name(lens: &Lens) -> &'static str {
    match (lens, coefficients(lens).len()) {
        (Lens::Fisheye(_), _) => "equidistant",
        (Lens::Brown(_), 5) => "plumb_bob",
        (Lens::Brown(_), _) => "rational_polynomial",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_coefficients_must_fit() {
        for count in 0..20 {
            let coefficients = vec![0.1; count];
            let brown = lens(Model::Brown, &coefficients);
            assert_eq!(brown.is_ok(), [0, 4, 5, 8, 12, 14].contains(&count), "{count}");
            let plumb_bob = lens(Model::PlumbBob, &coefficients).is_ok();
            assert_eq!(plumb_bob, [0, 4, 5].contains(&count));
            assert_eq!(lens(Model::Fisheye, &coefficients).is_ok(), count == 0 || count == 4);
            assert_eq!(lens(Model::None, &coefficients).is_ok(), count == 0);
            if let Err(error) = brown {
                assert!(error.contains("4 (") && error.contains("14 ("), "{error}");
            }
        }
    }

    #[test]
    fn zeros_behind_the_coefficients_of_a_model_mean_nothing() {
        let padded = [0.1, 0.2, 0.3, 0.4, 0.0, 0.0, 0.0, 0.0];
        assert_eq!(lens(Model::Fisheye, &padded), Ok(Lens::Fisheye([0.1, 0.2, 0.3, 0.4])));
        assert_eq!(lens(Model::PlumbBob, &padded), lens(Model::PlumbBob, &padded[..5]));
        let rational = lens(Model::PlumbBob, &[0.1; 8]).unwrap_err();
        assert!(rational.contains("rational_polynomial"), "{rational}");
    }

    #[test]
    fn the_shortest_form_is_written() {
        for (last, count) in [(0, 5), (3, 5), (4, 5), (5, 8), (7, 8), (8, 12), (11, 12), (12, 14)] {
            let mut all = [0.0; 14];
            all[last] = 0.5;
            assert_eq!(coefficients(&Lens::Brown(all)).len(), count, "{last}");
        }
        assert_eq!(coefficients(&Lens::Brown([0.0; 14])).len(), 5);
    }
}
