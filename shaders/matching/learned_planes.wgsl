// Inputs of the first convolution, a word a pixel of each view (`image_planes` of matching/learned.rs).

struct Sizes {
    image: vec2<u32>,
    // The image enlarged: its last row and column are repeated.
    planes: vec2<u32>,
    first: u32,
}

@group(0) @binding(0) var<uniform> sizes: Sizes;
@group(0) @binding(1) var<storage, read> left: array<u32>;
@group(0) @binding(2) var<storage, read> right: array<u32>;
// The memory of all values, with the left view's planes at `first`, then the right one's.
@group(0) @binding(3) var<storage, read_write> memory: array<u32>;

fn grey(is_left: bool, at: vec2<i32>) -> i32 {
    let nearest = vec2<u32>(clamp(at, vec2<i32>(0), vec2<i32>(sizes.image) - 1));
    let i = nearest.y * sizes.image.x + nearest.x;
    if (is_left) {
        return i32(byte_of(left[i >> 2u], i));
    }
    return i32(byte_of(right[i >> 2u], i));
}

fn limited(value: i32) -> u32 {
    return u32(clamp(64 + value, 0, 127));
}

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = linear(id);
    let pixels = sizes.planes.x * sizes.planes.y;
    if (i >= 2u * pixels) {
        return;
    }
    let is_left = i < pixels;
    let pixel = i % pixels;
    let at = vec2<i32>(vec2<u32>(pixel % sizes.planes.x, pixel / sizes.planes.x));
    var total = 0;
    for (var down = -1; down <= 1; down++) {
        for (var across = -1; across <= 1; across++) {
            total += grey(is_left, at + vec2<i32>(across, down));
        }
    }
    let own = grey(is_left, at);
    let across = grey(is_left, at + vec2<i32>(1, 0)) - grey(is_left, at - vec2<i32>(1, 0));
    let down = grey(is_left, at + vec2<i32>(0, 1)) - grey(is_left, at - vec2<i32>(0, 1));
    let contrast = 4 * (own - (total + 4) / 9);
    memory[sizes.first + i] = u32(own >> 1u) | (limited(across) << 8u) | (limited(down) << 16u) | (limited(contrast) << 24u);
}
