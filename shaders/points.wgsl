// The scene in three dimensions: pixels with a disparity as squares that face the viewer, each as large as
// its pixel at its depth, and lines that help to read it. The fragment shaders of picture.wgsl and
// disparity.wgsl colour the squares. The live page draws with the same functions, translated to GLSL
// (page/space.js).

struct Space {
    // Columns of the matrix from points in metres to clip space. Points are seen from the left camera: x to
    // the right, y down, z forward.
    matrix: mat4x4<f32>,
    // Principal point of the left image in pixels.
    centre: vec2<f32>,
    // Extent in clip space, to the right and down, of a metre across the view.
    spread: vec2<f32>,
    // Focal length in pixels.
    focal: f32,
    // Focal length times baseline.
    scale: f32,
    // Disparity in pixels of a point at infinity.
    offset: f32,
    // Pixels of the camera from one value of the map to the next.
    step: f32,
    // Nearest and farthest depth that is drawn, in metres.
    near: f32,
    far: f32,
    // Distance of the grid below the left camera, and side of its squares, in metres.
    ground: f32,
    square: f32,
    // Size of the squares of points, relative to that of their pixels. From aside it is more than 1, and
    // squares reach as far as their neighbours on the same surface.
    swell: f32,
    // Uniform blocks are multiples of 16 bytes.
    unused: vec3<f32>,
}

// i16::MIN, the value that stands for "unknown".
const INVALID: i32 = -32768;

// Numbers of lines: the axes, the camera's field of view, and the grid with its squares a side.
const AXES: u32 = 3u;
const CAMERA: u32 = 8u;
const SQUARES: u32 = 20u;

@group(1) @binding(0) var disparity: texture_2d<i32>;
@group(1) @binding(1) var<uniform> space: Space;

struct Corner {
    @builtin(position) position: vec4<f32>,
    @location(0) place: vec2<f32>,
}

struct End {
    @builtin(position) position: vec4<f32>,
    @location(0) colour: vec3<f32>,
}

// Returns the point of a pixel of the camera at this depth.
fn point_at(pixel: vec2<f32>, depth: f32) -> vec3<f32> {
    return vec3<f32>((pixel - space.centre) * depth / space.focal, depth);
}

// Returns the depth of a pixel of the map; 0 if it is unknown or not drawn.
fn depth_of(pixel: vec2<i32>) -> f32 {
    let value = textureLoad(disparity, min(pixel, vec2<i32>(textureDimensions(disparity)) - 1), 0).r;
    let parallax = f32(value) / 16.0 - space.offset;
    if value == INVALID || parallax <= 0.0 {
        return 0.0;
    }
    let depth = space.scale / parallax;
    return select(depth, 0.0, depth < space.near || depth > space.far);
}

// Returns the distance along the view to a neighbour on the same surface, which differs by less than a tenth.
fn step_to(pixel: vec2<i32>, depth: f32) -> f32 {
    let step = abs(depth_of(pixel) - depth);
    return select(0.0, step, step < 0.1 * depth);
}

@vertex
fn corner_of_point(@builtin(vertex_index) index: u32) -> Corner {
    let size = textureDimensions(disparity);
    // Two triangles a pixel.
    let pixel = vec2<u32>(index / 6u % size.x, index / 6u / size.x);
    // 0, 1, 2, 2, 1, 3 in digits: the top left, top right, bottom left and bottom right corner.
    let which = (0x312210u >> (index % 6u * 4u)) & 3u;
    let corner = vec2<f32>(vec2<u32>(which & 1u, which >> 1u));
    var point: Corner;
    // All corners at one place, so that nothing is drawn.
    point.position = vec4<f32>(0.0, 0.0, -1.0, 1.0);
    point.place = (vec2<f32>(pixel) + corner) / vec2<f32>(size);
    let at = vec2<i32>(pixel);
    let depth = depth_of(at);
    if depth == 0.0 {
        return point;
    }
    var side = space.swell * space.step * depth / space.focal;
    if space.swell > 1.0 {
        let steps = max(step_to(at + vec2<i32>(1, 0), depth), step_to(at + vec2<i32>(0, 1), depth));
        side = max(side, min(steps, 2.0 * side));
    }
    point.position = space.matrix * vec4<f32>(point_at(vec2<f32>(pixel) * space.step, depth), 1.0);
    point.position += vec4<f32>((corner - 0.5) * side * space.spread, 0.0, 0.0);
    return point;
}

// Returns a corner of the image in space, in the frame that shows the camera's field of view.
fn corner_of_image(which: u32) -> vec3<f32> {
    let size = vec2<f32>(textureDimensions(disparity)) * space.step;
    let corner = vec2<f32>(vec2<u32>(which & 1u, which >> 1u)) * size - 0.5;
    return point_at(corner, 0.5 * space.square);
}

@vertex
fn end_of_line(@builtin(vertex_index) index: u32) -> End {
    var line = index / 2u;
    let is_end = (index & 1u) == 1u;
    var at = vec3<f32>(0.0);
    var end: End;
    if line < AXES {
        // The axes at the camera: x is red, y green, z blue.
        let axis = vec3<f32>(f32(line == 0u), f32(line == 1u), f32(line == 2u));
        at = axis * select(0.0, space.square, is_end);
        end.colour = vec3<f32>(0.25, 0.4, 0.45) + 0.55 * axis;
    } else if line < AXES + CAMERA {
        line -= AXES;
        if line < 4u {
            // From the camera to the corners.
            if is_end {
                at = corner_of_image(line);
            }
        } else {
            // The sides 0-1, 1-3, 3-2 and 2-0.
            let number = (line - 4u + u32(is_end)) % 4u;
            at = corner_of_image(number ^ (number >> 1u));
        }
        end.colour = vec3<f32>(0.9, 0.65, 0.1);
    } else {
        line -= AXES + CAMERA;
        // Across the view, and then along it.
        let is_along = line > SQUARES;
        let number = f32(line % (SQUARES + 1u));
        let reach = select(0.0, f32(SQUARES), is_end);
        let half = 0.5 * f32(SQUARES);
        at = select(vec3<f32>(reach - half, 0.0, number), vec3<f32>(number - half, 0.0, reach), is_along);
        at = at * space.square + vec3<f32>(0.0, space.ground, 0.0);
        end.colour = vec3<f32>(0.42);
    }
    end.position = space.matrix * vec4<f32>(at, 1.0);
    return end;
}
