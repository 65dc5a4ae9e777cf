//! Names and coefficients of lens models, as the formats write them.

use crate::calibration::Lens;

/// Which model a file names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Model {
    /// Brown-Conrady; how many terms follows from the number of coefficients.
    Brown,
    /// Brown-Conrady with at most 5 coefficients.
    PlumbBob,
    /// Kannala-Brandt.
    Fisheye,
    /// No distortion.
    None,
}

/// The model that a name stands for.
pub(super) fn model(name: &str) -> Option<Model> {
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    Some(match name.to_ascii_lowercase().as_str() {
        "plumbbob" | "radtan" | "radialtangential" => Model::PlumbBob,
        "brown" | "brownconrady" | "opencv" | "pinhole" | "perspective" | "rational"
        | "rationalpolynomial" | "thinprism" | "thinprismmodel" | "tilted" => Model::Brown,
        "equidistant" | "equi" | "fisheye" | "kannalabrandt" | "kannalabrandt4" => Model::Fisheye,
        "none" | "" => Model::None,
        _ => return None,
    })
}

/// Message about a name that stands for no model.
pub(super) fn unknown_model(name: &str) -> String {
    format!(
        "the lens model {name:?} is not supported; supported: plumb_bob (radtan), \
         rational_polynomial, thin prism and tilted sensor, equidistant (fisheye, equi), none"
    )
}

/// The lens of these coefficients.
///
/// # Errors
/// How many are expected where their number does not fit the model.
pub(super) fn lens(model: Model, coefficients: &[f64]) -> Result<Lens, String> {
    let count = coefficients.len();
    let fits = match model {
        Model::Brown => matches!(count, 4 | 5 | 8 | 12 | 14),
        Model::PlumbBob => matches!(count, 4 | 5),
        Model::Fisheye => count == 4,
        Model::None => coefficients.iter().all(|k| *k == 0.0) && count <= 14,
    };
    if !fits {
        let expected = match model {
            Model::Brown => {
                "this lens has 4 (k1 k2 p1 p2), 5 (k3), 8 (k4 k5 k6), 12 (s1 to s4) or 14 (tau_x \
                 tau_y)"
            }
            Model::PlumbBob => "a plumb-bob lens has 4 (k1 k2 p1 p2) or 5 (k3)",
            Model::Fisheye => "a fisheye lens has 4 (k1 k2 k3 k4)",
            Model::None => "a camera without distortion has none, or zeros",
        };
        return Err(format!("{count} distortion coefficients, but {expected}"));
    }
    if model == Model::Fisheye {
        return Ok(Lens::Fisheye(coefficients.try_into().expect("four, as checked")));
    }
    let mut all = [0.0; 14];
    all[..count].copy_from_slice(coefficients);
    Ok(Lens::Brown(all))
}

/// The coefficients that have to be written: of Brown-Conrady the shortest form from 5 on.
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

/// The name that ROS gives the model, which other programs know too.
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
            assert_eq!(brown.is_ok(), [4, 5, 8, 12, 14].contains(&count), "{count}");
            let plumb_bob = lens(Model::PlumbBob, &coefficients).is_ok();
            assert_eq!(plumb_bob, count == 4 || count == 5);
            assert_eq!(lens(Model::Fisheye, &coefficients).is_ok(), count == 4);
            assert_eq!(lens(Model::None, &coefficients).is_ok(), count == 0);
            if let Err(error) = brown {
                assert!(error.contains("4 (") && error.contains("14 ("), "{error}");
            }
        }
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
