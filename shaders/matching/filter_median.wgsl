// The lower median of the valid pixels around each valid one (matching/filter/median.rs).

@group(0) @binding(0) var<storage, read> before: array<i32>;
@group(0) @binding(1) var<storage, read_write> after: array<i32>;

const SIDE: i32 = 2 * MEDIAN_RADIUS + 1;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = linear(id);
    if (i >= WIDTH * HEIGHT) {
        return;
    }
    var values: array<i32, SIDE * SIDE>;
    var count = 0;
    for (var k = 0; k < SIDE * SIDE; k++) {
        let x = i32(i % WIDTH) + k % SIDE - MEDIAN_RADIUS;
        let y = i32(i / WIDTH) + k / SIDE - MEDIAN_RADIUS;
        let is_inside = x >= 0 && x < i32(WIDTH) && y >= 0 && y < i32(HEIGHT);
        values[k] = INVALID;
        if (is_inside) {
            values[k] = before[u32(y) * WIDTH + u32(x)];
        }
        count += i32(values[k] != INVALID);
    }
    // The value with fewer than half of the others below it, and at least half not above it.
    let place = (count - 1) / 2;
    var median = INVALID;
    if (before[i] != INVALID) {
        for (var k = 0; k < SIDE * SIDE; k++) {
            var below = 0;
            var equal = 0;
            for (var j = 0; j < SIDE * SIDE; j++) {
                below += i32(values[j] != INVALID && values[j] < values[k]);
                equal += i32(values[j] == values[k]);
            }
            if (values[k] != INVALID && below <= place && place < below + equal) {
                median = values[k];
            }
        }
    }
    after[i] = median;
}
