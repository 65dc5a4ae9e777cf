//! Calibration boards to print, as PDF and SVG, with a ruler to check the printer's scale.

use std::fmt::Write;

use pdf_writer::{Content, Name, Pdf, Rect, Ref, Str};

use super::{Board, Ink, Pattern, ink};

/// Margin around everything in mm, because no printer reaches the edge.
const MARGIN: f64 = 10.0;

/// Height of the ruler and its text below the board, in mm.
const RULER: f64 = 14.0;

/// Length of the ruler in mm.
const RULER_LENGTH: f64 = 100.0;

/// Size of the text in mm.
const TEXT: f64 = 2.8;

/// Points of PDF in a millimetre.
const POINTS: f64 = 72.0 / 25.4;

/// Largest side of a PDF page in mm.
const LARGEST: f64 = 14_400.0 / POINTS;

/// Paper size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// 210 x 297 mm.
    A4,
    /// 297 x 420 mm.
    A3,
    /// 8.5 x 11 inches.
    Letter,
    /// As large as the board needs.
    Board,
}

impl Page {
    /// Returns its name, and the width and height in portrait in mm; `None` for as large as needed.
    fn of(self) -> (&'static str, Option<(f64, f64)>) {
        match self {
            Page::A4 => ("A4", Some((210.0, 297.0))),
            Page::A3 => ("A3", Some((297.0, 420.0))),
            Page::Letter => ("letter", Some((215.9, 279.4))),
            Page::Board => ("paper of its own size", None),
        }
    }
}

/// A board on a page; lengths in mm from the upper left corner, x to the right, y down.
#[derive(Clone, Debug)]
pub struct Sheet {
    page: Page,
    width: f64,
    height: f64,
    ink: Vec<Ink>,
    ruler: (f64, f64),
    text: String,
}

impl Sheet {
    /// Places a board in the middle of a page; without a page, of the smallest of A4, A3 and its
    /// own size that holds it.
    pub fn new(board: &Board, page: Option<Page>) -> Result<Sheet, String> {
        let (width, height) = board.size_m();
        let (width, height) = (1e3 * width, 1e3 * height);
        let needed = (width.max(RULER_LENGTH) + 2.0 * MARGIN, height + RULER + 2.0 * MARGIN);
        let fits = |(width, height): (f64, f64)| needed.0 <= width && needed.1 <= height;
        // Portrait or landscape.
        let oriented = |page: Page| match page.of().1 {
            None => Some(needed).filter(|size| size.0.max(size.1) <= LARGEST),
            Some((short, long)) => [(short, long), (long, short)].into_iter().find(|&s| fits(s)),
        };
        let pages = match page {
            Some(page) => vec![page],
            None => vec![Page::A4, Page::A3, Page::Board],
        };
        let found = pages.iter().find_map(|&page| Some((page, oriented(page)?)));
        let (page, (page_width, page_height)) = found.ok_or_else(|| {
            let page = pages[pages.len() - 1];
            format!(
                "the board with its margins and ruler takes {:.0}x{:.0} mm and does not fit on {}; \
                 take smaller squares or another --page",
                needed.0,
                needed.1,
                page.of().0
            )
        })?;
        let left = (page_width - width) / 2.0;
        let top = (page_height - RULER - height) / 2.0;
        let to_page = |ink: &Ink| Ink {
            x: 1e3 * ink.x + left,
            y: 1e3 * ink.y + top,
            width: 1e3 * ink.width,
            height: 1e3 * ink.height,
        };
        let marker = match board.pattern {
            Pattern::Charuco { marker_ratio, .. } => {
                format!(", markers {}", rounded(1e3 * board.square_m * marker_ratio))
            }
            Pattern::Chessboard { .. } | Pattern::AprilGrid { .. } => String::new(),
        };
        let squares = match board.pattern {
            Pattern::AprilGrid { .. } => "tags",
            _ => "squares",
        };
        let square = rounded(1e3 * board.square_m);
        Ok(Sheet {
            page,
            width: page_width,
            height: page_height,
            ink: ink(board).iter().map(to_page).collect(),
            ruler: ((page_width - RULER_LENGTH) / 2.0, top + height + RULER / 2.0),
            text: format!(
                "{}, {squares} {square} mm{marker}. Print at 100 %: the line is 100 mm long.",
                board.pattern
            ),
        })
    }

    pub fn paper(&self) -> String {
        format!("{} ({:.0}x{:.0} mm)", self.page.of().0, self.width, self.height)
    }

    /// Returns the ruler's lines with a mark at every centimetre, as ends (x, y).
    fn ruler_lines(&self) -> Vec<[f64; 4]> {
        let (x, y) = self.ruler;
        let mut lines = vec![[x, y, x + RULER_LENGTH, y]];
        for centimetre in 0..=10 {
            let at = x + 10.0 * f64::from(centimetre);
            let length = if centimetre % 5 == 0 { 2.5 } else { 1.5 };
            lines.push([at, y, at, y - length]);
        }
        lines
    }

    fn text_at(&self) -> (f64, f64) {
        (self.ruler.0, self.ruler.1 + TEXT + 1.2)
    }
}

/// Formats a length without meaningless digits.
fn rounded(length: f64) -> f64 {
    (length * 1e3).round() / 1e3
}

