// One pane of the window: a triangle that covers the whole viewport. The viewport is the pane, so
// `place` is the place in the image: (0, 0) at its top left corner, (1, 1) at its bottom right one.

// Left, top, width and height of the visible part of the image, as shares of it.
@group(1) @binding(0) var<uniform> part: vec4<f32>;

struct Corner {
    @builtin(position) position: vec4<f32>,
    @location(0) place: vec2<f32>,
}

@vertex
fn cover(@builtin(vertex_index) index: u32) -> Corner {
    // (0, 0), (2, 0), (0, 2): the half of a square twice as wide and high as the pane.
    let place = vec2<f32>(f32((index & 1u) * 2u), f32((index >> 1u) * 2u));
    var corner: Corner;
    corner.position = vec4<f32>(place.x * 2.0 - 1.0, 1.0 - place.y * 2.0, 0.0, 1.0);
    corner.place = part.xy + part.zw * place;
    return corner;
}
