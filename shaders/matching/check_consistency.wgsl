// Disparities from winners: INVALID where a winner is ambiguous, where the right view contradicts it, or where a
// camera has not seen the pixel or its match (matching/left_right.rs, filter/valid_mask.rs). Peaks are 0 where either
// view is saturated (confidence.rs).

@group(0) @binding(0) var<storage, read> winners: array<u32>;
@group(0) @binding(1) var<storage, read> right_winners: array<u32>;
@group(0) @binding(2) var<storage, read> left: array<u32>;
@group(0) @binding(3) var<storage, read> right: array<u32>;
// 1 if an image has a valid mask; then a bit a pixel, of the left image first.
@group(0) @binding(4) var<storage, read> masks: array<u32>;
@group(0) @binding(5) var<storage, read_write> map: array<i32>;
@group(0) @binding(6) var<storage, read_write> peaks: array<u32>;

fn is_seen(i: u32) -> bool {
    return ((masks[1u + (i >> 5u)] >> (i & 31u)) & 1u) != 0u;
}

fn grey_left(x: i32, y: i32) -> u32 {
    let i = clamped(y, HEIGHT) * WIDTH + clamped(x, WIDTH);
    return byte_of(left[i >> 2u], i);
}

fn grey_right(x: i32, y: i32) -> u32 {
    let i = clamped(y, HEIGHT) * WIDTH + clamped(x, WIDTH);
    return byte_of(right[i >> 2u], i);
}

// Whether levels around a pixel, the least and the greatest, are those of an overexposed surface (saturation.rs).
fn is_saturated(levels: vec2<u32>) -> bool {
    return levels.x >= WHITE && levels.y - levels.x <= WHITE_ALIKE;
}

fn around_left(x: i32, y: i32) -> vec2<u32> {
    var levels = vec2<u32>(255u, 0u);
    for (var i = 0; i < 9; i++) {
        let level = grey_left(x + i % 3 - 1, y + i / 3 - 1);
        levels = vec2<u32>(min(levels.x, level), max(levels.y, level));
    }
    return levels;
}

fn around_right(x: i32, y: i32) -> vec2<u32> {
    var levels = vec2<u32>(255u, 0u);
    for (var i = 0; i < 9; i++) {
        let level = grey_right(x + i % 3 - 1, y + i / 3 - 1);
        levels = vec2<u32>(min(levels.x, level), max(levels.y, level));
    }
    return levels;
}

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = linear(id);
    if (i >= WIDTH * HEIGHT) {
        return;
    }
    let x = i32(i % WIDTH);
    let y = i32(i / WIDTH);
    let winner = winners[i];
    let k = i32(winner & 1023u);
    let match_at = u32(y) * WIDTH + clamped(x - MIN_DISPARITY - k, WIDTH);
    var is_valid = (winner & (1u << 10u)) == 0u;
    if (LEFT_RIGHT != 0) {
        let best = right_winners[match_at];
        is_valid = is_valid && best != 0u && abs(i32(~best & 1023u) - k) <= LEFT_RIGHT_LIMIT;
    }
    if (LEVEL == 0u && masks[0] != 0u) {
        is_valid = is_valid && is_seen(i) && is_seen(WIDTH * HEIGHT + match_at);
    }
    let value = (MIN_DISPARITY + k) * 16 + i32((winner >> 11u) & 31u) - 8;
    map[i] = select(INVALID, value, is_valid);
    if (CONFIDENCE != 0) {
        var peak = winner >> 16u;
        if (is_valid) {
            let column = i32(clamped(x - ((value + 8) >> 4u), WIDTH));
            if (grey_left(x, y) >= WHITE && is_saturated(around_left(x, y))
                || grey_right(column, y) >= WHITE && is_saturated(around_right(column, y))) {
                peak = 0u;
            }
        }
        peaks[i] = peak;
    }
}
