// The left or the right picture in its colours, or in grey; the confidence in grey. Lines in a colour of
// their own.

// Conversion of luma and colour differences to red, green and blue (ITU-T H.273, 8.3).
struct Coding {
    // Luma of black.
    black: f32,
    // Weight of the luma above it in each colour.
    luma: f32,
    // Weights of the differences Cb and Cr in the colours.
    red_cr: f32,
    green_cb: f32,
    green_cr: f32,
    blue_cb: f32,
    // Uniform blocks are multiples of 16 bytes.
    unused: vec2<f32>,
}

// Colour difference (Cb or Cr) of grey.
const NONE: f32 = 128.0 / 255.0;

// Set if the target encodes its input as sRGB. The image's bytes must arrive unchanged, so the shader
// decodes them first.
override encoding_target: bool = false;

@group(0) @binding(0) var picture: texture_2d<f32>;
@group(0) @binding(1) var differences: texture_2d<f32>;
@group(0) @binding(2) var smooth_sampler: sampler;
@group(0) @binding(3) var<uniform> coding: Coding;

fn decoded(colour: vec3<f32>) -> vec3<f32> {
    let low = colour / 12.92;
    let high = pow((colour + vec3<f32>(0.055)) / 1.055, vec3<f32>(2.4));
    return select(high, low, colour <= vec3<f32>(0.04045));
}

@fragment
fn shown(@location(0) place: vec2<f32>) -> @location(0) vec4<f32> {
    let luma = (textureSample(picture, smooth_sampler, place).r - coding.black) * coding.luma;
    let difference = textureSample(differences, smooth_sampler, place).rg - vec2<f32>(NONE);
    let red = coding.red_cr * difference.g;
    let green = coding.green_cb * difference.r + coding.green_cr * difference.g;
    let blue = coding.blue_cb * difference.r;
    var colour = clamp(vec3<f32>(luma + red, luma + green, luma + blue), vec3<f32>(0.0), vec3<f32>(1.0));
    if encoding_target {
        colour = decoded(colour);
    }
    return vec4<f32>(colour, 1.0);
}

@fragment
fn line(@location(0) colour: vec3<f32>) -> @location(0) vec4<f32> {
    if encoding_target {
        return vec4<f32>(decoded(colour), 1.0);
    }
    return vec4<f32>(colour, 1.0);
}
