//! Conversion of YAML, JSON and XML to one tree. The first line decides the syntax of a text.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use super::tree::{DEPTH_MAX, Node, Value, number};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    Yaml,
    Json,
    Xml,
    Toml,
}

/// Returns the syntax of a text by its first line that is no comment.
pub(super) fn recognise(text: &str) -> Option<Syntax> {
    let mut lines = text.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with('#'))?;
    let bare = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.\"".contains(c));
    let is_section = || {
        let inside = first.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        inside.is_some_and(|(name, _)| bare(name.trim_matches(['[', ' '])))
    };
    Some(match first.as_bytes()[0] {
        b'{' => Syntax::Json,
        b'<' => Syntax::Xml,
        _ if is_section() => Syntax::Toml,
        _ if first.split_once('=').is_some_and(|(key, _)| bare(key.trim())) => Syntax::Toml,
        _ => Syntax::Yaml,
    })
}

/// Returns the tree of a YAML text (its first document). OpenCV's header `%YAML:1.0`, which is not
/// valid YAML, and its tags are skipped.
pub(super) fn yaml(text: &str) -> Result<Node, String> {
    // The line becomes empty, so that later lines keep their numbers.
    let text = match text.find('\n') {
        Some(end) if text.starts_with("%YAML") => &spaced(&text[end..]),
        None if text.starts_with("%YAML") => "",
        _ => text,
    };
    let mut loader = Loader::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let hint = match error.info() {
                "recursion limit exceeded" => "nested too deeply for a calibration",
                _ => "is the file cut off?",
            };
            format!(":{}: {} ({hint})", error.marker().line(), error.info())
        })?;
        let line = span.start.line();
        if let Some(root) = loader.take(event, line).map_err(|error| format!(":{line}: {error}"))? {
            return Ok(root);
        }
    }
    Ok(Node::new(None, Value::Null))
}

/// Returns a text of OpenCV's YAML with a blank between each key and its value: `data:[1, 2]`, which OpenCV reads,
/// is no key for YAML.
fn spaced(text: &str) -> String {
    let is_key = |key: &str| {
        !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
    };
    let line = |line: &str| match line.split_once(':') {
        Some((key, value))
            if is_key(key.trim_start()) && !value.starts_with([' ', '\r', '\n', ':']) =>
        {
            format!("{key}: {value}")
        }
        _ => line.to_owned(),
    };
    text.split_inclusive('\n').map(line).collect()
}

/// Largest number of values of an XML text.
const NODES_MAX: usize = 1_000_000;

/// Largest memory of the values of a YAML text in bytes; each expansion of an alias counts.
const BYTES_MAX: usize = 32 << 20;

/// Largest number of keys of a map. Each is compared with all others.
const KEYS_MAX: usize = 1024;

/// Largest number of attributes of an XML text. Its reader compares each with all others of its element.
const ATTRIBUTES_MAX: usize = 4096;

const TOO_MANY: &str = "far too many values for a calibration";

/// State of reading YAML.
#[derive(Default)]
struct Loader {
    open: Vec<(Node, usize, Option<String>)>,
    /// Values with an anchor, and their memory.
    anchors: HashMap<usize, (Node, usize)>,
    /// Memory of all values.
    bytes: usize,
}

