// Weights of the parts of each pixel's cost, by the range of grey levels around it (matching/support.rs):
// own | window << 10 | prior << 16, in 1/512.

@group(0) @binding(0) var<storage, read> left: array<u32>;
@group(0) @binding(1) var<storage, read> threshold_of_level: array<u32>;
@group(0) @binding(2) var<storage, read_write> blends: array<u32>;

fn grey(x: i32, y: i32) -> u32 {
    let i = clamped(y, HEIGHT) * WIDTH + clamped(x, WIDTH);
    return byte_of(left[i >> 2u], i);
}

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = linear(id);
    if (i >= WIDTH * HEIGHT) {
        return;
    }
    var least = 255u;
    var greatest = 0u;
    for (var down = -2; down <= 2; down++) {
        for (var across = -2; across <= 2; across++) {
            let level = grey(i32(i % WIDTH) + across, i32(i / WIDTH) + down);
            least = min(least, level);
            greatest = max(greatest, level);
        }
    }
    let range = greatest - least;
    let threshold = threshold_of_level[LEVEL];
    var window: u32 = WINDOW_MOST;
    if (WINDOW_BY_TEXTURE != 0) {
        let weak = min(3u * threshold - min(range, 3u * threshold), 2u * threshold);
        window = (WINDOW_MOST * weak + threshold) / (2u * threshold);
    }
    let weak = min(2u * threshold - min(range, 2u * threshold), threshold);
    let prior = (PRIOR_MOST * weak + threshold / 2u) / threshold;
    blends[i] = (512u - WINDOW_SIDE * WINDOW_SIDE * window) | (window << 10u) | (prior << 16u);
}
