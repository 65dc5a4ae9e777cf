// The probability that a disparity is right, from its surroundings (matching/confidence.rs): sums and extremes of
// the columns around each pixel, then of the rows of those.

@group(0) @binding(0) var<storage, read_write> map: array<i32>;
@group(0) @binding(1) var<storage, read> peaks: array<u32>;
// Sum of the far peaks | unknown pixels << 16; sum of the near peaks; the least and the greatest disparity.
@group(0) @binding(2) var<storage, read_write> columns: array<vec4<i32>>;
// The tables of the model, a byte a number, then the confidences.
@group(0) @binding(3) var<storage, read> model: array<u32>;
@group(0) @binding(4) var<storage, read_write> confidence: array<u32>;

const GREATEST: i32 = 32767;

@compute @workgroup_size(256)
fn sum_columns(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = linear(id);
    if (i >= WIDTH * HEIGHT) {
        return;
    }
    var sums = vec4<i32>(0, 0, GREATEST, INVALID);
    for (var down = -FAR_RADIUS; down <= FAR_RADIUS; down++) {
        let at = clamped(i32(i / WIDTH) + down, HEIGHT) * WIDTH + i % WIDTH;
        let value = map[at];
        if (value == INVALID) {
            sums.x += 1 << 16u;
        } else {
            let peak = i32(peaks[at]);
            sums.x += peak;
            sums.y += select(0, peak, abs(down) <= NEAR_RADIUS);
            sums.z = min(sums.z, value);
            sums.w = max(sums.w, value);
        }
    }
    columns[i] = sums;
}

fn table(i: i32) -> i32 {
    return i32(byte_of(model[u32(i) >> 2u], u32(i)) << 24u) >> 24u;
}

fn of_levels(levels: array<i32, 5>) -> u32 {
    var all = levels;
    var sum = 128;
    for (var first = 0; first < 5; first++) {
        sum += table((first * 16 + all[first]) * 16 + all[(first + 1) % 5]);
    }
    let i = 1280u + u32(clamp(sum, 0, 255));
    return byte_of(model[i >> 2u], i);
}

@compute @workgroup_size(256)
fn choose(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = linear(id);
    if (i >= WIDTH * HEIGHT) {
        return;
    }
    var far = 0;
    var unknown = 0;
    var near = 0;
    var least = GREATEST;
    var greatest = INVALID;
    for (var across = -FAR_RADIUS; across <= FAR_RADIUS; across++) {
        let sums = columns[i / WIDTH * WIDTH + clamped(i32(i % WIDTH) + across, WIDTH)];
        far += sums.x & 0xffff;
        unknown += sums.x >> 16u;
        near += select(0, sums.y, abs(across) <= NEAR_RADIUS);
        least = min(least, sums.z);
        greatest = max(greatest, sums.w);
    }
    let value = map[i];
    var sure = 0u;
    if (value != INVALID) {
        sure = LEAST_CONFIDENCE;
        if (peaks[i] > 0u) {
            let far_area = (2 * FAR_RADIUS + 1) * (2 * FAR_RADIUS + 1);
            let near_area = (2 * NEAR_RADIUS + 1) * (2 * NEAR_RADIUS + 1);
            sure = of_levels(array<i32, 5>(
                ((near + near_area / 2) / near_area) >> 4u,
                (far / far_area) >> 4u,
                i32(32u - countLeadingZeros(u32(unknown))),
                min((greatest - value) >> 3u, 15),
                min((value - least) >> 3u, 15),
            ));
        }
        if (sure < CONFIDENCE_MIN) {
            map[i] = INVALID;
        }
    }
    confidence[i] = sure;
}
