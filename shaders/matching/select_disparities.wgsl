// The winner of each pixel of a band, from the sums over all paths, with its check, interpolation and peak; and the
// winners of the right view (matching/winner.rs, uniqueness.rs, subpixel.rs, confidence.rs).
//
// A winner is k | ambiguous << 10 | (offset + 8) << 11 | peak << 16. A winner of the right view is the bitwise
// complement of sum << 10 | k, so that the largest is the best and 0 is none.

struct Band {
    first: u32,
    rows: u32,
}

@group(0) @binding(0) var<uniform> band: Band;
@group(0) @binding(1) var<storage, read> costs: array<u32>;
@group(0) @binding(2) var<storage, read> down: array<u32>;
@group(0) @binding(3) var<storage, read> others: array<u32>;
@group(0) @binding(4) var<storage, read> windows: array<vec2<u32>>;
@group(0) @binding(5) var<storage, read_write> winners: array<u32>;
@group(0) @binding(6) var<storage, read_write> right_winners: array<atomic<u32>>;

// Winners of the right view that pixels of this workgroup can be.
const RIGHT: u32 = SEGMENT + PLACES;
var<workgroup> right: array<atomic<u32>, RIGHT>;

const END: u32 = 0xffffffu;
// Marks the sum of a candidate that is tried, because others have none.
const TRIED: u32 = 0x8000u;

fn offset(a: u32, b: u32, c: u32) -> i32 {
    if (SUBPIXEL == 0) {
        return 0;
    }
    if (SUBPIXEL_PARABOLA != 0) {
        let den = i32(a + c) - 2 * i32(b);
        if (den == 0) {
            return 0;
        }
        // A division that rounds down; den is above 0, because b is the least.
        let over = 16 * (i32(a) - i32(c)) + den;
        let rest = over % (2 * den);
        return (over - rest) / (2 * den) - i32(rest < 0);
    }
    let smaller = (min(a, c) - b) * SUBPIXEL_UNIT;
    let larger = max(a, c) - b;
    var sixteenths = 0;
    var limits = SUBPIXEL_LIMITS;
    for (var k = 0u; k < 8u; k++) {
        sixteenths += i32(smaller < limits[k] * larger);
    }
    return select(sixteenths, -sixteenths, a < c);
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    set_lane(local);
    let first = group.x * SEGMENT;
    let row = group.y;
    for (var i = local; i < RIGHT; i += THREADS) {
        atomicStore(&right[i], 0u);
    }
    workgroupBarrier();
    for (var i = 0u; i < SEGMENT; i += LINES) {
        // Pixels beyond the row are its last one once more.
        let x = min(first + i + local / GROUP, WIDTH - 1u);
        let at = (row * WIDTH + x) * WORDS + lane * PER_LANE;
        let of_direction = band.rows * WIDTH * WORDS;
        let blocks = blocks_at(i32(x), i32(band.first + row));

        // Sums of candidates 4 j and 4 j + 2 in `even`, of the other two in `odd`, 16 bits each.
        var even: array<u32, PER_LANE>;
        var odd: array<u32, PER_LANE>;
        var best = 0xffffffffu;
        for (var j = 0u; j < PER_LANE; j++) {
            let cost = costs[at + j];
            var sums = vec2<u32>(even_bytes(cost), odd_bytes(cost)) * (PATHS_DOWN + PATHS_OTHERS);
            for (var path = 0u; path < PATHS_DOWN; path++) {
                let delta = down[path * of_direction + at + j];
                sums += vec2<u32>(even_bytes(delta), odd_bytes(delta));
            }
            for (var path = 0u; path < PATHS_OTHERS; path++) {
                let delta = others[path * of_direction + at + j];
                sums += vec2<u32>(even_bytes(delta), odd_bytes(delta));
            }
            even[j] = sums.x;
            odd[j] = sums.y;
            let k = first_candidate(blocks, lane * PER_LANE + j);
            let of_four = vec4<u32>(sums.x & 0xffffu, sums.y & 0xffffu, sums.x >> 16u, sums.y >> 16u);
            let candidates = vec4<u32>(k) + vec4<u32>(0u, 1u, 2u, 3u);
            let all_keys = (of_four << vec4<u32>(10u)) | candidates;
            let keys = select(vec4<u32>(0xffffffffu), all_keys, candidates < vec4<u32>(DISPARITIES));
            best = min(best, min(min(keys.x, keys.y), min(keys.z, keys.w)));
            if (LEFT_RIGHT != 0) {
                // Column x - d, counted from the least of the workgroup. Padding changes nothing, so no lane
                // leaves the others before they exchange the best.
                let place = (x - first) + (PLACES - 1u - k);
                for (var c = 0u; c < 4u; c++) {
                    atomicMax(&right[place - c], ~keys[c]);
                }
            }
        }
        best = lanes_min(best);
        let winner = best & 1023u;
        let least = best >> 10u;

        // The best rival, and the neighbours of the winner, the one before it in the upper half.
        var rival = END;
        var neighbours = 0u;
        for (var j = 0u; j < PER_LANE; j++) {
            let k = first_candidate(blocks, lane * PER_LANE + j);
            let of_four = vec4<u32>(even[j] & 0xffffu, odd[j] & 0xffffu, even[j] >> 16u, odd[j] >> 16u);
            let candidates = vec4<u32>(k) + vec4<u32>(0u, 1u, 2u, 3u);
            let is_before = candidates + vec4<u32>(1u) < vec4<u32>(winner);
            let is_after = (candidates > vec4<u32>(winner + 1u)) & (candidates < vec4<u32>(DISPARITIES));
            let is_rival = is_before | is_after;
            let rivals = select(vec4<u32>(END), of_four, is_rival);
            rival = min(rival, min(min(rivals.x, rivals.y), min(rivals.z, rivals.w)));
            let tried = of_four | vec4<u32>(TRIED);
            let beside = select(vec4<u32>(0u), tried, candidates == vec4<u32>(winner + 1u))
                | (select(vec4<u32>(0u), tried, candidates + vec4<u32>(1u) == vec4<u32>(winner)) << vec4<u32>(16u));
            neighbours |= beside.x | beside.y | beside.z | beside.w;
        }
        rival = lanes_min(rival);
        neighbours = lanes_sum(neighbours);
        // All lanes of a pixel compute the same, so that they stay together for the next one.
        var packed = winner;
        if (rival != END && UNIQUENESS > 0u && rival * (100u - UNIQUENESS) < least * 100u) {
            packed |= 1u << 10u;
        }
        var sixteenths = 0;
        let are_tried = (neighbours & (TRIED << 16u)) != 0u && (neighbours & TRIED) != 0u;
        if (are_tried && winner + 1u < DISPARITIES) {
            sixteenths = offset((neighbours >> 16u) & 0x7fffu, least, neighbours & 0x7fffu);
        }
        var peak = 255u;
        if (rival != END) {
            peak = select(255u * (rival - least) / max(rival, 1u), 0u, rival == 0u);
        }
        if (lane == 0u) {
            winners[(band.first + row) * WIDTH + x] = packed | (u32(sixteenths + 8) << 11u) | (peak << 16u);
        }
    }
    if (LEFT_RIGHT != 0) {
        workgroupBarrier();
        for (var i = local; i < RIGHT; i += THREADS) {
            let best = atomicLoad(&right[i]);
            let x = i32(first + i) - i32(PLACES - 1u) - MIN_DISPARITY;
            if (best != 0u && x >= 0 && x < i32(WIDTH)) {
                atomicMax(&right_winners[(band.first + row) * WIDTH + u32(x)], best);
            }
        }
    }
}
