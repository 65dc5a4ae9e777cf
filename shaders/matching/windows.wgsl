// Range windows (matching/windows.rs): the pixels of a tile try four blocks of candidates, of four words each. A shader
// with this file declares `windows`, the blocks of each tile in ascending order, 16 bits each.

// The blocks of the tile of a pixel.
fn blocks_at(x: i32, y: i32) -> vec2<u32> {
    if (WINDOWED == 0) {
        return vec2<u32>(0u);
    }
    return windows[u32(y) / WINDOW_TILE * WINDOWS_ACROSS + u32(x) / WINDOW_TILE];
}

fn block(blocks: vec2<u32>, number: u32) -> u32 {
    return (select(blocks.x, blocks.y, number >= 2u) >> (16u * (number & 1u))) & 0xffffu;
}

// The first candidate of a word.
fn first_candidate(blocks: vec2<u32>, word: u32) -> u32 {
    if (WINDOWED == 0) {
        return 4u * word;
    }
    return BLOCK_CANDIDATES * block(blocks, word >> 2u) + 4u * (word & 3u);
}
