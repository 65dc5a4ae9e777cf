// The left or the right picture, or the confidence, in grey.

// Whether the target encodes what it is given as sRGB. The picture's bytes are to arrive
// unchanged, so they are decoded first there.
override encoding_target: bool = false;

@group(0) @binding(0) var picture: texture_2d<f32>;
@group(0) @binding(1) var smooth_sampler: sampler;

fn decoded(colour: vec3<f32>) -> vec3<f32> {
    let low = colour / 12.92;
    let high = pow((colour + vec3<f32>(0.055)) / 1.055, vec3<f32>(2.4));
    return select(high, low, colour <= vec3<f32>(0.04045));
}

@fragment
fn grey(@location(0) place: vec2<f32>) -> @location(0) vec4<f32> {
    var colour = textureSample(picture, smooth_sampler, place).rrr;
    if encoding_target {
        colour = decoded(colour);
    }
    return vec4<f32>(colour, 1.0);
}
