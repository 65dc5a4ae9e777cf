// Half-size image: rounded means of 2 x 2 pixels; an odd last column or row is repeated.

@group(0) @binding(0) var<storage, read> finer: array<u32>;
@group(0) @binding(1) var<storage, read_write> coarser: array<u32>;

fn grey(x: u32, y: u32) -> u32 {
    let i = min(y, FINER_HEIGHT - 1u) * FINER_WIDTH + min(x, FINER_WIDTH - 1u);
    return byte_of(finer[i >> 2u], i);
}

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let first = 4u * linear(id);
    if (first >= WIDTH * HEIGHT) {
        return;
    }
    var word = 0u;
    for (var i = first; i < min(first + 4u, WIDTH * HEIGHT); i++) {
        let x = 2u * (i % WIDTH);
        let y = 2u * (i / WIDTH);
        let sum = grey(x, y) + grey(x + 1u, y) + grey(x, y + 1u) + grey(x + 1u, y + 1u);
        word |= ((sum + 2u) >> 2u) << (8u * (i & 3u));
    }
    coarser[first >> 2u] = word;
}