impl Loader {
    /// Processes one event; returns the root once it is complete.
    fn take(&mut self, event: Event, line: usize) -> Result<Option<Node>, String> {
        let line = Some(line);
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let node = match style {
                    ScalarStyle::Plain => Node::of_word(line, &text),
                    _ => Node::new(line, Value::Text(text.into_owned())),
                };
                self.add(memory(&node))?;
                self.put(node, anchor)
            }
            Event::SequenceStart(anchor, _) => {
                self.open(Node::new(line, Value::List(Vec::new())), anchor)
            }
            Event::MappingStart(anchor, _) => {
                self.open(Node::new(line, Value::Map(Vec::new())), anchor)
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let (node, anchor, _) = self.open.pop().ok_or("a list ends that never began")?;
                self.put(node, anchor)
            }
            Event::Alias(anchor) => {
                let anchored = self.anchors.get(&anchor);
                let bytes = anchored.ok_or("an alias without an anchor")?.1;
                self.add(bytes)?;
                let node = self.anchors[&anchor].0.clone();
                self.put(node, 0)
            }
            _ => Ok(None),
        }
    }

    fn open(&mut self, node: Node, anchor: usize) -> Result<Option<Node>, String> {
        if self.open.len() >= DEPTH_MAX {
            return Err("nested too deeply for a calibration".into());
        }
        self.add(memory(&node))?;
        self.open.push((node, anchor, None));
        Ok(None)
    }

    /// Counts memory before it is taken.
    fn add(&mut self, bytes: usize) -> Result<(), String> {
        self.bytes += bytes;
        if self.bytes > BYTES_MAX { Err(TOO_MANY.into()) } else { Ok(()) }
    }

    /// Puts a complete value into the innermost open list or map.
    fn put(&mut self, node: Node, anchor: usize) -> Result<Option<Node>, String> {
        if anchor > 0 {
            // Lists with anchors may be nested; each keeps a copy of its content.
            let bytes = memory(&node);
            self.add(bytes)?;
            self.anchors.insert(anchor, (node.clone(), bytes));
        }
        let Some((parent, _, key)) = self.open.last_mut() else { return Ok(Some(node)) };
        match &mut parent.value {
            Value::List(items) => items.push(node),
            Value::Map(entries) => match key.take() {
                None => *key = Some(as_key(&node)?),
                Some(key) => {
                    check_key(entries, &key)?;
                    entries.push((key, node));
                }
            },
            _ => unreachable!("only lists and maps are open"),
        }
        Ok(None)
    }
}

fn check_key(entries: &[(String, Node)], key: &str) -> Result<(), String> {
    if entries.iter().any(|(name, _)| name == key) {
        return Err(format!("`{key}` is there twice"));
    }
    match entries.len() < KEYS_MAX {
        true => Ok(()),
        false => Err("far too many keys for a calibration".into()),
    }
}

/// Returns the memory of a value in bytes.
fn memory(node: &Node) -> usize {
    let inside = match &node.value {
        Value::Text(text) => text.len(),
        Value::List(items) => items.iter().map(memory).sum(),
        Value::Map(entries) => entries.iter().map(|(key, node)| key.len() + memory(node)).sum(),
        Value::Null | Value::Number(_) => 0,
    };
    size_of::<Node>() + inside
}

fn as_key(node: &Node) -> Result<String, String> {
    match &node.value {
        Value::Text(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Null => Ok(String::new()),
        _ => Err("a key is a word, not a list".into()),
    }
}

pub(super) fn json(text: &str) -> Result<Node, String> {
    serde_json::from_str(text).map_err(|error| {
        let (line, mut what) = (error.line(), error.to_string());
        // The place stands in front, as for other formats.
        if let Some(at) = what.rfind(" at line ") {
            what.truncate(at);
        }
        let cut = if error.is_eof() { " (the file is cut off)" } else { "" };
        format!(":{line}: {what}{cut}")
    })
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Value;
            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("a value")
            }
            fn visit_unit<E>(self) -> Result<Value, E> {
                Ok(Value::Null)
            }
            fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
                Ok(Value::Text(value.to_string()))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
                Ok(Value::Number(value as f64))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
                Ok(Value::Number(value as f64))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
                Ok(Value::Number(value))
            }
            fn visit_str<E>(self, value: &str) -> Result<Value, E> {
                Ok(Value::Text(value.to_owned()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = list.next_element()? {
                    items.push(item);
                }
                Ok(Value::List(items))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
                let mut entries: Vec<(String, Node)> = Vec::new();
                while let Some((key, node)) = map.next_entry::<String, Node>()? {
                    check_key(&entries, &key).map_err(A::Error::custom)?;
                    entries.push((key, node));
                }
                Ok(Value::Map(entries))
            }
        }
        deserializer.deserialize_any(Any).map(|value| Node::new(None, value))
    }
}

