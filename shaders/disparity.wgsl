// Disparity through a colour map.

struct Colouring {
    // Disparity in 1/16 px of the first colour of the table.
    low: i32,
    // Disparity in 1/16 px of the last colour; larger than `low`.
    high: i32,
    // Row of `tables`.
    table: u32,
    // Uniform blocks are multiples of 16 bytes.
    unused: u32,
}

// Set if the target encodes its input as sRGB. The table's bytes must arrive unchanged, so the shader
// decodes them first.
override encoding_target: bool = false;

// i16::MIN, the value that stands for "unknown".
const INVALID: i32 = -32768;

// Column of `tables` with the colour of unknown pixels.
const UNKNOWN: i32 = 256;

@group(0) @binding(0) var disparity: texture_2d<i32>;
@group(0) @binding(1) var tables: texture_2d<f32>;
@group(0) @binding(2) var<uniform> colouring: Colouring;

fn decoded(colour: vec3<f32>) -> vec3<f32> {
    let low = colour / 12.92;
    let high = pow((colour + vec3<f32>(0.055)) / 1.055, vec3<f32>(2.4));
    return select(high, low, colour <= vec3<f32>(0.04045));
}

@fragment
fn coloured(@location(0) place: vec2<f32>) -> @location(0) vec4<f32> {
    // Nearest pixel: disparities are never interpolated.
    let size = vec2<i32>(textureDimensions(disparity));
    let texel = clamp(vec2<i32>(place * vec2<f32>(size)), vec2<i32>(0), size - 1);
    let value = textureLoad(disparity, texel, 0).r;
    // Whole numbers, rounded to the nearest table entry: the same on every device.
    let span = max(colouring.high - colouring.low, 1);
    let steps = clamp(value - colouring.low, 0, span);
    let entry = select((steps * 255 + span / 2) / span, UNKNOWN, value == INVALID);
    var colour = textureLoad(tables, vec2<i32>(entry, i32(colouring.table)), 0).rgb;
    if encoding_target {
        colour = decoded(colour);
    }
    return vec4<f32>(colour, 1.0);
}
