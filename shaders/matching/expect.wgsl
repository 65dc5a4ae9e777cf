// The disparity in whole pixels that a coarse map predicts for the four pixels under each of its own, or INVALID:
// it predicts one where it is known and flat (matching/prior.rs).

@group(0) @binding(0) var<storage, read> coarse: array<i32>;
@group(0) @binding(1) var<storage, read_write> expected: array<i32>;

fn at(x: i32, y: i32) -> i32 {
    return coarse[clamped(y, HEIGHT) * WIDTH + clamped(x, WIDTH)];
}

fn is_plane(own: i32, a: i32, b: i32) -> bool {
    return a != INVALID && b != INVALID && abs(a + b - 2 * own) <= BEND_MAX;
}

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = linear(id);
    if (i >= WIDTH * HEIGHT) {
        return;
    }
    let x = i32(i % WIDTH);
    let y = i32(i / WIDTH);
    let own = coarse[i];
    var is_flat = own != INVALID;
    for (var k = 1; k <= BEND_REACH; k++) {
        is_flat = is_flat && is_plane(own, at(x - k, y), at(x + k, y))
            && is_plane(own, at(x, y - k), at(x, y + k))
            && is_plane(own, at(x - k, y - k), at(x + k, y + k))
            && is_plane(own, at(x - k, y + k), at(x + k, y - k));
    }
    // Twice the coarse disparity, rounded to the nearest (halves upwards).
    expected[i] = select(INVALID, (2 * own + 8) >> 4u, is_flat);
}
