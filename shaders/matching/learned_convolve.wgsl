// A convolution of the network (matching/learned.rs). CHANNELS is a constant of the pipeline.
//
// A workgroup sums CHANNELS channels of PIXELS pixels of the output, in steps of STEP groups. A group is 16 input
// channels of one tap or, of the planes of an image, which have four, those of four taps. Each step passes through
// workgroup memory. An invocation sums four channels of four pixels.

const INVOCATIONS: u32 = 128u;
const STEP: u32 = 4u;
// Words of four output channels.
const QUADS: u32 = CHANNELS / 4u;
const PIXELS: u32 = 4u * INVOCATIONS / QUADS;
// Pixels from a pixel of an invocation to its next one.
const APART: u32 = PIXELS / 4u;
// With one more, the groups of a pixel lie in different banks of the memory.
const PITCH: u32 = PIXELS + 1u;
// Pixels of which an invocation fetches a group in each step.
const FETCHED: u32 = PIXELS * STEP / INVOCATIONS;

struct Layer {
    output: vec2<u32>,
    // Size of the inputs, after doubling.
    input: vec2<i32>,
    kernel: u32,
    stride: u32,
    dilation: u32,
    // A multiple of STEP.
    groups: u32,
    // A multiple of CHANNELS.
    channels: u32,
    // Place of the output.
    first: u32,
    // Whether it has 16 bits a channel.
    is_wide: u32,
    adds: u32,
    low: i32,
    high: i32,
    // Place of the value that is added.
    added: u32,
    added_columns: u32,
    added_view: u32,
    added_doublings: u32,
}

struct Group {
    // From a pixel of the output, times the stride, to the pixel of the input; of planes, the first tap.
    offset: vec2<i32>,
    // Place of the first pixel's channels in the memory of all values, in words, as are all places.
    first: u32,
    columns: u32,
    // Words of a pixel: 1 for planes.
    words: u32,
    // Words from the left view to the right one.
    view: u32,
    // How often the value is doubled while it is read.
    doublings: u32,
    padding: u32,
}

@group(0) @binding(0) var<uniform> layer: Layer;
@group(0) @binding(1) var<storage, read_write> memory: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> groups: array<Group>;
// [word of four input channels][output channel]
@group(0) @binding(3) var<storage, read> weights: array<vec4<u32>>;
// Of each four channels, the numbers that are added to the sums, then the bits that the sums lose.
@group(0) @binding(4) var<storage, read> ends: array<vec4<i32>>;

var<workgroup> cells: array<vec4<u32>, STEP * PITCH>;
var<workgroup> factors: array<vec4<u32>, 4u * STEP * QUADS>;

fn word_at(place: u32) -> u32 {
    return memory[place >> 2u][place & 3u];
}

fn place_of(group: Group, at: vec2<i32>, view: u32) -> u32 {
    let cell = vec2<u32>(at) >> vec2<u32>(group.doublings);
    return group.first + view * group.view + (cell.y * group.columns + cell.x) * group.words;
}

fn is_inside(at: vec2<i32>) -> bool {
    return all(at >= vec2<i32>(0)) && all(at < layer.input);
}

// The words of planes at four taps.
fn fetch_planes(pixel: vec2<i32>, group: Group, view: u32) -> vec4<u32> {
    var words = vec4<u32>(0u);
    let kernel = i32(layer.kernel);
    for (var k = 0; k < 4; k++) {
        let tap = group.offset.x + k;
        let from_centre = vec2<i32>(tap % kernel, tap / kernel) - vec2<i32>(kernel / 2);
        let at = pixel + from_centre * i32(layer.dilation);
        if (is_inside(at)) {
            words[k] = word_at(place_of(group, at, view));
        }
    }
    return words;
}

fn fetch(pixel: vec2<i32>, group: Group, view: u32) -> vec4<u32> {
    if (group.words == 1u) {
        return fetch_planes(pixel, group, view);
    }
    let at = pixel + group.offset;
    if (!is_inside(at)) {
        return vec4<u32>(0u);
    }
    return memory[place_of(group, at, view) >> 2u];
}

