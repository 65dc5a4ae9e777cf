// Replaces the map of the half-size images by the prior map of the pair, where that is known and within the range of
// this level (matching/prior.rs).

@group(0) @binding(0) var<storage, read> given: array<i32>;
@group(0) @binding(1) var<storage, read_write> coarse: array<i32>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = linear(id);
    if (i >= WIDTH * HEIGHT) {
        return;
    }
    let value = given[i];
    if (16 * MIN_DISPARITY <= value && value <= 16 * (MIN_DISPARITY + DISPARITIES - 1)) {
        coarse[i] = value;
    }
}
