// Two painters of the canvas: with WebGL2, and without it.
import { canvas, clamp, element, repaint, stage, state, UNKNOWN } from "./state.js";
import { panesOn, partOf } from "./paint.js";
import { isLeftCamera, spaceOf } from "./points.js";
import { CORNER_OF_POINT, END_OF_LINE, LINES } from "./space.js";

const FLAT_VERTEX = `#version 300 es
uniform vec4 part;   // left, top, width and height of the visible part, as fractions of the image
out vec2 place;
void main() {
  vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1);
  place = part.xy + part.zw * vec2(corner.x, 1.0 - corner.y);
  gl_Position = vec4(corner * 2.0 - 1.0, 0.0, 1.0);
}`;

// Whole numbers, rounded to the nearest entry of the table, as in the window.
const TABLE = `
precision highp float;
precision highp int;
precision highp isampler2D;
uniform isampler2D disparity;
uniform sampler2D left;
uniform sampler2D table;   // 256 colours from far to near, those of unknown pixels and of verdicts
uniform ivec2 size;
uniform ivec2 limits;
vec3 coloured(int value) {
  int span = max(limits.y - limits.x, 1);
  int steps = clamp(value - limits.x, 0, span);
  return texelFetch(table, ivec2((steps * 255 + span / 2) / span, 0), 0).rgb;
}`;

const FLAT_FRAGMENT = `#version 300 es
${TABLE}
uniform sampler2D confidence;
uniform sampler2D right;
uniform sampler2D verdicts;
uniform vec3 no_confidence;
uniform float share;   // of the colours in a mixture; -1: colours alone, -2: confidence, -3: right image, -4: verdicts
in vec2 place;
out vec4 result;
void main() {
  ivec2 texel = clamp(ivec2(place * vec2(size)), ivec2(0), size - 1);
  int value = texelFetch(disparity, texel, 0).r;
  bool unknown = value == ${UNKNOWN};
  vec3 image = texture(left, place).rgb;
  vec3 colour = unknown ? texelFetch(table, ivec2(256, 0), 0).rgb : coloured(value);
  float sure = texelFetch(confidence, texel, 0).r;
  if (share < -1.5) colour = sure == 0.0 ? no_confidence : vec3(sure);
  if (share < -2.5) colour = texture(right, place).rgb;
  if (share < -3.5) colour = texelFetch(table, ivec2(257.5 + 255.0 * texelFetch(verdicts, texel, 0).r, 0), 0).rgb;
  if (share >= 0.0) colour = mix(image, colour, unknown ? 0.0 : share);
  result = vec4(colour, 1.0);
}`;

const POINTS_FRAGMENT = `#version 300 es
${TABLE}
uniform bool by_depth;
in vec2 _at;
out vec4 result;
void main() {
  ivec2 texel = clamp(ivec2(_at * vec2(size)), ivec2(0), size - 1);
  result = vec4(by_depth ? coloured(texelFetch(disparity, texel, 0).r) : texture(left, _at).rgb, 1.0);
}`;

const LINES_FRAGMENT = `#version 300 es
precision highp float;
uniform float lift;
in vec3 _at;
out vec4 result;
void main() { result = vec4(_at + lift, 1.0); }`;

// Textures in the order of their units; the images are smoothed.
const TEXTURES = ["disparity", "left", "table", "confidence", "verdicts", "right"];

let gl = null;

export class GlPainter {
  static make() {
    gl = canvas.getContext("webgl2", { alpha: false, antialias: false, depth: true });
    return gl && new GlPainter();
  }

  constructor() {
    this.threeD = true;
    this.build();
    canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
    canvas.addEventListener("webglcontextrestored", () => {
      this.build();
      this.setColours();
      this.setFrame();
      repaint();
    });
  }

