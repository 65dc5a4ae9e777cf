//! Common tree of YAML, JSON and XML: numbers and texts in lists and maps, each with its line.
//! Access functions return errors that name the file, the line and the key.

use nalgebra::{Matrix3, Matrix3x4, Matrix4, Vector3};

use crate::error::Result;
use crate::{CalibrationError, Camera, Lens};

/// Deepest nesting accepted; no calibration comes near.
pub(super) const DEPTH_MAX: usize = 64;

/// A value with its place.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    /// Its line, from 1, if the syntax has lines.
    pub line: Option<usize>,
    pub value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Number(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Node {
    pub fn new(line: Option<usize>, value: Value) -> Self {
        Self { line, value }
    }

    /// Returns the value of an unquoted word.
    pub fn of_word(line: Option<usize>, word: &str) -> Self {
        let value = match word {
            "" | "~" | "null" | "Null" | "NULL" => Value::Null,
            _ => match number(word) {
                Some(number) => Value::Number(number),
                None => Value::Text(word.to_owned()),
            },
        };
        Self { line, value }
    }

    /// Returns the value of a key, if this is a map with it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.value {
            Value::Map(entries) => {
                entries.iter().find(|(name, _)| name == key).map(|(_, node)| node)
            }
            _ => None,
        }
    }

    /// Reports whether there are numbers in rows and columns here, or in a row.
    pub fn is_matrix(&self) -> bool {
        match &self.value {
            Value::List(_) => true,
            Value::Map(_) => self.get("data").is_some(),
            _ => false,
        }
    }

    pub fn is_number(&self) -> bool {
        matches!(self.value, Value::Number(_))
    }

    fn kind(&self) -> String {
        match &self.value {
            Value::Null => "nothing".into(),
            Value::Number(number) => format!("the number {number}"),
            Value::Text(text) => {
                let cut: String = text.chars().take(40).collect();
                format!("the text {cut:?}")
            }
            Value::List(items) => format!("a list of {}", items.len()),
            Value::Map(_) => "a group of keys".into(),
        }
    }
}

/// Parses a number as YAML and OpenCV write it: `1`, `1.`, `.5`, `1e-3`, `.Inf`, `-.NaN`.
pub(super) fn number(word: &str) -> Option<f64> {
    let unsigned = word.strip_prefix(['-', '+']).unwrap_or(word);
    match unsigned.to_ascii_lowercase().as_str() {
        ".inf" | "inf" | "infinity" => Some(f64::INFINITY),
        ".nan" | "nan" => Some(f64::NAN),
        // Not words such as "infinite" and "nano", nor hexadecimal numbers, which are not used here.
        lower if lower.starts_with(|c: char| c.is_ascii_digit() || c == '.') => word.parse().ok(),
        _ => None,
    }
}

/// A value of a file with its path.
#[derive(Clone, Debug)]
pub(super) struct At<'a> {
    file: &'a str,
    path: String,
    pub node: &'a Node,
}

/// Numbers row by row, with the numbers of rows and columns if known.
type Cells = (Vec<f64>, Option<(usize, usize)>);

impl<'a> At<'a> {
    pub fn root(file: &'a str, node: &'a Node) -> Self {
        Self { file, path: String::new(), node }
    }

