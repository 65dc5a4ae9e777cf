use nalgebra::Vector3;

use super::*;
use crate::board::BoardCorner;
use crate::board::Pattern;
use crate::solve::projection::project;
use crate::solve::rig::rotation;

const SIZE: (usize, usize) = (640, 480);

fn board() -> Board {
    Board::new(Pattern::chessboard(9, 6).unwrap(), 0.03).unwrap()
}

/// Both cameras see the board with its middle at (x, y) pixels at a distance, tilted by `turn`.
fn seen(at: [f64; 2], depth: f64, turn: [f64; 2], blur: f64) -> [Result<Detection, NotFound>; 2] {
    let camera = Model::PlumbBob.camera(SIZE, 0.87 * 640.0);
    let rotation = rotation(&Vector3::new(turn[0], turn[1], 0.0));
    let along = |pixel: f64, centre: f64| (pixel - centre) / camera.focal[0] * depth;
    let middle =
        Vector3::new(along(at[0], camera.centre[0]), along(at[1], camera.centre[1]), depth);
    let board = board();
    let corners = (0..board.count()).map(|id| {
        let point = rotation * (board.point(id) - Vector3::new(0.15, 0.105, 0.0)) + middle;
        BoardCorner { id, pixel: project(&camera, &point).unwrap().pixel.into() }
    });
    let mut detection = Detection::of_corners(corners.collect(), blur);
    detection.square_px = camera.focal[0] * 0.03 / depth;
    [Ok(detection.clone()), Ok(detection)]
}

fn plain(x: f64, y: f64) -> [Result<Detection, NotFound>; 2] {
    seen([x, y], 0.6, [0.0, 0.0], 2.0)
}

fn guide(stills: bool) -> Guide {
    Guide::new(board(), [SIZE; 2], Model::PlumbBob, stills)
}

fn at(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn refused(judgement: Judgement) -> String {
    match judgement {
        Judgement::Keep => panic!("it was kept"),
        Judgement::Refuse(refusal) => refusal.to_string(),
    }
}

#[test]
fn what_is_still_sharp_and_new_is_kept() {
    let mut guide = guide(false);
    assert!(refused(guide.assess(at(0), &plain(320.0, 240.0))).contains("hold"));
    let moving = refused(guide.assess(at(33), &plain(323.0, 240.0)));
    assert!(moving.starts_with("the board moves (91 px/s, up to 26 is still)"), "{moving}");
    let still = plain(323.2, 240.0);
    assert_eq!(guide.assess(at(66), &still), Judgement::Keep);
    guide.keep(fit(&still).unwrap());
    assert!(refused(guide.assess(at(99), &still)).contains("taken already"));
    // Elsewhere, and in the same place but tilted.
    for pair in [plain(360.0, 240.0), seen([323.0, 240.0], 0.6, [0.5, 0.3], 2.0)] {
        guide.assess(at(150), &pair);
        assert_eq!(guide.assess(at(183), &pair), Judgement::Keep);
    }
    // After a gap the speed is not known.
    assert!(refused(guide.assess(at(2000), &plain(200.0, 200.0))).contains("hold"));
    // Pictures that were taken one by one have no speed.
    assert_eq!(self::guide(true).assess(at(0), &plain(320.0, 240.0)), Judgement::Keep);
}

#[test]
fn what_is_blurred_or_hidden_is_not() {
    let mut guide = guide(true);
    for i in 0..5 {
        guide.assess(at(i), &seen([320.0, 240.0], 0.6, [0.0, 0.0], 3.0));
    }
    let blurred = seen([320.0, 240.0], 0.6, [0.0, 0.0], 6.0);
    let words = refused(guide.assess(at(9), &blurred));
    assert!(words.contains("left picture is blurred") && words.contains("5.4"), "{words}");
    let [left, _] = plain(320.0, 240.0);
    let words = refused(guide.assess(at(10), &[left, Err(NotFound::Nothing)]));
    assert_eq!(words, "in the right view no board is seen whole");
    let size = NotFound::Size { columns: 8, rows: 6, wanted_columns: 9, wanted_rows: 6 };
    let words = refused(guide.assess(at(11), &[Err(NotFound::Nothing), Err(size)]));
    assert_eq!(words, "in the right view a grid of 8x6 corners is seen instead of 9x6");
}

#[test]
fn wishes_are_fulfilled_one_by_one() {
    let mut guide = guide(true);
    let wants = |guide: &Guide, wish: Wish| guide.missing().iter().any(|w| w.wish == wish);
    let keep = |guide: &mut Guide, pair| guide.keep(fit(&pair).unwrap());
    assert_eq!(guide.progress(), 0.0);
    let upper = Wish::Part(Eye::Left, Part::Row(0));
    assert!(wants(&guide, upper) && wants(&guide, Wish::Near) && wants(&guide, Wish::Pairs));
    keep(&mut guide, plain(150.0, 100.0));
    assert!(!wants(&guide, upper));
    assert!(wants(&guide, Wish::Part(Eye::Left, Part::Column(2))));
    for _ in 0..3 {
        // Its right side leans away, its lower side leans away: both for a turn of these signs.
        keep(&mut guide, seen([480.0, 300.0], 0.6, [0.5, -0.5], 2.0));
    }
    assert!(!wants(&guide, Wish::TiltedSideways { right: true }));
    assert!(!wants(&guide, Wish::TiltedUpright { lower: true }));
    assert!(wants(&guide, Wish::TiltedSideways { right: false }));
    for _ in 0..3 {
        keep(&mut guide, seen([480.0, 120.0], 0.45, [-0.5, 0.5], 2.0));
        keep(&mut guide, seen([150.0, 360.0], 1.0, [0.0, 0.0], 2.0));
    }
    for wish in [Wish::Near, Wish::Far, Wish::TiltedSideways { right: false }] {
        assert!(!wants(&guide, wish), "{wish}");
    }
    for x in 0..4 {
        keep(&mut guide, plain(120.0 + 125.0 * f64::from(x), 240.0));
    }
    let before = guide.progress();
    assert!(before > 0.8 && !guide.missing().is_empty(), "{before} {:?}", guide.missing());
    for (x, y) in [(170.0, 120.0), (470.0, 360.0), (320.0, 100.0), (320.0, 380.0), (500.0, 100.0)] {
        keep(&mut guide, plain(x, y));
    }
    assert_eq!(guide.missing(), []);
    assert_eq!(guide.progress(), 1.0);
}

#[test]
fn the_most_different_pairs_are_chosen() {
    let pair = |x: f64| fit(&plain(x, 240.0)).unwrap();
    let pairs: Vec<_> = [200.0, 201.0, 202.0, 400.0, 300.0, 399.0].map(pair).into();
    assert_eq!(most_diverse(&pairs, 3), [0, 3, 4]);
    assert_eq!(most_diverse(&pairs, 9), [0, 1, 2, 3, 4, 5]);
}
