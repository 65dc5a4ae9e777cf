// Smooths an image by 1 2 1 along rows and columns, with clamped coordinates (Guide::Smoothed).

@group(0) @binding(0) var<storage, read> image: array<u32>;
@group(0) @binding(1) var<storage, read_write> smoothed: array<u32>;

fn grey(x: i32, y: i32) -> u32 {
    let i = clamped(y, HEIGHT) * WIDTH + clamped(x, WIDTH);
    return byte_of(image[i >> 2u], i);
}

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let first = 4u * linear(id);
    if (first >= WIDTH * HEIGHT) {
        return;
    }
    var word = 0u;
    for (var i = first; i < min(first + 4u, WIDTH * HEIGHT); i++) {
        let x = i32(i % WIDTH);
        let y = i32(i / WIDTH);
        var sum = 8u;
        for (var down = -1; down <= 1; down++) {
            let row = grey(x - 1, y + down) + 2u * grey(x, y + down) + grey(x + 1, y + down);
            sum += row * u32(2 - abs(down));
        }
        word |= (sum >> 4u) << (8u * (i & 3u));
    }
    smoothed[first >> 2u] = word;
}
