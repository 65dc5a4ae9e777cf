// Smooths surfaces along rows or columns (matching/filter/spatial.rs).

@group(0) @binding(0) var<storage, read> before: array<i32>;
@group(0) @binding(1) var<storage, read> left: array<u32>;
@group(0) @binding(2) var<storage, read_write> after: array<i32>;

fn grey(i: u32) -> i32 {
    return i32(byte_of(left[i >> 2u], i));
}

fn smoothed(i: u32, place: u32, length: u32, step: u32) -> i32 {
    let own = before[i];
    if (own == INVALID) {
        return INVALID;
    }
    let level = grey(i);
    var sum = 0;
    var pairs = 0;
    let reach = min(SPATIAL_REACH, min(place, length - 1u - place));
    for (var k = 1u; k <= reach; k++) {
        let a = before[i - k * step];
        let b = before[i + k * step];
        let deviation = a + b - 2 * own;
        let is_alike = abs(grey(i - k * step) - level) <= SPATIAL_GREY_MAX
            && abs(grey(i + k * step) - level) <= SPATIAL_GREY_MAX;
        if (a != INVALID && b != INVALID && abs(deviation) <= SPATIAL_STEP_MAX && is_alike) {
            sum += deviation;
            pairs++;
        }
    }
    // Rounded down after adding half, also below 0.
    let count = 2 * pairs + 1;
    let over = sum + pairs;
    let rest = over % count;
    return own + (over - rest) / count - i32(rest < 0);
}

@compute @workgroup_size(256)
fn smooth_rows(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = linear(id);
    if (i < WIDTH * HEIGHT) {
        after[i] = smoothed(i, i % WIDTH, WIDTH, 1u);
    }
}

@compute @workgroup_size(256)
fn smooth_columns(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = linear(id);
    if (i < WIDTH * HEIGHT) {
        after[i] = smoothed(i, i / WIDTH, HEIGHT, WIDTH);
    }
}