pub fn svg(sheet: &Sheet) -> String {
    let (width, height) = (rounded(sheet.width), rounded(sheet.height));
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}mm\" height=\"{height}mm\" \
         viewBox=\"0 0 {width} {height}\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n<path fill=\"black\" d=\""
    );
    // One path, so that no gap shows between touching rectangles.
    for Ink { x, y, width, height } in &sheet.ink {
        let _ = write!(text, "M{x:.4} {y:.4}h{width:.4}v{height:.4}h-{width:.4}z");
    }
    text.push_str("\"/>\n<path stroke=\"black\" stroke-width=\"0.2\" d=\"");
    for [x1, y1, x2, y2] in sheet.ruler_lines() {
        let _ = write!(text, "M{x1:.3} {y1:.3}L{x2:.3} {y2:.3}");
    }
    let (x, y) = sheet.text_at();
    let _ = writeln!(
        text,
        "\"/>\n<text x=\"{x:.3}\" y=\"{y:.3}\" font-family=\"Helvetica, Arial, sans-serif\" \
         font-size=\"{TEXT}\">{}</text>\n</svg>",
        sheet.text
    );
    text
}

pub fn pdf(sheet: &Sheet) -> Vec<u8> {
    let [catalog, pages, page, font, content] = [1, 2, 3, 4, 5].map(Ref::new);
    let (name, points) = (Name(b"F1"), |length: f64| (length * POINTS) as f32);
    let mut pdf = Pdf::new();
    pdf.catalog(catalog)
        .pages(pages)
        .viewer_preferences()
        .pair(Name(b"PrintScaling"), Name(b"None"));
    pdf.pages(pages).kids([page]).count(1);
    let mut written = pdf.page(page);
    written.media_box(Rect::new(0.0, 0.0, points(sheet.width), points(sheet.height)));
    written.parent(pages).contents(content);
    written.resources().fonts().pair(name, font);
    drop(written);
    // One of the fonts that every reader has.
    pdf.type1_font(font).base_font(Name(b"Helvetica"));
    // From here on in mm from the upper left corner.
    let scale = POINTS as f32;
    let mut drawn = Content::new();
    drawn.transform([scale, 0.0, 0.0, -scale, 0.0, points(sheet.height)]);
    for Ink { x, y, width, height } in &sheet.ink {
        drawn.rect(*x as f32, *y as f32, *width as f32, *height as f32);
    }
    drawn.fill_nonzero();
    drawn.set_line_width(0.2);
    for [x1, y1, x2, y2] in sheet.ruler_lines() {
        drawn.move_to(x1 as f32, y1 as f32).line_to(x2 as f32, y2 as f32);
    }
    drawn.stroke();
    let (x, y) = sheet.text_at();
    drawn.begin_text().set_font(name, TEXT as f32);
    // With y down, text would be upside down.
    drawn.set_text_matrix([1.0, 0.0, 0.0, -1.0, x as f32, y as f32]);
    drawn.show(Str(sheet.text.as_bytes())).end_text();
    pdf.stream(content, &drawn.finish());
    pdf.finish()
}

#[cfg(test)]
mod tests {
    use super::super::pattern;
    use super::*;

    fn board(text: &str, square: f64) -> Board {
        Board::new(pattern(text).unwrap(), square).unwrap()
    }

    #[test]
    fn the_smallest_page_is_taken() {
        let paper = |text: &str, square: f64, page| {
            Sheet::new(&board(text, square), page).map(|sheet| sheet.paper())
        };
        assert_eq!(paper("chessboard:9x6", 0.025, None).unwrap(), "A4 (297x210 mm)");
        assert_eq!(paper("chessboard:6x9", 0.025, None).unwrap(), "A4 (210x297 mm)");
        assert_eq!(paper("chessboard:9x6", 0.035, None).unwrap(), "A3 (420x297 mm)");
        let own = "paper of its own size (1020x734 mm)";
        assert_eq!(paper("chessboard:9x6", 0.1, None).unwrap(), own);
        let refused = paper("chessboard:9x6", 0.035, Some(Page::A4)).unwrap_err();
        assert!(refused.contains("370x279 mm") && refused.contains("A4"), "{refused}");
        assert!(paper("chessboard:9x6", 5.0, None).is_err());
        // The ruler needs its 100 mm next to a small board too.
        let small = paper("chessboard:3x3", 0.01, Some(Page::Board)).unwrap();
        assert_eq!(small, "paper of its own size (120x74 mm)");
    }

    #[test]
    fn the_board_is_to_scale_and_within_the_page() {
        for text in ["chessboard:9x6", "charuco:9x6"] {
            let sheet = Sheet::new(&board(text, 0.02), None).unwrap();
            let (mut left, mut right) = (f64::INFINITY, 0.0f64);
            for ink in &sheet.ink {
                assert!(ink.x >= MARGIN && ink.y >= MARGIN);
                assert!(ink.y + ink.height <= sheet.height - MARGIN - RULER + 1e-9);
                (left, right) = (left.min(ink.x), right.max(ink.x + ink.width));
            }
            let width = if text.starts_with("chess") { 200.0 } else { 180.0 };
            assert!((right - left - width).abs() < 20.0 + 1e-9);
            assert!(sheet.text_at().1 < sheet.height - 2.0);
        }
    }
}
