// The cost of every pixel and candidate, a byte each: at weak texture blended with the mean over a window and with
// the prior (matching/cost.rs, matching/support.rs).
//
// A workgroup has some words of candidates of some columns, and goes down a strip of rows; with range windows these are
// the columns and rows of a tile. Sums over the window are those
// of a row through shared memory, then those of the last rows, which each invocation remembers.

struct Band {
    // First row of the band, and its number of rows.
    first: u32,
    rows: u32,
}

@group(0) @binding(0) var<uniform> band: Band;
@group(0) @binding(1) var<storage, read> left: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read> right: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read> blends: array<u32>;
@group(0) @binding(4) var<storage, read> expected: array<i32>;
@group(0) @binding(5) var<storage, read> windows: array<vec2<u32>>;
@group(0) @binding(6) var<storage, read_write> costs: array<u32>;

const RADIUS: u32 = WINDOW_SIDE / 2u;

// Words of costs of a row of the workgroup, twice, so that one barrier a row is enough.
var<workgroup> of_row: array<u32, 2u * COST_WORDS * COST_COLUMNS>;

fn cost(a: vec2<u32>, b: vec2<u32>) -> u32 {
    if (COST == COST_AD) {
        return min(u32(abs(i32(a.x) - i32(b.x))), AD_TRUNCATION);
    }
    if (COST == COST_CENSUS) {
        return countOneBits(a.x ^ b.x) + countOneBits(a.y ^ b.y);
    }
    let intensity = u32(abs(i32(a.y & 255u) - i32(b.y & 255u)));
    let gradient = u32(abs(i32(a.y >> 8u) - i32(b.y >> 8u)));
    return (CENSUS_WEIGHT * countOneBits(a.x ^ b.x)
        + GRADIENT_WEIGHT * min(gradient, GRADIENT_TRUNCATION)
        + INTENSITY_WEIGHT * min(intensity, INTENSITY_TRUNCATION) + 8u) >> 4u;
}

// The costs of four candidates from the first one, without support.
fn own_costs(x: u32, y: u32, first: u32) -> u32 {
    let a = left[y * WIDTH + x];
    let match_x = i32(x) - MIN_DISPARITY - i32(first);
    var packed = 0u;
    for (var k = 0; k < 4; k++) {
        packed |= cost(a, right[y * WIDTH + clamped(match_x - k, WIDTH)]) << u32(8 * k);
    }
    return packed;
}

// Distances of candidates d and d + 2 from the expected disparity, as two 16-bit numbers.
fn distances(d: i32, expected: i32) -> u32 {
    let first = u32(min(abs(d - expected), PRIOR_REACH));
    let second = u32(min(abs(d + 2 - expected), PRIOR_REACH));
    return first | (second << 16u);
}

@compute @workgroup_size(COST_WORDS, COST_COLUMNS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) id: vec3<u32>) {
    let word = group.z * COST_WORDS + id.x;
    let column = i32(group.x * (COST_COLUMNS - 2u * RADIUS) + id.y) - i32(RADIUS);
    let x = clamped(column, WIDTH);
    let top = i32(band.first + group.y * STRIP);
    let below = min(top + i32(STRIP), i32(band.first + band.rows));
    let is_inside = id.y >= RADIUS && id.y < COST_COLUMNS - RADIUS && column < i32(WIDTH) && word < WORDS;
    let first = first_candidate(blocks_at(i32(group.x * WINDOW_TILE), top), min(word, WORDS - 1u));

    // The sums of the last rows, even candidates in the first and odd ones in the second, and the costs themselves.
    var even: array<u32, 2u * RADIUS + 1u>;
    var odd: array<u32, 2u * RADIUS + 1u>;
    var own: array<u32, RADIUS + 1u>;
    var parity = 0u;
    for (var ahead = top - i32(RADIUS); ahead < below + i32(RADIUS); ahead++) {
        let costs_ahead = own_costs(x, clamped(ahead, HEIGHT), first);
        for (var k = 0u; k < RADIUS; k++) {
            own[k] = own[k + 1u];
        }
        own[RADIUS] = costs_ahead;
        if (RADIUS > 0u) {
            of_row[parity + id.y * COST_WORDS + id.x] = costs_ahead;
            workgroupBarrier();
            for (var k = 0u; k < 2u * RADIUS; k++) {
                even[k] = even[k + 1u];
                odd[k] = odd[k + 1u];
            }
            var sums = vec2<u32>(0u, 0u);
            for (var k = 0u; k <= 2u * RADIUS; k++) {
                let beside = of_row[parity + min(max(id.y + k, RADIUS) - RADIUS, COST_COLUMNS - 1u) * COST_WORDS + id.x];
                sums += vec2<u32>(even_bytes(beside), odd_bytes(beside));
            }
            even[2u * RADIUS] = sums.x;
            odd[2u * RADIUS] = sums.y;
            parity = COST_WORDS * COST_COLUMNS - parity;
        }
        let y = ahead - i32(RADIUS);
        if (y >= top && is_inside) {
            let at = u32(y) * WIDTH + x;
            var packed = own[0];
            if (SUPPORT != 0) {
                let blend = blends[at];
                var sums = vec2<u32>(0u, 0u);
                for (var k = 0u; k <= 2u * RADIUS; k++) {
                    sums += vec2<u32>(even[k], odd[k]);
                }
                var apart = vec2<u32>(0u, 0u);
                if (PRIOR != 0) {
                    let e = expected[(u32(y) >> 1u) * ((WIDTH + 1u) >> 1u) + (x >> 1u)];
                    let d = MIN_DISPARITY + i32(first);
                    if (e != INVALID) {
                        apart = vec2<u32>(distances(d, e), distances(d + 1, e));
                    }
                }
                // Each part, and all together, fits 16 bits, so that two candidates share a word.
                let pixel = vec2<u32>(even_bytes(packed), odd_bytes(packed));
                let blended = pixel * (blend & 1023u) + sums * ((blend >> 10u) & 63u)
                    + apart * (blend >> 16u) + 0x01000100u;
                let bytes = (blended >> vec2<u32>(9u)) & vec2<u32>(0x007f007fu);
                packed = bytes.x | (bytes.y << 8u);
            }
            // Candidates beyond the last cost more than any path.
            for (var k = 0u; k < 4u; k++) {
                packed |= select(0u, 255u << (8u * k), first + k >= DISPARITIES);
            }
            costs[((u32(y) - band.first) * WIDTH + x) * WORDS + word] = packed;
        }
    }
}
