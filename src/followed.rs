//! Odometry of the pairs so far, for status, metrics and statistics.

use std::fmt;

use serde::Serialize;

use stereod_core::pose::Odometry;
use stereod_io::text::rounded;

/// Newest odometry of a run, and how many of its pairs have a pose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Followed {
    pub found: u64,
    pub lost: u64,
    pub newest: Odometry,
}

impl Followed {
    /// Returns these figures after a further pair.
    pub fn with(before: Option<Self>, newest: Odometry) -> Self {
        let (found, lost) = before.map_or((0, 0), |before| (before.found, before.lost));
        let is_lost = newest.lost.is_some();
        Self { found: found + u64::from(!is_lost), lost: lost + u64::from(is_lost), newest }
    }

    /// Returns the figures of a whole run.
    pub fn summary(&self) -> Summary {
        Summary {
            found: self.found,
            lost: self.lost,
            breaks: self.newest.breaks,
            path_m: rounded(self.newest.path_m, 3),
            drift: rounded(100.0 * self.newest.drift(), 3),
        }
    }
}

/// Returns the path and its drift in words, or why the rig is lost, and whether it is.
pub fn in_words(odometry: &Odometry) -> (String, bool) {
    if let Some(lost) = odometry.lost {
        return (format!("lost: {}", lost.in_words()), true);
    }
    let Odometry { path_m, breaks, .. } = odometry;
    let breaks = match breaks {
        0 => String::new(),
        1 => ", 1 break".to_owned(),
        breaks => format!(", {breaks} breaks"),
    };
    (format!("{path_m:.1} m, drift {:.2} %{breaks}", 100.0 * odometry.drift()), false)
}

/// Odometry of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Summary {
    /// Pairs with a pose.
    pub found: u64,
    /// Pairs without a pose.
    pub lost: u64,
    /// Times that the path was broken: the motion in between is not known.
    pub breaks: u32,
    /// Length of the path in metres, without what happened in the breaks.
    pub path_m: f64,
    /// Standard deviation of the error of the last position, in percent of the path.
    pub drift: f64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { found, lost, breaks, path_m, drift } = self;
        let pairs = found + lost;
        write!(
            f,
            "{path_m:.1} m, drift {drift:.2} %, pose of {found} of {pairs} pairs, {breaks} breaks"
        )
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use stereod_core::obstacles::Mount;
    use stereod_core::pose::{Lost, Pose};

    /// Odometry of a camera that looks ahead, after 20 m.
    pub fn odometry(position_m: [f64; 3], lost: Option<Lost>) -> Odometry {
        let mut covariance = [[0.0; 6]; 6];
        covariance[2][2] = 0.04;
        Odometry {
            pose: Pose { position_m, ..Pose::IDENTITY },
            covariance,
            velocity: None,
            lost,
            breaks: 0,
            path_m: 20.0,
            points: [90, 100],
            mount: Mount::default(),
        }
    }

    #[test]
    fn the_line_tells_path_and_drift_or_why_the_rig_is_lost() {
        let found = odometry([0.0; 3], None);
        assert_eq!(in_words(&found), ("20.0 m, drift 1.00 %".into(), false));
        let broken = |breaks| in_words(&Odometry { breaks, ..found }).0;
        assert_eq!(broken(1), "20.0 m, drift 1.00 %, 1 break");
        assert_eq!(broken(2), "20.0 m, drift 1.00 %, 2 breaks");
        let start = Odometry { path_m: 0.0, ..found };
        assert_eq!(in_words(&start).0, "0.0 m, drift 0.00 %");
        let lost = odometry([0.0; 3], Some(Lost::Unseen));
        assert_eq!(in_words(&lost), ("lost: too few points seen again".into(), true));
    }

    #[test]
    fn pairs_are_counted_as_found_or_lost() {
        let lost = [None, Some(Lost::FewPoints), Some(Lost::Inconsistent), None, None];
        let pairs = lost.map(|lost| Odometry { breaks: 1, ..odometry([0.0; 3], lost) });
        let all = pairs.into_iter().fold(None, |before, pair| Some(Followed::with(before, pair)));
        let summary = all.unwrap().summary();
        assert_eq!(summary, Summary { found: 3, lost: 2, breaks: 1, path_m: 20.0, drift: 1.0 });
        let words = "20.0 m, drift 1.00 %, pose of 3 of 5 pairs, 1 breaks";
        assert_eq!(summary.to_string(), words);
    }
}
