// The map as 16-bit numbers and the confidence as bytes, as the host takes them.

@group(0) @binding(0) var<storage, read> map: array<i32>;
@group(0) @binding(1) var<storage, read> confidence: array<u32>;
@group(0) @binding(2) var<storage, read_write> packed: array<u32>;

const PIXELS: u32 = WIDTH * HEIGHT;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let first = 4u * linear(id);
    if (first >= PIXELS) {
        return;
    }
    var values = vec4<u32>(0u);
    var sure = 0u;
    for (var k = 0u; k < min(4u, PIXELS - first); k++) {
        values[k] = u32(map[first + k]) & 0xffffu;
        if (CONFIDENCE != 0) {
            sure |= confidence[first + k] << (8u * k);
        }
    }
    packed[first / 2u] = values.x | (values.y << 16u);
    packed[first / 2u + 1u] = values.z | (values.w << 16u);
    if (CONFIDENCE != 0) {
        packed[(PIXELS + 3u) / 4u * 2u + first / 4u] = sure;
    }
}
