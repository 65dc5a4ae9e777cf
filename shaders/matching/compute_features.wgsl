// The features of each pixel of an image, which the cost compares (matching/cost.rs, matching/census.rs):
// census: the descriptor; combined: the descriptor, then grey level and gradient + 255; ad: the grey level.

@group(0) @binding(0) var<storage, read> image: array<u32>;
@group(0) @binding(1) var<storage, read_write> features: array<vec2<u32>>;

fn grey(x: i32, y: i32) -> u32 {
    let i = clamped(y, HEIGHT) * WIDTH + clamped(x, WIDTH);
    return byte_of(image[i >> 2u], i);
}

// The order of the bits is free, because only their number counts.
fn census(x: i32, y: i32) -> vec2<u32> {
    var bits = vec2<u32>(0u, 0u);
    var number = 0u;
    let centre = grey(x, y);
    for (var down = -CENSUS_HEIGHT / 2; down <= CENSUS_HEIGHT / 2; down++) {
        for (var across = -CENSUS_WIDTH / 2; across <= CENSUS_WIDTH / 2; across++) {
            let is_centre = across == 0 && down == 0;
            if (is_centre || number == CENSUS_BITS) {
                continue;
            }
            let other = grey(x + across, y + down);
            var is_set = other < centre;
            if (CENSUS_SYMMETRIC != 0) {
                is_set = grey(x - across, y - down) < other;
            }
            let bit = u32(is_set) << (number & 31u);
            bits |= select(vec2<u32>(0u, bit), vec2<u32>(bit, 0u), number < 32u);
            number++;
        }
    }
    return bits;
}

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = linear(id);
    if (i >= WIDTH * HEIGHT) {
        return;
    }
    let x = i32(i % WIDTH);
    let y = i32(i / WIDTH);
    let own = grey(x, y);
    if (COST == COST_AD) {
        features[i] = vec2<u32>(own, 0u);
    } else if (COST == COST_CENSUS) {
        features[i] = census(x, y);
    } else {
        let gradient = grey(x + 1, y) + 255u - grey(x - 1, y);
        features[i] = vec2<u32>(census(x, y).x, own | (gradient << 8u));
    }
}