fn products(word: u32, weights: vec4<u32>) -> vec4<i32> {
    return vec4<i32>(
        dot4I8Packed(word, weights.x),
        dot4I8Packed(word, weights.y),
        dot4I8Packed(word, weights.z),
        dot4I8Packed(word, weights.w),
    );
}

fn store(place: u32, word: u32) {
    memory[place >> 2u][place & 3u] = word;
}

fn write(pixel: u32, view: u32, quad: u32, sum: vec4<i32>) {
    let shifted = (sum + ends[2u * quad]) >> vec4<u32>(ends[2u * quad + 1u]);
    var values = clamp(shifted, vec4<i32>(layer.low), vec4<i32>(layer.high));
    if (layer.adds != 0u) {
        let at = vec2<u32>(pixel % layer.output.x, pixel / layer.output.x) >> vec2<u32>(layer.added_doublings);
        let cell = at.y * layer.added_columns + at.x;
        let word = word_at(layer.added + view * layer.added_view + cell * (layer.channels / 4u) + quad);
        let others = (vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u);
        values = clamp(values + vec4<i32>(others), vec4<i32>(0), vec4<i32>(127));
    }
    let i = (view * layer.output.x * layer.output.y + pixel) * (layer.channels / 4u) + quad;
    let bits = vec4<u32>(values);
    if (layer.is_wide != 0u) {
        store(layer.first + 2u * i, (bits.x & 0xffffu) | (bits.y << 16u));
        store(layer.first + 2u * i + 1u, (bits.z & 0xffffu) | (bits.w << 16u));
    } else {
        let bytes = (bits & vec4<u32>(255u)) << vec4<u32>(0u, 8u, 16u, 24u);
        store(layer.first + i, bytes.x | bytes.y | bytes.z | bytes.w);
    }
}

@compute @workgroup_size(INVOCATIONS)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let parts = layer.channels / CHANNELS;
    let view = tile.z / parts;
    let first_quad = tile.z % parts * QUADS;
    let first_pixel = (tile.y * 65535u + tile.x) * PIXELS;
    let pixels = layer.output.x * layer.output.y;

    var fetched: array<vec4<u32>, FETCHED>;
    var fetched_weights = vec4<u32>(0u);
    var places: array<vec2<i32>, FETCHED>;
    for (var k = 0u; k < FETCHED; k++) {
        let pixel = first_pixel + lane / STEP + k * (INVOCATIONS / STEP);
        let at = vec2<u32>(pixel % layer.output.x, pixel / layer.output.x) * layer.stride;
        places[k] = select(vec2<i32>(-0x1000000), vec2<i32>(at), pixel < pixels);
    }
    let own = lane % STEP;
    let row = lane / QUADS * (layer.channels / 4u) + first_quad + lane % QUADS;

    let quad = lane % QUADS;
    let column = lane / QUADS;
    var sums: array<vec4<i32>, 4>;
    for (var begun = 0u; begun < layer.groups; begun += STEP) {
        let group = groups[begun + own];
        for (var k = 0u; k < FETCHED; k++) {
            fetched[k] = fetch(places[k], group, view);
        }
        if (lane < 4u * STEP * QUADS) {
            fetched_weights = weights[begun * layer.channels + row];
        }
        // The step before is in use until here.
        workgroupBarrier();
        for (var k = 0u; k < FETCHED; k++) {
            cells[own * PITCH + lane / STEP + k * (INVOCATIONS / STEP)] = fetched[k];
        }
        if (lane < 4u * STEP * QUADS) {
            factors[lane] = fetched_weights;
        }
        workgroupBarrier();
        for (var g = 0u; g < STEP; g++) {
            let a = factors[4u * g * QUADS + quad];
            let b = factors[(4u * g + 1u) * QUADS + quad];
            let c = factors[(4u * g + 2u) * QUADS + quad];
            let d = factors[(4u * g + 3u) * QUADS + quad];
            for (var k = 0u; k < 4u; k++) {
                let cell = cells[g * PITCH + column + k * APART];
                sums[k] += products(cell.x, a) + products(cell.y, b) + products(cell.z, c) + products(cell.w, d);
            }
        }
    }
    for (var k = 0u; k < 4u; k++) {
        let pixel = first_pixel + column + k * APART;
        if (pixel < pixels) {
            write(pixel, view, first_quad + quad, sums[k]);
        }
    }
}
