// The noise threshold of an image, from a histogram of the responses of a filter that ignores linear structure
// (matching/texture.rs).

@group(0) @binding(0) var<storage, read> left: array<u32>;
@group(0) @binding(1) var<storage, read_write> responses: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read_write> threshold_of_level: array<u32>;

const BINS: u32 = RESPONSE_MAX + 1u;
// Pixels of a workgroup.
const CHUNK: u32 = 4096u;

var<workgroup> counts: array<atomic<u32>, BINS>;
var<workgroup> parts: array<u32, 256>;

fn grey(x: i32, y: i32) -> i32 {
    let i = u32(y) * WIDTH + u32(x);
    return i32(byte_of(left[i >> 2u], i));
}

fn of_row(x: i32, y: i32) -> i32 {
    return grey(x - 1, y) - 2 * grey(x, y) + grey(x + 1, y);
}

@compute @workgroup_size(256)
fn count_responses(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    for (var bin = local; bin < BINS; bin += 256u) {
        atomicStore(&counts[bin], 0u);
    }
    workgroupBarrier();
    let first = (group.y * 65535u + group.x) * CHUNK;
    for (var i = first + local; i < min(first + CHUNK, WIDTH * HEIGHT); i += 256u) {
        let x = i32(i % WIDTH);
        let y = i32(i / WIDTH);
        let is_inside = x > 0 && x + 1 < i32(WIDTH) && y > 0 && y + 1 < i32(HEIGHT);
        if (is_inside && grey(x, y) >= UNCLIPPED_LEAST && grey(x, y) <= UNCLIPPED_MOST) {
            let response = of_row(x, y - 1) - 2 * of_row(x, y) + of_row(x, y + 1);
            atomicAdd(&counts[abs(response)], 1u);
        }
    }
    workgroupBarrier();
    for (var bin = local; bin < BINS; bin += 256u) {
        let count = atomicLoad(&counts[bin]);
        if (count > 0u) {
            atomicAdd(&responses[bin], count);
        }
    }
}

// The threshold from the least response that with all smaller ones exceeds 30 %.
@compute @workgroup_size(256)
fn find_threshold(@builtin(local_invocation_index) local: u32) {
    const EACH = (BINS + 255u) / 256u;
    var sum = 0u;
    for (var bin = local * EACH; bin < min((local + 1u) * EACH, BINS); bin++) {
        sum += atomicLoad(&responses[bin]);
    }
    parts[local] = sum;
    workgroupBarrier();
    if (local == 0u) {
        var count = 0u;
        for (var part = 0u; part < 256u; part++) {
            count += parts[part];
        }
        let most = 3u * count / 10u;
        var below = 0u;
        var bin = 0u;
        for (var part = 0u; part < 256u && below + parts[part] <= most; part++) {
            below += parts[part];
            bin += EACH;
        }
        while (bin < BINS && below + atomicLoad(&responses[bin]) <= most) {
            below += atomicLoad(&responses[bin]);
            bin++;
        }
        threshold_of_level[LEVEL] = 4u + ((443u * select(bin, 0u, bin >= BINS) + 128u) >> 8u);
    }
}
