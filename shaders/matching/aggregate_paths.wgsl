// Path costs of a band of rows along several directions (matching/aggregation.rs). Stored is L - C, which is at most
// P2 and so fits a byte.
//
// GROUP lanes follow a line; each has PER_LANE words of candidates. Rightward and leftward lines begin at the border.
// The others begin at each column of the first row, and where they leave the image at a side they go on as a new line
// at the other side: so each row has one pixel of each line. The path costs of the last row are the state that the
// next band begins with. With range windows, a path goes on with the blocks of candidates that the tile before tried,
// too.

struct Band {
    first: u32,
    rows: u32,
    // Whether paths go on from the band before; then the step (dx, dy) of each direction.
    goes_on: u32,
    unused: u32,
    steps: array<vec4<i32>, 8>,
}

@group(0) @binding(0) var<uniform> band: Band;
@group(0) @binding(1) var<storage, read> costs: array<u32>;
@group(0) @binding(2) var<storage, read> guide: array<u32>;
@group(0) @binding(3) var<storage, read> expected: array<i32>;
@group(0) @binding(4) var<storage, read> windows: array<vec2<u32>>;
@group(0) @binding(5) var<storage, read> states_before: array<u32>;
@group(0) @binding(6) var<storage, read_write> states_after: array<u32>;
@group(0) @binding(7) var<storage, read_write> deltas: array<u32>;

// More than any path cost.
const END: u32 = 0x3fffu;

fn grey(x: i32, y: i32) -> u32 {
    let i = u32(y) * WIDTH + u32(x);
    return byte_of(guide[i >> 2u], i);
}

fn penalty(before: u32, here: u32) -> u32 {
    let step = u32(abs(i32(before) - i32(here)));
    if (P2_MODE == P2_FIXED) {
        return P2;
    }
    if (P2_MODE == P2_INVERSE_GRADIENT) {
        return select(max(P2 / max(step, 1u), P1), P2, step == 0u);
    }
    let loss = P2_SLOPE * step / P2_SLOPE_UNIT;
    return max(P2 - min(loss, P2), P2_MIN);
}

fn expected_at(x: i32, y: i32) -> i32 {
    return expected[(u32(y) >> 1u) * ((WIDTH + 1u) >> 1u) + (u32(x) >> 1u)];
}

fn unpacked(word: u32) -> vec4<u32> {
    return (vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u);
}

fn packed(numbers: vec4<u32>) -> u32 {
    return numbers.x | (numbers.y << 8u) | (numbers.z << 16u) | (numbers.w << 24u);
}

fn least_of(numbers: vec4<u32>) -> u32 {
    return min(min(numbers.x, numbers.y), min(numbers.z, numbers.w));
}

// Lanes of a block.
const BLOCK_LANES: u32 = max(4u / PER_LANE, 1u);

// Whether the candidates below those of this lane are those of the lane before, and those above of the lane after.
fn joins(blocks: vec2<u32>) -> vec2<bool> {
    let number = lane / BLOCK_LANES;
    let place = lane % BLOCK_LANES;
    let own = block(blocks, number);
    return vec2<bool>(
        WINDOWED == 0 || place > 0u || block(blocks, max(number, 1u) - 1u) + 1u == own,
        WINDOWED == 0 || place < BLOCK_LANES - 1u || block(blocks, min(number + 1u, 3u)) == own + 1u,
    );
}

// Path costs of four candidates in the tile before, bytes: those of the same block, if that tile tried it.
fn entered(costs: u32, before: vec2<u32>, here: vec2<u32>) -> u32 {
    let number = lane / BLOCK_LANES;
    let own = block(here, number);
    var found = 0xffffffffu;
    for (var apart = 0u; apart < 4u; apart++) {
        let of_other = lanes_xor(costs, apart * BLOCK_LANES);
        found = select(found, of_other, block(before, number ^ apart) == own);
    }
    return found;
}

