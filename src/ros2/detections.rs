//! Boxes of a detector of a graph: `vision_msgs/Detection2DArray`, as since Humble (vision_msgs 4).

use std::time::{Duration, Instant};

use anyhow::Result;

use stereod_io::ros2::graph::Subscription;
use stereod_io::source::recording::fields::Fields;
use stereod_io::source::recording::interface::Encoding;
use stereod_obstacles::boxes::{
    BoxSource, DetectorBox, FRESH, Inbox, Refusal, check_boxes, unix_time,
};

const KIND: &str = "vision_msgs/Detection2DArray";

/// Time without a message before a warning.
const SILENCE: Duration = Duration::from_secs(10);

/// Subscribes to the boxes on a topic, in pixels of images of this width and height.
///
/// # Errors
/// Fails if the graph cannot be joined.
pub fn subscribe(topic: &str, (width, height): (usize, usize)) -> Result<BoxSource> {
    let subscription = Subscription::open(topic, KIND)?;
    let size = [width as f64, height as f64];
    Ok(BoxSource::receive(FRESH, move |inbox| listen(&subscription, size, inbox))?)
}

fn listen(subscription: &Subscription, size: [f64; 2], inbox: &Inbox) {
    // Until the first message.
    let mut silent_since = Some(Instant::now());
    while !inbox.is_closed() {
        match subscription.message() {
            Ok(Some(message)) => {
                silent_since = None;
                inbox.take(read(&message, size, unix_time()));
            }
            Ok(None) if silent_since.is_some_and(|since| since.elapsed() > SILENCE) => {
                silent_since = None;
                let trouble = subscription.trouble();
                let trouble = trouble.unwrap_or_else(|| "its publisher sends none".into());
                tracing::warn!("no boxes came for {SILENCE:?}: {trouble}; waiting for them");
            }
            Ok(None) => {}
            Err(error) => return tracing::warn!("no more boxes are received: {error:#}"),
        }
    }
}

fn read(message: &[u8], size: [f64; 2], arrival: Duration) -> Result<Vec<DetectorBox>, Refusal> {
    let boxes = parse(message, arrival)
        .map_err(|fault| Refusal::Message { kind: KIND, fault: format!("{fault:#}") })?;
    check_boxes(boxes, Some(size))
}

/// Returns the boxes of a message with edges in pixels. A stamp of 0 is none.
fn parse(message: &[u8], arrival: Duration) -> Result<Vec<DetectorBox>> {
    let mut fields = Fields::new(message, &Encoding::Cdr)?;
    let stamp = Some(Duration::from_nanos(fields.stamp()?)).filter(|stamp| !stamp.is_zero());
    let stamp = stamp.unwrap_or(arrival);
    (0..fields.u32()?).map(|_| detection(&mut fields, stamp)).collect()
}

fn detection(fields: &mut Fields<'_>, stamp: Duration) -> Result<DetectorBox> {
    fields.stamp()?;
    let mut best: Option<(&str, f64)> = None;
    for _ in 0..fields.u32()? {
        let hypothesis = (fields.text()?, fields.f64s::<1>()?[0]);
        // Its pose (position, attitude) with covariance, which detectors of images leave empty.
        fields.f64s::<43>()?;
        if best.is_none_or(|(_, score)| hypothesis.1 > score) {
            best = Some(hypothesis);
        }
    }
    let [x, y, turn, width, height] = fields.f64s()?;
    // A turned box is framed by an upright one.
    let (sin, cos) = (turn.sin().abs(), turn.cos().abs());
    let [across, down] =
        [width * cos + height * sin, width * sin + height * cos].map(|it| it / 2.0);
    let id = Some(fields.text()?.to_owned()).filter(|id| !id.is_empty());
    let (label, score) =
        best.map_or((String::new(), None), |(class, score)| (class.to_owned(), Some(score)));
    let edges = [x - across, y - down, x + across, y + down];
    Ok(DetectorBox { label, id, score, edges, stamp })
}

#[cfg(test)]
mod tests {
    use super::*;
    use stereod_io::sink::messages::{Cdr, header};
    use stereod_obstacles::boxes::MOST_BOXES;

    const SIZE: [f64; 2] = [200.0, 100.0];
    const ARRIVAL: Duration = Duration::from_secs(9);

    /// Returns a message with a box for each centre, turn and size.
    fn message(stamp: Duration, boxes: &[[f64; 5]], classes: &[(&str, f64)]) -> Vec<u8> {
        let mut cdr = Cdr::with_room(512);
        header(&mut cdr, stamp, "left_optical_frame");
        cdr.length(boxes.len());
        for found in boxes {
            header(&mut cdr, stamp, "left_optical_frame");
            cdr.length(classes.len());
            for (class, score) in classes {
                cdr.text(class).f64s(&[*score]).f64s(&[0.0; 43]);
            }
            cdr.f64s(found).text("7");
        }
        cdr.finish()
    }

    #[test]
    fn boxes_have_the_best_class_and_edges_in_fractions() {
        let stamp = Duration::new(1_732_881_234, 31_337_000);
        let classes = [("dog", 0.2), ("person", 0.7), ("cat", 0.1)];
        // The second is turned by 90 degrees, and reaches over the right edge.
        let boxes = [
            [100.0, 50.0, 0.0, 20.0, 40.0],
            [190.0, 50.0, std::f64::consts::FRAC_PI_2, 40.0, 40.0],
        ];
        let found = read(&message(stamp, &boxes, &classes), SIZE, ARRIVAL).unwrap();
        let expected = DetectorBox {
            label: "person".into(),
            id: Some("7".into()),
            score: Some(0.7),
            edges: [0.45, 0.3, 0.55, 0.7],
            stamp,
        };
        assert_eq!(found[0], expected);
        let near = |a: [f64; 4], b: [f64; 4]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9);
        assert!(near(found[1].edges, [0.85, 0.3, 1.0, 0.7]), "{found:?}");
        // Without a stamp and a class.
        let found = read(&message(Duration::ZERO, &boxes[..1], &[]), SIZE, ARRIVAL).unwrap();
        assert_eq!((&*found[0].label, found[0].score, found[0].stamp), ("", None, ARRIVAL));
        assert_eq!(read(&message(stamp, &[], &[]), SIZE, ARRIVAL).unwrap(), []);
    }

    #[test]
    fn wrong_messages_are_refused_with_the_reason() {
        let right = [100.0, 50.0, 0.0, 20.0, 40.0];
        let refused = |boxes: &[[f64; 5]], score| {
            let message = message(ARRIVAL, boxes, &[("person", score)]);
            read(&message, SIZE, ARRIVAL).unwrap_err().to_string()
        };
        assert!(refused(&[right, [100.0, 50.0, 0.0, 0.0, 40.0]], 0.5).starts_with("box 1 "));
        assert!(refused(&[[f64::NAN, 50.0, 0.0, 20.0, 40.0]], 0.5).contains("not a number"));
        assert!(refused(&[right], 70.0).contains("score"));
        assert!(refused(&[right; MOST_BOXES + 1], 0.5).contains("the most"));
        let whole = message(ARRIVAL, &[right], &[("person", 0.5)]);
        for length in 0..whole.len() {
            let error = read(&whole[..length], SIZE, ARRIVAL).unwrap_err().to_string();
            assert!(error.starts_with("it is not a vision_msgs/Detection2DArray: "), "{error}");
        }
    }
}
