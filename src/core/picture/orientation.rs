//! Orientation tags: how an image or video says that it is to be turned for display (EXIF, the matrix of
//! MP4). A calibration refers to the image as the sensor delivered it, so tags are only reported unless the
//! settings ask for more.

use image::metadata::Orientation;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Orient {
    /// Images stay as their sensors delivered them.
    #[default]
    Ignore,
    /// Images are turned as their tags say.
    Auto,
}

/// Reports the orientation tags of a pair's inputs, each with its name; returns whether there were any.
pub fn report(inputs: &[(String, Orientation)], orient: Orient) -> bool {
    let remark = remark(inputs, orient);
    match &remark {
        Some(Remark::Warning(text)) => tracing::warn!("{text}"),
        Some(Remark::Note(text)) => tracing::info!("{text}"),
        None => {}
    }
    remark.is_some()
}

#[derive(Debug, PartialEq, Eq)]
enum Remark {
    Warning(String),
    Note(String),
}

fn remark(inputs: &[(String, Orientation)], orient: Orient) -> Option<Remark> {
    let is_upright = |orientation: &Orientation| *orientation == Orientation::NoTransforms;
    if inputs.iter().all(|(_, orientation)| is_upright(orientation)) {
        return None;
    }
    let differ = inputs.iter().any(|(_, orientation)| *orientation != inputs[0].1);
    let tagged = match differ {
        true => {
            let each = |(name, orientation): &(String, Orientation)| {
                format!("{name} is tagged {}", describe(*orientation))
            };
            inputs.iter().map(each).collect::<Vec<_>>().join(", ")
        }
        false => {
            let names: Vec<&str> = inputs.iter().map(|(name, _)| name.as_str()).collect();
            let are = if names.len() == 1 { "is" } else { "are" };
            format!("{} {are} tagged {}", names.join(" and "), describe(inputs[0].1))
        }
    };
    Some(match orient {
        Orient::Auto => Remark::Note(format!("{tagged}, which is done (--orient auto)")),
        Orient::Ignore if differ => Remark::Warning(format!(
            "{tagged}: the views are not turned alike, and a pair of them cannot be matched unless a \
             calibration was made of them as they are; --orient auto turns each as its tag says"
        )),
        Orient::Ignore => Remark::Note(format!(
            "{tagged}, which is ignored, because calibrations refer to the sensor's own picture \
             (--orient auto follows the tags)"
        )),
    })
}

/// Returns the transformation that a tag asks for, for people.
fn describe(orientation: Orientation) -> &'static str {
    match orientation {
        Orientation::NoTransforms => "upright",
        Orientation::Rotate90 => "to be turned 90 degrees clockwise",
        Orientation::Rotate180 => "to be turned 180 degrees",
        Orientation::Rotate270 => "to be turned 90 degrees counterclockwise",
        Orientation::FlipHorizontal => "to be mirrored left to right",
        Orientation::FlipVertical => "to be mirrored top to bottom",
        Orientation::Rotate90FlipH => "to be turned 90 degrees clockwise and mirrored",
        Orientation::Rotate270FlipH => "to be turned 90 degrees counterclockwise and mirrored",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_reported_and_unequal_ones_are_a_warning() {
        let pair = |left, right| [("l.jpg".to_owned(), left), ("r.jpg".to_owned(), right)];
        let (upright, turned) = (Orientation::NoTransforms, Orientation::Rotate180);
        assert_eq!(remark(&pair(upright, upright), Orient::Ignore), None);
        let Some(Remark::Note(text)) = remark(&pair(turned, turned), Orient::Ignore) else {
            panic!("a tag is reported");
        };
        assert!(text.contains("l.jpg and r.jpg are tagged to be turned 180 degrees"), "{text}");
        let Some(Remark::Warning(text)) = remark(&pair(upright, turned), Orient::Ignore) else {
            panic!("a warning");
        };
        assert!(
            text.contains("l.jpg is tagged upright") && text.contains("--orient auto"),
            "{text}"
        );
        assert!(matches!(remark(&pair(upright, turned), Orient::Auto), Some(Remark::Note(_))));
    }
}