  build() {
    this.flat = this.program(FLAT_VERTEX, FLAT_FRAGMENT);
    this.points = this.program(CORNER_OF_POINT, POINTS_FRAGMENT);
    this.lines = this.program(END_OF_LINE, LINES_FRAGMENT);
    gl.bindBufferBase(gl.UNIFORM_BUFFER, 0, gl.createBuffer());
    TEXTURES.forEach((name, unit) => this.texture(unit, /left|right/.test(name) ? gl.LINEAR : gl.NEAREST));
    // Black until the first one.
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA8, 1, 1, 0, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4));
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
    gl.pixelStorei(gl.UNPACK_COLORSPACE_CONVERSION_WEBGL, gl.NONE);
    gl.bindVertexArray(gl.createVertexArray());
    this.size = [0, 0];
  }

  program(vertex, fragment) {
    const program = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS) && !gl.isContextLost()) {
      throw new Error(gl.getProgramInfoLog(program) || "The shaders did not link.");
    }
    const places = {};
    for (let i = gl.getProgramParameter(program, gl.ACTIVE_UNIFORMS) - 1; i >= 0; i -= 1) {
      const { name } = gl.getActiveUniform(program, i);
      places[name] = gl.getUniformLocation(program, name);
    }
    return { program, places };
  }

  texture(unit, filter) {
    gl.activeTexture(gl.TEXTURE0 + unit);
    gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
    const edge = gl.CLAMP_TO_EDGE;
    const values = { MIN_FILTER: filter, MAG_FILTER: filter, WRAP_S: edge, WRAP_T: edge };
    for (const name in values) gl.texParameteri(gl.TEXTURE_2D, gl["TEXTURE_" + name], values[name]);
  }

  // Fills the texture of a unit, if there is something for it.
  upload(unit, ...image) {
    if (!image.at(-1)) return;
    gl.activeTexture(gl.TEXTURE0 + unit);
    gl.texImage2D(gl.TEXTURE_2D, 0, ...image);
  }

  setColours() {
    const { length } = state.colours;
    if (length) this.upload(2, gl.RGB8, length, 1, 0, gl.RGB, gl.UNSIGNED_BYTE, new Uint8Array(state.colours.flat()));
  }

  setFrame() {
    if (!state.frame) return;
    const { header: { width, height }, disparity, image, confidence, verdicts, right } = state.frame;
    this.size = [width, height];
    this.upload(0, gl.R16I, width, height, 0, gl.RED_INTEGER, gl.SHORT, disparity);
    this.upload(1, gl.RGBA8, gl.RGBA, gl.UNSIGNED_BYTE, image);
    this.upload(3, gl.R8, width, height, 0, gl.RED, gl.UNSIGNED_BYTE, confidence);
    this.upload(4, gl.R8, width, height, 0, gl.RED, gl.UNSIGNED_BYTE, verdicts);
    this.upload(5, gl.RGBA8, gl.RGBA, gl.UNSIGNED_BYTE, right);
  }

  use(one) {
    gl.useProgram(one.program);
    TEXTURES.forEach((name, unit) => gl.uniform1i(one.places[name] ?? null, unit));
    gl.uniform2i(one.places.size, ...this.size);
    gl.uniform2i(one.places.limits, Math.round(state.span[0] * 16), Math.round(state.span[1] * 16));
  }

  paint(width, height) {
    // Far points are as dark as the stage, and differ from unknown pixels.
    const ground = state.view === "points" && state.byDepth ? state.colours[256]
      : getComputedStyle(stage).backgroundColor.match(/\d+/g).slice(0, 3);
    gl.viewport(0, 0, width, height);
    gl.clearColor(...ground.map((part) => part / 255), 1);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    if (!state.frame || !state.colours.length) return;
    if (state.view === "points") {
      this.paintPoints(width, height);
      return;
    }
    gl.disable(gl.DEPTH_TEST);
    this.use(this.flat);
    gl.uniform4f(this.flat.places.part, ...partOf());
    gl.uniform3fv(this.flat.places.no_confidence, state.hello.no_confidence.map((part) => part / 255));
    for (const pane of panesOn(width, height, state.frame.header)) {
      gl.viewport(pane.x, height - pane.y - pane.h, pane.w, pane.h);
      gl.uniform1f(this.flat.places.share, { left: 0, blend: state.blend, confidence: -2, right: -3, check: -4 }[pane.what] ?? -1);
      gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
    }
  }

  paintPoints(width, height) {
    gl.enable(gl.DEPTH_TEST);
    gl.bufferData(gl.UNIFORM_BUFFER, spaceOf(state.frame.header, width, height), gl.STREAM_DRAW);
    this.use(this.points);
    gl.uniform1i(this.points.places.by_depth, state.byDepth);
    gl.drawArrays(gl.TRIANGLES, 0, 6 * this.size[0] * this.size[1]);
    // From the left camera, its own image is all there is to see.
    if (isLeftCamera()) return;
    gl.useProgram(this.lines.program);
    gl.uniform1f(this.lines.places.lift, state.byDepth ? 0.3 : 0);
    gl.drawArrays(gl.LINES, 0, 2 * LINES);
  }
}

function fill(canvas, values, width, colour) {
  const pixels = new Uint8ClampedArray(Uint32Array.from(values || [], colour).buffer);
  Object.assign(canvas, { width, height: pixels.length / 4 / width });
  if (values) canvas.getContext("2d").putImageData(new ImageData(pixels, width), 0, 0);
}

export class PlainPainter {
  constructor() {
    this.context = canvas.getContext("2d", { alpha: false });
    [this.map, this.sure, this.check] = [0, 1, 2].map(() => element("canvas"));
    this.threeD = false;
  }

  setColours() {
    this.setFrame();
  }

  setFrame() {
    if (!state.frame || !state.colours.length) return;
    const { header: { width }, disparity, confidence, verdicts } = state.frame;
    const words = new Uint32Array(new Uint8Array(state.colours.flatMap((colour) => [...colour, 255])).buffer);
    const low = Math.round(state.span[0] * 16);
    const range = Math.max(Math.round(state.span[1] * 16) - low, 1);
    fill(this.map, disparity, width, (one) => (one === UNKNOWN ? 0 : words[Math.floor((clamp(one - low, 0, range) * 255 + (range >> 1)) / range)]));
    fill(this.sure, confidence, width, (one) => one && 0xff000000 + 0x10101 * one);
    fill(this.check, verdicts, width, (one) => words[257 + one]);
  }

  paint(width, height) {
    const c = this.context;
    const [left, top, across, down] = partOf();
    const draw = (image, pane) => image?.width && c.drawImage(image, left * image.width, top * image.height,
      across * image.width, down * image.height, pane.x, pane.y, pane.w, pane.h);
    c.fillStyle = getComputedStyle(stage).backgroundColor;
    c.fillRect(0, 0, width, height);
    if (!state.frame) return;
    const images = { left: null, confidence: this.sure, check: this.check, right: state.frame.right };
    for (const pane of panesOn(width, height, state.frame.header)) {
      c.fillStyle = `rgb(${pane.what === "confidence" ? state.hello.no_confidence : state.colours[256]})`;
      c.fillRect(pane.x, pane.y, pane.w, pane.h);
      c.imageSmoothingEnabled = true;
      if (pane.what === "left" || pane.what === "blend") draw(state.frame.image, pane);
      c.imageSmoothingEnabled = false;
      c.globalAlpha = pane.what === "blend" ? state.blend : 1;
      draw(pane.what in images ? images[pane.what] : this.map, pane);
      c.globalAlpha = 1;
    }
  }
}