/// Returns the tree of an XML text as OpenCV writes it: elements are keys, elements named `_` are
/// items, numbers between blanks are a list.
pub(super) fn xml(text: &str) -> Result<Node, String> {
    // Anywhere in the text, because every attribute has one.
    if text.matches('=').count() > ATTRIBUTES_MAX {
        return Err(": far too many attributes for a calibration".into());
    }
    let options = roxmltree::ParsingOptions { nodes_limit: NODES_MAX as u32, ..Default::default() };
    let document = roxmltree::Document::parse_with_options(text, options).map_err(|error| {
        if matches!(error, roxmltree::Error::NodesLimitReached) {
            return format!(": {TOO_MANY}");
        }
        let what = error.to_string();
        let what = what.rsplit_once(" at ").map_or(what.as_str(), |(what, _)| what);
        format!(":{}: {what} (is the file cut off?)", error.pos().row)
    })?;
    let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    element(document.root_element(), &ends, 0)
}

/// Parses an element; `ends` are the ends of the lines.
fn element(element: roxmltree::Node, ends: &[usize], depth: usize) -> Result<Node, String> {
    let line = 1 + ends.partition_point(|end| *end < element.range().start);
    if depth > DEPTH_MAX {
        return Err(format!(":{line}: nested too deeply for a calibration"));
    }
    let mut items = Vec::new();
    let mut entries: Vec<(String, Node)> = Vec::new();
    for child in element.children().filter(roxmltree::Node::is_element) {
        let node = self::element(child, ends, depth + 1)?;
        let name = child.tag_name().name();
        if name == "_" {
            items.push(node);
        } else {
            let line = node.line.unwrap_or(line);
            check_key(&entries, name).map_err(|what| format!(":{line}: {what}"))?;
            entries.push((name.to_owned(), node));
        }
    }
    let value = match (items.is_empty(), entries.is_empty()) {
        (false, true) => Value::List(items),
        (_, false) => Value::Map(entries),
        (true, true) => return Ok(words(line, element.text().unwrap_or_default())),
    };
    Ok(Node::new(Some(line), value))
}

