//! Commands of a block, parsed like a shell.

use gstreamer::glib;

/// Returns the words of every command. In a block with a prompt (`$ `), all other lines are output.
pub fn commands(text: &str) -> Vec<Vec<String>> {
    let joined = text.replace("\\\n", " ");
    let has_prompt = joined.lines().any(|line| line.starts_with("$ "));
    let lines = joined.lines().filter_map(|line| match has_prompt {
        true => line.strip_prefix("$ "),
        false => Some(line),
    });
    lines.map(words).filter(|words| !words.is_empty()).collect()
}

/// Returns words without quotes, comments, and variables that are set before a command.
fn words(line: &str) -> Vec<String> {
    if matches!(line.trim_start().chars().next(), None | Some('#')) {
        return Vec::new();
    }
    let words = glib::shell_parse_argv(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    let words = words.into_iter().map(|word| word.into_string().expect("UTF-8"));
    words.skip_while(|word| is_assignment(word)).collect()
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
}

#[test]
fn words_are_those_of_a_shell() {
    let text = "stereod run --left 'a b' \\\n    --right c   # with a comment\n\n# only that\nN=1 x --y=2\n";
    assert_eq!(
        commands(text),
        [&["stereod", "run", "--left", "a b", "--right", "c"][..], &["x", "--y=2"]]
    );
    assert_eq!(commands("$ a b\nwas printed\n$ c\n"), [&["a", "b"][..], &["c"]]);
}
