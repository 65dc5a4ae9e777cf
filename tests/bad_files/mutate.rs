//! Reproducible damage to files.

/// Pseudo-random numbers.
#[derive(Clone)]
pub struct Random(u64);

impl Random {
    /// Another sequence for each seed.
    pub fn of(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `limit`, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        // xorshift64 (Marsaglia, 2003).
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// Bytes that are likely in lengths, counts and sizes.
const EDGES: [&[u8]; 8] = [
    &[0; 4],
    &[0xff; 4],
    &[0x7f, 0xff, 0xff, 0xff],
    &[0xff, 0xff, 0xff, 0x7f],
    &[0x80, 0, 0, 0],
    &[0, 0, 0, 0x80],
    &[0xff, 0xff],
    &[1],
];

/// A damaged copy of a file.
pub fn bytes(good: &[u8], seed: u64) -> Vec<u8> {
    let mut random = Random::of(seed);
    let mut bad = good.to_vec();
    for _ in 0..1 + random.below(4) {
        if bad.is_empty() {
            break;
        }
        // Most errors can be caused at the beginning of a file.
        let end = if random.below(2) == 0 { bad.len() } else { bad.len().min(200) };
        let at = random.below(end);
        let length = (1 + random.below(64)).min(bad.len() - at);
        match random.below(7) {
            0 => bad[at] ^= 1 << random.below(8),
            1 => bad[at] = random.below(256) as u8,
            2 => {
                let edge = random.one_of(&EDGES);
                let length = edge.len().min(bad.len() - at);
                bad[at..at + length].copy_from_slice(&edge[..length]);
            }
            3 => drop(bad.drain(at..at + length)),
            4 => {
                let again = bad[at..at + length].to_vec();
                let to = random.below(bad.len());
                bad.splice(to..to, again);
            }
            5 => bad.truncate(random.below(bad.len()).max(1)),
            _ => bad[at..at + length].fill(random.one_of(&[0, 0xff, b'A'])),
        }
    }
    bad
}

/// Replacements for the numbers and words of a text.
const WORDS: [&str; 22] = [
    "0",
    "-1",
    "1e308",
    "-1e308",
    "1e-320",
    "nan",
    ".inf",
    "99999999999999999999",
    "2147483648",
    "4294967295",
    "32768",
    "\"\"",
    "[]",
    "{}",
    "null",
    "true",
    "~",
    "&a",
    "*a",
    "'",
    "[[[[[[[[",
    "\u{feff}",
];

/// A damaged copy of a text, which is still valid UTF-8 text.
pub fn text(good: &str, seed: u64) -> String {
    let mut random = Random::of(seed);
    let mut bad = good.to_owned();
    for _ in 0..1 + random.below(3) {
        let words: Vec<(usize, usize)> = words(&bad);
        let Some(&(from, to)) = words.get(random.below(words.len().max(1))) else { break };
        match random.below(6) {
            0 => bad.truncate(to),
            1 => bad.replace_range(from..to, ""),
            2 => {
                let word = bad[from..to].to_owned();
                bad.insert_str(from, &format!("{word} "));
            }
            3 => {
                let (other, end) = random.one_of(&words);
                let word = bad[other..end].to_owned();
                bad.replace_range(from..to, &word);
            }
            4 => {
                let line = bad[from..].find('\n').map_or(bad.len(), |end| from + end + 1);
                let line = bad[from..line].to_owned();
                bad.insert_str(from, &line.repeat(1 + random.below(40)));
            }
            _ => bad.replace_range(from..to, random.one_of(&WORDS)),
        }
    }
    bad
}

/// Boundaries of words and numbers.
fn words(text: &str) -> Vec<(usize, usize)> {
    let part = |c: char| c.is_alphanumeric() || "._-+".contains(c);
    let mut words = Vec::new();
    let mut from = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        match (part(c), from) {
            (true, None) => from = Some(at),
            (false, Some(begin)) => {
                words.push((begin, at));
                from = None;
            }
            _ => {}
        }
    }
    words
}

#[test]
fn damage_is_the_same_in_every_run_and_is_damage() {
    let good: Vec<u8> = (0..=255).collect();
    let different = (0..100).filter(|&seed| bytes(&good, seed) != good).count();
    assert!(different > 95, "{different}");
    assert_eq!(bytes(&good, 7), bytes(&good, 7));
    let good = "focal = [400.5, 401]\nwidth: 640\n";
    let different = (0..100).filter(|&seed| text(good, seed) != good).count();
    assert!(different > 90, "{different}");
    assert_eq!(text(good, 7), text(good, 7));
}
