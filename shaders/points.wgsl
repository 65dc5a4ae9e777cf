// Pixels with a disparity as squares in space, each as large as its pixel at its depth and facing the left
// camera. The fragment shader of picture.wgsl colours them.

struct Points {
    // Columns of the matrix from points in metres to clip space.
    matrix: mat4x4<f32>,
    // Principal point of the left image in pixels.
    centre: vec2<f32>,
    // Focal length in pixels.
    focal: f32,
    // Focal length times baseline.
    scale: f32,
    // Disparity in pixels of a point at infinity.
    offset: f32,
    // Nearest and farthest depth that is drawn, in metres.
    near: f32,
    far: f32,
    // Uniform blocks are multiples of 16 bytes.
    unused: f32,
}

// i16::MIN, the value that stands for "unknown".
const INVALID: i32 = -32768;

@group(1) @binding(0) var disparity: texture_2d<i32>;
@group(1) @binding(1) var<uniform> points: Points;

struct Corner {
    @builtin(position) position: vec4<f32>,
    @location(0) place: vec2<f32>,
}

@vertex
fn corner_of_point(@builtin(vertex_index) index: u32) -> Corner {
    let size = textureDimensions(disparity);
    // Two triangles a pixel.
    let pixel = vec2<u32>(index / 6u % size.x, index / 6u / size.x);
    let which = array<u32, 6>(0u, 1u, 2u, 2u, 1u, 3u)[index % 6u];
    let corner = vec2<f32>(pixel) + vec2<f32>(vec2<u32>(which & 1u, which >> 1u));
    var point: Corner;
    // Behind the near plane, where nothing is drawn.
    point.position = vec4<f32>(0.0, 0.0, -1.0, 1.0);
    point.place = corner / vec2<f32>(size);
    let value = textureLoad(disparity, vec2<i32>(pixel), 0).r;
    let parallax = f32(value) / 16.0 - points.offset;
    if value == INVALID || parallax <= 0.0 {
        return point;
    }
    let depth = points.scale / parallax;
    if depth < points.near || depth > points.far {
        return point;
    }
    // Pixel centres have whole coordinates, so the corner of pixel 0 is at -0.5.
    let across = (corner - 0.5 - points.centre) * depth / points.focal;
    point.position = points.matrix * vec4<f32>(across, depth, 1.0);
    return point;
}