    pub fn file(&self) -> &'a str {
        self.file
    }

    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns every key of a map with its value.
    pub fn entries(&self) -> Vec<(&'a str, At<'a>)> {
        match &self.node.value {
            Value::Map(entries) => {
                entries.iter().map(|(key, node)| (key.as_str(), self.below(key, node))).collect()
            }
            _ => Vec::new(),
        }
    }

    pub fn keys(&self) -> String {
        let keys: Vec<_> = self.entries().iter().take(12).map(|(key, _)| *key).collect();
        if keys.is_empty() { "none".to_owned() } else { keys.join(", ") }
    }

    pub fn items(&self) -> Vec<At<'a>> {
        match &self.node.value {
            Value::List(items) => items
                .iter()
                .enumerate()
                .map(|(at, node)| At {
                    file: self.file,
                    path: format!("{}[{at}]", self.path),
                    node,
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    fn below(&self, key: &str, node: &'a Node) -> At<'a> {
        let path =
            if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        At { file: self.file, path, node }
    }

    /// Returns the value of a key; `None` if it is missing or empty.
    pub fn get(&self, key: &str) -> Option<At<'a>> {
        let node = self.node.get(key).filter(|node| node.value != Value::Null)?;
        Some(self.below(key, node))
    }

    /// Returns the value of the first present key.
    pub fn any(&self, keys: &[&str]) -> Option<At<'a>> {
        keys.iter().find_map(|key| self.get(key))
    }

    pub fn need(&self, key: &str) -> Result<At<'a>> {
        self.need_any(&[key])
    }

    /// Returns the value of the first present key; one of them is required.
    pub fn need_any(&self, keys: &[&str]) -> Result<At<'a>> {
        self.any(keys).ok_or_else(|| {
            self.error(format!("`{}` is missing: the file is incomplete or cut off", keys[0]))
        })
    }

    pub fn error(&self, what: impl std::fmt::Display) -> CalibrationError {
        let line = self.node.line.filter(|_| !self.path.is_empty());
        let line = line.map(|line| format!(":{line}")).unwrap_or_default();
        let path = if self.path.is_empty() { String::new() } else { format!(" {}:", self.path) };
        CalibrationError::new(format!("{}{line}:{path} {what}", self.file))
    }

    fn expected(&self, what: &str) -> CalibrationError {
        self.error(format!("expected {what}, found {}", self.node.kind()))
    }

    /// Returns a finite number.
    pub fn number(&self) -> Result<f64> {
        match self.node.value {
            Value::Number(number) if number.is_finite() => Ok(number),
            Value::Number(number) => Err(self.error(format!("{number} is not a finite number"))),
            _ => Err(self.expected("a number")),
        }
    }

    pub fn whole(&self) -> Result<usize> {
        let number = self.number()?;
        if number < 0.0 || number.fract() != 0.0 || number > 1e9 {
            return Err(self.error(format!("expected a whole number, found {number}")));
        }
        Ok(number as usize)
    }

    pub fn side(&self) -> Result<usize> {
        match self.whole()? {
            side @ 1..=32768 => Ok(side),
            side => Err(self.error(format!("{side} pixels is no side of a picture"))),
        }
    }

    /// Returns width and height of an image: a list of two, or a matrix with one row or one column.
    pub fn size(&self) -> Result<(usize, usize)> {
        let rows = self.get("data").unwrap_or_else(|| self.clone()).items();
        let cells = rows.into_iter().flat_map(|row| match row.items() {
            cells if cells.is_empty() => vec![row],
            cells => cells,
        });
        match cells.collect::<Vec<_>>().as_slice() {
            [width, height] => Ok((width.side()?, height.side()?)),
            _ => Err(self.expected("width and height, such as [640, 480]")),
        }
    }

    pub fn text(&self) -> Result<&'a str> {
        match &self.node.value {
            Value::Text(text) => Ok(text),
            _ => Err(self.expected("a text")),
        }
    }

    /// See [`Node::is_matrix`].
    pub fn is_matrix(&self) -> bool {
        self.node.is_matrix()
    }

    /// Returns all numbers of a matrix, row by row, and its rows and columns if known: from a list,
    /// a list of rows, or a group of `rows`, `cols` and `data`.
    fn cells(&self) -> Result<Cells> {
        if self.node.get("data").is_some() {
            // OpenCV's XML has an empty element for an empty matrix.
            let cells = match self.get("data") {
                Some(data) => data.cells()?.0,
                None => Vec::new(),
            };
            let (Some(rows), Some(cols)) = (self.get("rows"), self.get("cols")) else {
                return Ok((cells, None));
            };
            let (rows, cols) = (rows.whole()?, cols.whole()?);
            if rows.checked_mul(cols) != Some(cells.len()) {
                return Err(self.error(format!(
                    "{rows} rows and {cols} columns, but {} numbers",
                    cells.len()
                )));
            }
            return Ok((cells, Some((rows, cols))));
        }
        if !matches!(self.node.value, Value::List(_)) {
            return Err(self.expected("numbers in a list"));
        }
        let items = self.items();
        if !items.iter().any(|item| matches!(item.node.value, Value::List(_))) {
            let cells = items.iter().map(At::number).collect::<Result<_>>()?;
            return Ok((cells, None));
        }
        let rows: Vec<Vec<f64>> = items
            .iter()
            .map(|row| row.items_or_wrong()?.iter().map(At::number).collect())
            .collect::<Result<_>>()?;
        let cols = rows[0].len();
        if rows.iter().any(|row| row.len() != cols) {
            return Err(self.error("its rows differ in length"));
        }
        Ok((rows.concat(), Some((rows.len(), cols))))
    }

    fn items_or_wrong(&self) -> Result<Vec<At<'a>>> {
        match self.node.value {
            Value::List(_) => Ok(self.items()),
            _ => Err(self.expected("a row of numbers")),
        }
    }

    /// Returns all numbers of a list or of a matrix with one row or one column.
    pub fn numbers(&self) -> Result<Vec<f64>> {
        match self.cells()? {
            (_, Some((rows, cols))) if rows > 1 && cols > 1 => {
                Err(self.error(format!("expected a row of numbers, found {rows}x{cols}")))
            }
            (cells, _) => Ok(cells),
        }
    }

    pub fn exactly<const N: usize>(&self) -> Result<[f64; N]> {
        let numbers = self.numbers()?;
        let found = numbers.len();
        numbers.try_into().map_err(|_| self.error(format!("expected {N} numbers, found {found}")))
    }

    /// Returns the cells of a matrix of this shape.
    fn shaped(&self, rows: usize, cols: usize) -> Result<Vec<f64>> {
        let (cells, shape) = self.cells()?;
        let found = match shape {
            Some(shape) if shape == (rows, cols) => return Ok(cells),
            None if cells.len() == rows * cols => return Ok(cells),
            Some((rows, cols)) => format!("{rows}x{cols}"),
            None => format!("{} numbers", cells.len()),
        };
        Err(self.error(format!("expected a {rows}x{cols} matrix, found {found}")))
    }

    pub fn matrix3(&self) -> Result<Matrix3<f64>> {
        Ok(Matrix3::from_row_slice(&self.shaped(3, 3)?))
    }

    pub fn matrix3x4(&self) -> Result<Matrix3x4<f64>> {
        Ok(Matrix3x4::from_row_slice(&self.shaped(3, 4)?))
    }

    /// Returns a rigid motion: the rotation and translation of a 4x4 matrix with the last row 0 0 0 1.
    /// A matrix of three rows lacks the last one.
    pub fn motion(&self) -> Result<(Matrix3<f64>, Vector3<f64>)> {
        if let Ok(matrix) = self.matrix3x4() {
            return Ok((
                matrix.fixed_view::<3, 3>(0, 0).into(),
                matrix.fixed_view::<3, 1>(0, 3).into(),
            ));
        }
        let matrix = Matrix4::from_row_slice(&self.shaped(4, 4)?);
        if matrix.row(3).iter().zip([0.0, 0.0, 0.0, 1.0]).any(|(found, due)| *found != due) {
            return Err(self.error("the last row of a rigid motion is 0 0 0 1"));
        }
        Ok((matrix.fixed_view::<3, 3>(0, 0).into(), matrix.fixed_view::<3, 1>(0, 3).into()))
    }

    /// Returns the camera with this matrix and images of this size.
    pub fn camera(&self, (width, height): (usize, usize), lens: Lens) -> Result<Camera> {
        let k = self.matrix3()?;
        if k[(2, 0)] != 0.0 || k[(2, 1)] != 0.0 || k[(2, 2)] != 1.0 || k[(1, 0)] != 0.0 {
            return Err(self.error(
                "not a camera matrix, whose rows are fx 0 cx, 0 fy cy and 0 0 1 (transposed?)",
            ));
        }
        let skew = match lens {
            Lens::Fisheye(_) => k[(0, 1)],
            // OpenCV's functions for these lenses ignore it.
            Lens::Brown(_) if k[(0, 1)].abs() <= 0.1 => 0.0,
            Lens::Brown(_) => {
                return Err(self.error(format!(
                    "a skew of {} is supported for fisheye lenses only: add the line \
                     `distortion_model: fisheye` if this is one, or calibrate with the skew fixed at 0",
                    k[(0, 1)]
                )));
            }
        };
        let (focal, centre) = ([k[(0, 0)], k[(1, 1)]], [k[(0, 2)], k[(1, 2)]]);
        Ok(Camera { width, height, focal, centre, skew, lens })
    }
}