fn words(line: usize, text: &str) -> Node {
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.len() > 1 && words.iter().all(|word| number(word).is_some()) {
        let items = words.iter().map(|word| Node::of_word(Some(line), word)).collect();
        return Node::new(Some(line), Value::List(items));
    }
    let text = text.trim();
    match text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(quoted) => Node::new(Some(line), Value::Text(quoted.to_owned())),
        None => Node::of_word(Some(line), text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find<'a>(node: &'a Node, path: &str) -> &'a Value {
        &path.split('.').fold(node, |node, key| node.get(key).unwrap()).value
    }

    #[test]
    fn syntaxes_are_recognised_by_content() {
        for (text, syntax) in [
            ("%YAML:1.0\n---\nK1: 1", Syntax::Yaml),
            ("# a comment\n\nimage_width: 3", Syntax::Yaml),
            ("\n { \"a\": 1 }", Syntax::Json),
            ("<?xml version=\"1.0\"?><a/>", Syntax::Xml),
            ("# mine\nversion = 1", Syntax::Toml),
            ("[left]\nsize = [3, 4]", Syntax::Toml),
            ("name: a=b", Syntax::Yaml),
        ] {
            assert_eq!(recognise(text), Some(syntax), "{text}");
        }
        assert_eq!(recognise("# only\n\n"), None);
    }

    #[test]
    fn opencv_yaml_with_its_header_and_tags() {
        let text = "%YAML:1.0\n---\nK1: !!opencv-matrix\n   rows: 1\n   cols: 3\n   dt: d\n   \
                    data: [ 1., -.5,\n       2.5e-3 ]\nname: \"12\"\nsize: [ 640, 480 ]\n";
        let root = yaml(text).unwrap();
        let Value::List(items) = find(&root, "K1.data") else { panic!("no list") };
        let numbers: Vec<_> = items.iter().map(|item| item.value.clone()).collect();
        assert_eq!(numbers, [1.0, -0.5, 2.5e-3].map(Value::Number));
        assert_eq!(items[2].line, Some(8));
        assert_eq!(*find(&root, "name"), Value::Text("12".into()));
    }

    #[test]
    fn xml_and_json_give_the_same_tree() {
        let xml = xml("<?xml version=\"1.0\"?>\n<opencv_storage>\n<size>\n  640 480</size>\n<K1 \
                       type_id=\"opencv-matrix\"><rows>1</rows><cols>2</cols><dt>d</dt><data>\n 1. \
                       -.5</data></K1><list><_>1</_><_>a</_></list><name>\"12\"</name>\
                       </opencv_storage>")
        .unwrap();
        let json = json(
            "{\"size\": [640, 480], \"K1\": {\"rows\": 1, \"cols\": 2, \"dt\": \"d\", \
             \"data\": [1.0, -0.5]}, \"list\": [1, \"a\"], \"name\": \"12\"}",
        )
        .unwrap();
        fn bare(node: &Node) -> Node {
            let value = match &node.value {
                Value::List(items) => Value::List(items.iter().map(bare).collect()),
                Value::Map(entries) => {
                    Value::Map(entries.iter().map(|(k, v)| (k.clone(), bare(v))).collect())
                }
                other => other.clone(),
            };
            Node::new(None, value)
        }
        assert_eq!(bare(&xml), json);
    }

    #[test]
    fn hostile_texts_are_refused_in_words() {
        let deep = "[".repeat(100_000);
        assert!(yaml(&deep).unwrap_err().contains("deep"), "{:?}", yaml(&deep));
        assert!(json(&format!("{{\"a\": {deep}")).unwrap_err().contains("limit"));
        let deep = "<a>".repeat(200) + &"</a>".repeat(200);
        assert!(xml(&deep).unwrap_err().contains("deep"));
        let deep = "<a>".repeat(200_000) + &"</a>".repeat(200_000);
        assert!(xml(&deep).is_err());
        let many: String = (0..10_000).map(|n| format!("k{n}: 1\n")).collect();
        assert!(yaml(&many).unwrap_err().contains("too many keys"));
        // Each list is kept for its anchor, with all nested ones.
        let items = "1,".repeat(100_000);
        let anchors: String = (0..60).map(|n| format!("&a{n} [")).collect();
        let nested = format!("a: {anchors}{items}{}", "]".repeat(60));
        assert!(yaml(&nested).unwrap_err().contains("far too many values"));
        let attributes: String = (0..200_000).map(|n| format!(" a{n}='1'")).collect();
        assert!(xml(&format!("<o{attributes}/>")).unwrap_err().contains("too many attributes"));
        let elements = "<_>1</_>".repeat(NODES_MAX);
        assert!(xml(&format!("<o>{elements}</o>")).unwrap_err().contains("too many values"));
        // A long text behind an anchor.
        let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(200_000), "*a,".repeat(100_000));
        assert!(yaml(&long).unwrap_err().contains("far too many"), "long");
        // A billion laughs.
        let mut laughs = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n".to_owned();
        for n in 1..12 {
            let list = vec![format!("*a{}", n - 1); 10].join(", ");
            laughs += &format!("a{n}: &a{n} [{list}]\n");
        }
        assert!(yaml(&laughs).unwrap_err().contains("far too many"), "laughs");
        assert!(yaml("a: 1\nb: 2\na: 3\n").unwrap_err().starts_with(":3: `a` is there twice"));
        assert!(json("{\"a\": 1,\n\"a\": 2}").unwrap_err().starts_with(":2: `a` is there twice"));
        let twice = xml("<o>\n<a>1</a>\n<a>2</a></o>").unwrap_err();
        assert!(twice.starts_with(":3: `a` is there twice"), "{twice}");
    }
}
