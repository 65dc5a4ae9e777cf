// Invalidates pixels of even surfaces that no evidence around them supports (matching/filter/evidence.rs).

@group(0) @binding(0) var<storage, read> left: array<u32>;
// Sums of the grey levels of 3 x 3 pixels.
@group(0) @binding(1) var<storage, read_write> sums: array<u32>;
@group(0) @binding(2) var<storage, read> threshold_of_level: array<u32>;
@group(0) @binding(3) var<storage, read_write> map: array<i32>;
// The map without its weak pixels.
@group(0) @binding(4) var<storage, read_write> evidence: array<i32>;
// 1 for each tile of 16 x 16 pixels in which a ray may end.
@group(0) @binding(5) var<storage, read_write> occupied: array<u32>;
// 1 if an image has a valid mask; then a bit a pixel, of the left image first.
@group(0) @binding(6) var<storage, read> masks: array<u32>;
@group(0) @binding(7) var<storage, read_write> confidence: array<u32>;

const TILE: i32 = 16;
const TILES_ACROSS: u32 = (WIDTH + 15u) / 16u;

fn grey(x: i32, y: i32) -> u32 {
    let i = clamped(y, HEIGHT) * WIDTH + clamped(x, WIDTH);
    return byte_of(left[i >> 2u], i);
}

fn is_seen(i: u32) -> bool {
    return masks[0] == 0u || ((masks[1u + (i >> 5u)] >> (i & 31u)) & 1u) != 0u;
}

@compute @workgroup_size(256)
fn sum_levels(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = linear(id);
    if (i >= WIDTH * HEIGHT) {
        return;
    }
    var sum = 0u;
    for (var k = 0; k < 9; k++) {
        sum += grey(i32(i % WIDTH) + k % 3 - 1, i32(i / WIDTH) + k / 3 - 1);
    }
    sums[i] = sum;
}

@compute @workgroup_size(256)
fn find_evidence(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = linear(id);
    if (i >= WIDTH * HEIGHT) {
        return;
    }
    let x = i32(i % WIDTH);
    let y = i32(i / WIDTH);
    var least = 0xffffu;
    var greatest = 0u;
    for (var down = -EVIDENCE_RADIUS; down <= EVIDENCE_RADIUS; down++) {
        let row = clamped(y + down, HEIGHT) * WIDTH;
        for (var across = -EVIDENCE_RADIUS; across <= EVIDENCE_RADIUS; across++) {
            let sum = sums[row + clamped(x + across, WIDTH)];
            least = min(least, sum);
            greatest = max(greatest, sum);
        }
    }
    let threshold = clamp(threshold_of_level[LEVEL], EVIDENCE_THRESHOLD_MIN, EVIDENCE_THRESHOLD_MAX);
    let is_weak = 4u * (greatest - least) < 9u * (2u * threshold - 5u);
    let value = select(map[i], INVALID, is_weak);
    evidence[i] = value;
    if (value != INVALID || !is_seen(i)) {
        occupied[u32(y / TILE) * TILES_ACROSS + u32(x / TILE)] = 1u;
    }
}

// Steps after which a coordinate leaves its tile.
fn steps_out(at: i32, step: i32) -> i32 {
    if (step == 0) {
        return 0xffff;
    }
    return select(at % TILE + 1, TILE - at % TILE, step > 0);
}

// The first evidence on a ray and the number of steps to it, or INVALID.
fn meet(x: i32, y: i32, dx: i32, dy: i32) -> vec2<i32> {
    var distance = 1;
    while (distance <= RAY_REACH) {
        let ray_x = x + distance * dx;
        let ray_y = y + distance * dy;
        if (ray_x < 0 || ray_x >= i32(WIDTH) || ray_y < 0 || ray_y >= i32(HEIGHT)) {
            break;
        }
        if (occupied[u32(ray_y / TILE) * TILES_ACROSS + u32(ray_x / TILE)] == 0u) {
            distance += min(steps_out(ray_x, dx), steps_out(ray_y, dy));
            continue;
        }
        let at = u32(ray_y) * WIDTH + u32(ray_x);
        if (evidence[at] != INVALID) {
            return vec2<i32>(evidence[at], distance);
        }
        if (!is_seen(at)) {
            break;
        }
        distance++;
    }
    return vec2<i32>(INVALID, 0);
}

// Whether a disparity lies on the line between the ends of two opposite rays.
fn is_between(own: i32, a: vec2<i32>, b: vec2<i32>) -> bool {
    let apart = a.y + b.y;
    let off = abs((own - a.x) * apart - (b.x - a.x) * a.y);
    let tolerance = max(16, abs(own) >> EVIDENCE_DEVIATION_SHIFT) * apart;
    return a.x != INVALID && b.x != INVALID && off <= tolerance;
}

@compute @workgroup_size(256)
fn keep_supported(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = linear(id);
    if (i >= WIDTH * HEIGHT) {
        return;
    }
    let own = map[i];
    if (own == INVALID || evidence[i] != INVALID) {
        return;
    }
    let x = i32(i % WIDTH);
    let y = i32(i / WIDTH);
    var stays = false;
    if (EVIDENCE_STRICT == 0) {
        stays = is_between(own, meet(x, y, -1, -1), meet(x, y, 1, 1))
            || is_between(own, meet(x, y, 0, -1), meet(x, y, 0, 1))
            || is_between(own, meet(x, y, 1, -1), meet(x, y, -1, 1))
            || is_between(own, meet(x, y, -1, 0), meet(x, y, 1, 0));
    }
    map[i] = select(INVALID, own, stays);
    if (CONFIDENCE != 0) {
        confidence[i] = select(0u, LEAST_CONFIDENCE, stays);
    }
}
