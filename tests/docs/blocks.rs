//! Code in Markdown: blocks, fenced or indented, and spans in the prose.

/// A block of code.
#[derive(Debug, PartialEq)]
pub struct Block {
    /// Line of its first code line, counted from 1.
    pub line: usize,
    /// Language named by its fence, or empty.
    pub language: String,
    pub text: String,
}

/// Splits a document into its blocks, and its prose with blank lines in their place.
pub fn split(document: &str) -> (Vec<Block>, String) {
    let mut blocks: Vec<Block> = Vec::new();
    let mut prose = String::new();
    let mut fence: Option<usize> = None;
    let (mut in_list, mut after_blank, mut indented) = (false, true, false);
    for (number, line) in (1..).zip(document.lines()) {
        let trimmed = line.trim_start();
        let indent = line.len() - trimmed.len();
        let mut is_code = true;
        if let Some(width) = fence {
            if trimmed.trim_end() == "```" {
                fence = None;
            } else {
                // The fence may stand within a list.
                add(&mut blocks, &line[width.min(indent)..]);
            }
        } else if let Some(language) = trimmed.strip_prefix("```") {
            fence = Some(indent);
            let language = language.trim().to_owned();
            blocks.push(Block { line: number + 1, language, text: String::new() });
        } else if indent >= 4 && (indented || after_blank && !in_list) {
            if !indented {
                blocks.push(Block { line: number, language: String::new(), text: String::new() });
            }
            indented = true;
            add(&mut blocks, &line[4..]);
        } else {
            is_code = false;
            indented = false;
            // Indented lines after a list item belong to it.
            match trimmed.split(' ').next() {
                Some("-" | "*") => in_list = true,
                Some(_) if indent == 0 && !trimmed.is_empty() => in_list = false,
                _ => {}
            }
        }
        after_blank = trimmed.is_empty();
        prose += if is_code { "" } else { line };
        prose.push('\n');
    }
    (blocks, prose)
}

fn add(blocks: &mut [Block], line: &str) {
    let block = blocks.last_mut().expect("a block has begun");
    block.text += line;
    block.text.push('\n');
}

/// Returns the code spans of prose with their lines; a line break within a span becomes a blank.
pub fn spans(prose: &str) -> Vec<(usize, String)> {
    let mut spans = Vec::new();
    let mut line = 1;
    // An unpaired mark affects its paragraph only.
    for paragraph in prose.split_inclusive("\n\n") {
        let parts: Vec<&str> = paragraph.split('`').collect();
        for (number, part) in parts.iter().enumerate() {
            if number % 2 == 1 && number + 1 < parts.len() && !part.is_empty() {
                spans.push((line, part.split_whitespace().collect::<Vec<_>>().join(" ")));
            }
            line += part.matches('\n').count();
        }
    }
    spans
}

#[test]
fn blocks_and_spans_are_found() {
    let document = "Say `a b`:\n\n    one\n      two\n\n- a point\n\n    that goes on\n\n\
                    ```sh\nthree\n```\nand `c\nd`, not ` alone.\n\nLast `e`.\n";
    let (blocks, prose) = split(document);
    let block = |line, language: &str, text: &str| Block {
        line,
        language: language.into(),
        text: text.into(),
    };
    assert_eq!(blocks, [block(3, "", "one\n  two\n"), block(11, "sh", "three\n")]);
    let found = spans(&prose);
    let found: Vec<(usize, &str)> = found.iter().map(|(line, span)| (*line, &**span)).collect();
    assert_eq!(found, [(1, "a b"), (13, "c d"), (16, "e")]);
}
