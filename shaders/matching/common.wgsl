// Names that all stages of matching share. The engine writes the constants of a level before it: WIDTH, HEIGHT,
// MIN_DISPARITY and DISPARITIES (candidates), WORDS (words a pixel in a volume), and those of the stages.
//
// Maps have a number a pixel: a disparity in 1/16 px, or INVALID. Images have a byte a pixel, volumes a byte a
// candidate, four in a word, the first in the lowest bits.

const INVALID: i32 = -32768;

// Number of an invocation in a grid of at most 65535 workgroups of 256 in a row.
fn linear(id: vec3<u32>) -> u32 {
    return id.y * (65535u * 256u) + id.x;
}

fn byte_of(word: u32, i: u32) -> u32 {
    return (word >> (8u * (i & 3u))) & 255u;
}

fn clamped(at: i32, size: u32) -> u32 {
    return u32(clamp(at, 0, i32(size) - 1));
}

// Bytes 0 and 2 of a word as two 16-bit numbers, then bytes 1 and 3.
fn even_bytes(word: u32) -> u32 {
    return word & 0x00ff00ffu;
}

fn odd_bytes(word: u32) -> u32 {
    return (word >> 8u) & 0x00ff00ffu;
}