@compute @workgroup_size(THREADS)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    set_lane(local);
    let step = band.steps[group.y].xy;
    let is_across = step.y == 0;
    let lines = select(WIDTH, band.rows, is_across);
    if (group.x * LINES >= lines) {
        return;
    }
    // The last workgroup follows its last line several times, with the same results.
    let line = i32(min(group.x * LINES + local / GROUP, lines - 1u));
    let rows = i32(band.rows);
    let top = i32(band.first);
    var x = select(line, select(0, i32(WIDTH) - 1, step.x < 0), is_across);
    var y = select(select(top, top + rows - 1, step.y < 0), top + line, is_across);
    let count = select(rows, i32(WIDTH), is_across);

    let own = lane * PER_LANE;
    let state = group.y * WIDTH * WORDS + own;
    let volume = group.y * band.rows * WIDTH * WORDS + own;
    var at = (u32(y - top) * WIDTH + u32(x)) * WORDS;

    var path: array<vec4<u32>, PER_LANE>;
    var least = 0u;
    var level = 0u;
    var surface = INVALID;
    // Blocks of the pixel before; a path that begins has none.
    var blocks = blocks_at(x, y);
    let before = x - step.x;
    if (!is_across && band.goes_on != 0u && before >= 0 && before < i32(WIDTH)) {
        least = END;
        for (var j = 0u; j < PER_LANE; j++) {
            path[j] = unpacked(states_before[state + u32(before) * WORDS + j]);
            least = min(least, least_of(path[j]));
        }
        level = grey(before, y - step.y);
        blocks = blocks_at(before, y - step.y);
        if (SURFACE != 0) {
            surface = expected_at(before, y - step.y);
        }
    }
    // Lines that begin here have zeros only.
    least = lanes_min(least);

    var last_x = x;
    var blocks_here = blocks_at(x, y);
    var is_joined = joins(blocks_here);
    var cost: array<u32, PER_LANE>;
    for (var j = 0u; j < PER_LANE; j++) {
        cost[j] = costs[at + own + j];
    }
    for (var i = 0; i < count; i++) {
        if (WINDOWED != 0) {
            let is_other = any(blocks_here != blocks);
            if (any_lane(is_other)) {
                least = END;
                for (var j = 0u; j < PER_LANE; j++) {
                    path[j] = unpacked(entered(packed(min(path[j], vec4<u32>(255u))), blocks, blocks_here));
                    least = min(least, least_of(path[j]));
                }
                least = lanes_min(least);
                is_joined = joins(blocks_here);
                blocks = blocks_here;
            }
        }
        let level_here = grey(x, y);
        let cap = least + penalty(level, level_here);
        level = level_here;
        if (SURFACE != 0) {
            let surface_here = expected_at(x, y);
            let slant = surface - surface_here;
            let is_slanted = surface != INVALID && surface_here != INVALID && abs(slant) == 1;
            surface = surface_here;
            if (any_lane(is_slanted)) {
                var low = select(END, lanes_up(path[PER_LANE - 1u].w, END), is_joined.x);
                let high = select(END, lanes_down(path[0].x, END), is_joined.y);
                for (var j = 0u; j < PER_LANE; j++) {
                    let all = path[j];
                    var next = high;
                    if (j + 1u < PER_LANE) {
                        next = path[j + 1u].x;
                    }
                    let beside = select(vec4<u32>(low, all.xyz), vec4<u32>(all.yzw, next), slant > 0);
                    path[j] = select(all, min(all, beside), is_slanted);
                    low = all.w;
                }
            }
        }
        var low = select(END, lanes_up(path[PER_LANE - 1u].w, END), is_joined.x);
        let high = select(END, lanes_down(path[0].x, END), is_joined.y);

        // The costs of the next pixel are on their way while this one is computed.
        let next_x = x + step.x;
        let leaves = next_x < 0 || next_x >= i32(WIDTH);
        let to = volume + at;
        last_x = x;
        x = select(next_x, select(0, i32(WIDTH) - 1, step.x < 0), leaves);
        y += step.y;
        at = (u32(y - top) * WIDTH + u32(x)) * WORDS;
        let here = cost;
        if (i + 1 < count) {
            for (var j = 0u; j < PER_LANE; j++) {
                cost[j] = costs[at + own + j];
            }
            blocks_here = blocks_at(x, y);
        }

        var least_here = END;
        for (var j = 0u; j < PER_LANE; j++) {
            let all = path[j];
            var next = high;
            if (j + 1u < PER_LANE) {
                next = path[j + 1u].x;
            }
            let beside = min(vec4<u32>(low, all.xyz), vec4<u32>(all.yzw, next)) + vec4<u32>(P1);
            let delta = min(min(all, vec4<u32>(cap)), beside) - vec4<u32>(least);
            low = all.w;
            path[j] = delta + unpacked(here[j]);
            least_here = min(least_here, least_of(path[j]));
            deltas[to + j] = packed(delta);
        }
        least = lanes_min(least_here);
        if (leaves) {
            least = 0u;
            for (var j = 0u; j < PER_LANE; j++) {
                path[j] = vec4<u32>(0u);
            }
            surface = INVALID;
            blocks = blocks_here;
            is_joined = joins(blocks);
        }
    }
    if (!is_across) {
        for (var j = 0u; j < PER_LANE; j++) {
            states_after[state + u32(last_x) * WORDS + j] = packed(min(path[j], vec4<u32>(255u)));
        }
    }
}
