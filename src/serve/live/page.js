// The live page: takes frames from the WebSocket, draws them, and shows the status and the knobs.
const UNKNOWN = -32768;
const VIEWS = ["both", "disparity", "left", "blend", "points"];
const SILENCE_MS = 30000; // The server sends a status every second, after a frame that is on its way.
const OLD_MS = 1000; // Older images are called old.
const $ = (id) => document.getElementById(id);
const canvas = $("canvas");
const stage = $("stage");

// # State

let socket = null;
let token = "";
let attempt = 0;
let retryAt = 0;
let heard = 0;
let hello = null;
let status = null;
let notice = ""; // Reason for the end of the connection.
let frame = null; // The drawn frame: {header, disparity, confidence, image}.
let colours = [];
let span = [0, 64];
let view = "both";
let blend = 0.55;
let probe = null; // Position of the probe in pixels of the frame's arrays, as a fraction of the image.
let panel = null;
let dirty = true;

// # Small tools

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function show(node, on) {
  node.hidden = !on;
}

function text(node, value) {
  if (node.textContent !== value) node.textContent = value;
}

function press(button, on) {
  button.setAttribute("aria-pressed", String(Boolean(on)));
}

function clamp(value, low, high) {
  return Math.min(Math.max(value, low), high);
}

function metres(z) {
  if (!(z > 0 && Number.isFinite(z))) return "\u221e";
  return z.toFixed(z >= 100 ? 0 : z >= 10 ? 1 : z >= 1 ? 2 : 3);
}

function remember(store, key, value) {
  try {
    if (value === undefined) return store().getItem(key);
    store().setItem(key, value);
  } catch { /* Storage may be forbidden. */ }
  return null;
}

let noteTimer = 0;
function note(message, ok = true) {
  const node = $("note");
  text(node, message);
  node.classList.toggle("alarm", !ok);
  show(node, true);
  clearTimeout(noteTimer);
  noteTimer = setTimeout(() => show(node, false), ok ? 4000 : 8000);
}

function mayChange() {
  return Boolean(hello?.may_change && socket?.readyState === 1);
}

// Returns true if this viewer may change the run, and else says that it needs the token.
function allowed(what) {
  if (!mayChange()) note(what + (socket?.readyState === 1 ? " needs the token." : " needs a connection."), false);
  return mayChange();
}

// Depth of a disparity; null without a calibration.
function depthOf(disparity) {
  const g = frame?.header.geometry;
  if (!g) return null;
  return (g.focal_px * g.baseline_m) / (disparity - (g.centre_x_px - g.right_centre_x_px));
}

// # Token and addresses

function takeToken() {
  const address = new URL(location.href);
  const given = address.searchParams.get("token");
  if (given !== null) {
    token = given;
    remember(() => sessionStorage, "stereod.token", given);
    address.searchParams.delete("token");
    history.replaceState(null, "", address.pathname + address.search + address.hash);
  } else {
    token = remember(() => sessionStorage, "stereod.token") || "";
  }
}

function addressOf(path) {
  const address = new URL(path, location.href);
  address.search = token ? "?token=" + encodeURIComponent(token) : "";
  address.hash = "";
  return address;
}

function setDownloads() {
  $("png").href = addressOf("snapshot/disparity.png").href;
  const calibrated = Boolean(frame?.header.geometry);
  if (calibrated) $("ply").href = addressOf("snapshot/cloud.ply").href;
  show($("ply"), calibrated);
  show($("why-no-ply"), !calibrated);
}

// # Connection

function setState(kind, words) {
  $("state").dataset.state = kind;
  text($("state"), words);
}

function complain(words, askToken = false) {
  show($("message"), Boolean(words));
  text($("message-text"), words || "");
  show($("token-form"), askToken);
}

function send(message) {
  if (socket?.readyState === 1) socket.send(JSON.stringify(message));
}

function connect() {
  retryAt = 0;
  show($("retry"), false);
  setState("wait", attempt ? "Reconnecting" : "Connecting");
  const address = addressOf("live");
  address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
  const made = new WebSocket(address.href);
  socket = made;
  heard = Date.now();
  made.binaryType = "arraybuffer";
  made.onopen = () => { heard = Date.now(); };
  made.onmessage = (event) => {
    if (socket !== made) return;
    heard = Date.now();
    if (typeof event.data === "string") receive(JSON.parse(event.data));
    else arrived(made, event.data);
  };
  made.onclose = (event) => { if (socket === made) lost(event); };
}

function lost(event) {
  socket?.close();
  socket = null;
  queue.length = 0;
  updateControls();
  notice = event?.reason && event.code !== 1008 ? event.reason[0].toUpperCase() + event.reason.slice(1) + "." : "";
  // The run is over, or this viewer was closed.
  if (event?.code === 1000 || event?.code === 4000) {
    notice += " This page does not connect again by itself.";
    setState("wait", event.code === 1000 ? "Ended" : "Closed");
    show($("retry"), true);
    showRates();
    return;
  }
  const reason = event?.code === 1008 ? event.reason || "no reason given" : "";
  if (/token/i.test(reason)) {
    setState("lost", "Token refused");
    complain("The server refused the token of this address (" + reason + "). Open the whole address that stereod "
      + "printed at its start, with ?token=..., or enter the token here.", true);
    show($("retry"), true);
    return;
  }
  if (reason) complain("The server refused the connection: " + reason);
  else if (!frame) complain("No connection to stereod. This page tries again by itself.");
  attempt += 1;
  const wait = reason ? 10000 : Math.min(500 * 2 ** (attempt - 1), 8000) * (0.8 + 0.4 * Math.random());
  retryAt = Date.now() + wait;
  show($("retry"), true);
  tick();
}

function tick() {
  const now = Date.now();
  if (retryAt) {
    setState("lost", "Connection lost, next try in " + Math.max(0, Math.ceil((retryAt - now) / 1000)) + " s");
    if (now >= retryAt) connect();
  } else if (socket && now - heard > SILENCE_MS) {
    lost(null);
  }
  showRates();
}

// # Messages

function receive(message) {
  switch (message.type) {
    case "hello":
      hello = message;
      attempt = 0;
      notice = "";
      times.length = 0;
      complain(null);
      setState("live", "Connected");
      setColours(message.colours, message.colour_span);
      text($("source"), message.source);
      $("source").title = message.source + ", stereod " + message.version;
      document.title = "stereod: " + message.source;
      sendQuality();
      forgetRequests();
      setDownloads();
      updateControls();
      break;
    case "status":
      if (status?.paused && frame) frame.waited = performance.now();
      status = message;
      if (message.colour_span) setColours(colours, message.colour_span);
      send({ type: "clock", at: performance.now() });
      showStatus();
      break;
    case "clock":
      takeTime(message);
      break;
    case "knobs":
      setColours(message.colours, message.colour_span);
      takeKnobs(message);
      updateControls();
      break;
    case "note":
      note(message.text, message.ok);
      break;
  }
}

function setColours(table, limits) {
  if (table) colours = table;
  if (limits) span = limits;
  painter.setColours();
  const ramp = $("ramp").getContext("2d");
  const pixels = ramp.createImageData(256, 1);
  colours.forEach((colour, i) => pixels.data.set([...colour, 255], 4 * i));
  ramp.putImageData(pixels, 0, 0);
  showLegend();
  dirty = true;
}

function showLegend() {
  const calibrated = depthOf(1) !== null;
  const labels = [0, 0.25, 0.5, 0.75, 1].map((part) => {
    const d = span[0] + part * (span[1] - span[0]);
    return calibrated ? metres(depthOf(d)) : d.toFixed(span[1] - span[0] < 8 ? 1 : 0);
  });
  labels[4] += calibrated ? " m" : " px";
  const ticks = $("ticks");
  if (ticks.childElementCount !== 5) ticks.replaceChildren(...labels.map(() => element("span")));
  labels.forEach((label, i) => text(ticks.children[i], label));
  $("legend").title = "Disparity " + span[0] + " to " + span[1] + " px";
  $("legend").setAttribute("aria-label", "Colours: " + labels[0] + " to " + labels[4]);
}

// # Frames

// Decodes one frame at a time, the newest one; skipped ones are acknowledged with it.
const queue = [];
let decoding = false;
let skippedHere = 0;
const drawnTimes = [];

function arrived(from, data) {
  queue.push({ from, data });
  if (!decoding) decodeNext();
}

async function decodeNext() {
  decoding = true;
  while (queue.length) {
    const waiting = queue.splice(0);
    const newest = waiting.pop();
    skippedHere += waiting.length;
    const skipped = waiting.map((one) => headerOf(one.data).seq);
    let next = null;
    try {
      next = await decode(newest.data);
    } catch (error) {
      note("A frame could not be decoded: " + error.message, false);
    }
    const hidden = document.hidden;
    if (next && socket === newest.from) {
      noteAge();
      frame?.image.close();
      frame = next;
      painter.setFrame();
      dirty = true;
      // A hidden page has no animation frames, so that it gets no images.
      if (hidden) await new Promise((done) => requestAnimationFrame(done));
      frame.waited = hidden && performance.now();
      paint();
      drawn(next.header);
    }
    if (socket === newest.from) {
      for (const seq of [...skipped, headerOf(newest.data).seq]) send({ type: "ack", seq, hidden });
    }
  }
  decoding = false;
}

function headerOf(data) {
  const length = new DataView(data).getUint32(0, true);
  return JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length)));
}

// Undoes the compression and the differences from the row above (docs/remote.md). No Blob or Response,
// which take three times as long, because they go through the browser's process.
async function inflate(part, { width, height }, planes) {
  const { readable, writable } = new DecompressionStream("deflate");
  const writer = writable.getWriter();
  // Its errors are those of the reader.
  writer.write(part).catch(() => {});
  writer.close().catch(() => {});
  const count = width * height;
  const bytes = new Uint8Array(planes * count);
  const reader = readable.getReader();
  let end = 0;
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    bytes.set(next.value, end);
    end += next.value.length;
  }
  if (end !== bytes.length) throw new Error("its numbers are incomplete");
  const values = planes === 2 ? new Int16Array(count) : bytes;
  for (let i = 0; i < count; i++)
    values[i] = (planes === 2 ? bytes[i] | (bytes[count + i] << 8) : bytes[i]) + (i < width ? 0 : values[i - width]);
  return values;
}

async function decode(data) {
  const header = headerOf(data);
  let at = 4 + new DataView(data).getUint32(0, true);
  const part = (length) => new Uint8Array(data, (at += length) - length, length);
  const [image, disparity, confidence] = await Promise.all([
    createImageBitmap(new Blob([part(header.jpeg)], { type: "image/jpeg" }), { colorSpaceConversion: "none" }),
    inflate(part(header.disparity), header, 2),
    header.confidence && inflate(part(header.confidence), header, 1),
  ]);
  return { header, image, disparity, confidence };
}

let calibratedBefore = null;
function drawn(header) {
  const now = Date.now();
  drawnTimes.push(now);
  while (drawnTimes.length > 1 && drawnTimes[0] < now - 3000) drawnTimes.shift();
  if (header.colour_span) setColours(colours, header.colour_span);
  complain(null);
  const calibrated = JSON.stringify(header.geometry);
  if (calibrated !== calibratedBefore) {
    calibratedBefore = calibrated;
    resetCamera();
    setDownloads();
    showLegend();
  }
  canvas.dataset.seq = header.seq;
  showReadout();
}

// # Age of the image on the screen

const times = []; // Answers to questions for the server's time, and how long they took.
const ages = []; // Ages of the last two seconds.

function takeTime({ at, server }) {
  const now = performance.now();
  times.push({ offset: server - (at + now) / 2, took: now - at });
  if (times.length > 120) times.shift();
}

// Notes the time from the image's capture until now. The quickest answer tells the server's time best.
function noteAge() {
  const now = performance.now();
  while (ages.length && ages[0].at < now - 2000) ages.shift();
  // After a pause, or after its page was hidden, an old image is no news until another one could have come.
  if (!frame || !times.length || status?.paused || document.hidden || now - frame.waited < OLD_MS) return;
  const { offset } = times.reduce((best, one) => (one.took < best.took ? one : best));
  ages.push({ at: now, age: Math.max(now + offset - frame.header.captured, 0) });
}

function oldest() {
  return ages.length ? Math.max(...ages.map((one) => one.age)) : null;
}

function seconds(ms) {
  return ms < OLD_MS ? Math.round(ms) + " ms" : (ms / 1000).toFixed(ms < 10000 ? 1 : 0) + " s";
}

// Says that the image is old, in steps, so that screen readers are not kept busy.
function oldWords() {
  const age = oldest();
  const isOver = !socket && !retryAt;
  if (age === null || age < OLD_MS || status.paused || status.ended || isOver) return null;
  const { captured, latency_ms } = frame.header;
  const isNewest = status.newest <= captured;
  const isMatcher = latency_ms > 0.5 * age;
  if (isNewest && age < 2 * OLD_MS) return null;
  const step = [60, 30, 10, 5, 2, 1].find((limit) => age >= 1000 * limit);
  return `The image is more than ${step} s old: ` + (socket?.readyState !== 1 ? "there is no connection."
    : isMatcher ? "matching is too slow." : isNewest ? "no newer pair was matched." : "the connection or this browser is too slow for more.");
}

// # Layout of the views

// One or two images, as large as they fit; two side by side or one below the other.
function panesOn(width, height, header) {
  const { width: w, height: h } = header;
  const shown = view === "both" ? ["left", "disparity"] : [view];
  const gap = 2;
  const more = shown.length - 1;
  const fit = (across, down) => Math.min((width - across * gap) / (across + 1) / w, (height - down * gap) / (down + 1) / h);
  const across = fit(more, 0) >= fit(0, more) ? more : 0;
  const scale = fit(across, more - across);
  const [pw, ph] = [Math.round(w * scale), Math.round(h * scale)];
  const [dx, dy] = across ? [pw + gap, 0] : [0, ph + gap];
  const x = Math.round((width - pw - more * dx) / 2);
  const y = Math.round((height - ph - more * dy) / 2);
  return shown.map((what, i) => ({ what, x: x + i * dx, y: y + i * dy, w: pw, h: ph }));
}

function resize() {
  const ratio = window.devicePixelRatio || 1;
  const width = Math.max(1, Math.round(canvas.clientWidth * ratio));
  const height = Math.max(1, Math.round(canvas.clientHeight * ratio));
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
    dirty = true;
  }
}

function paint() {
  resize();
  if (!dirty) return;
  dirty = false;
  painter.paint(canvas.width, canvas.height);
  placeCrosses();
}

let asked = false;
function repaint() {
  dirty = true;
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => { asked = false; paint(); });
}

// # Painting with WebGL2

const FLAT_VERTEX = `#version 300 es
out vec2 place;
void main() {
  vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1);
  place = vec2(corner.x, 1.0 - corner.y);
  gl_Position = vec4(corner * 2.0 - 1.0, 0.0, 1.0);
}`;

// Whole numbers, rounded to the nearest entry of the table, as in the window.
const TABLE = `
precision highp float;
precision highp int;
precision highp isampler2D;
uniform isampler2D disparity;
uniform sampler2D left;
uniform sampler2D table;
uniform ivec2 size;
uniform ivec2 limits;
vec3 coloured(int value) {
  int span = max(limits.y - limits.x, 1);
  int steps = clamp(value - limits.x, 0, span);
  return texelFetch(table, ivec2((steps * 255 + span / 2) / span, 0), 0).rgb;
}`;

const FLAT_FRAGMENT = `#version 300 es
${TABLE}
uniform float share;
in vec2 place;
out vec4 result;
void main() {
  ivec2 texel = clamp(ivec2(place * vec2(size)), ivec2(0), size - 1);
  int value = texelFetch(disparity, texel, 0).r;
  bool unknown = value == ${UNKNOWN};
  vec3 image = texture(left, place).rgb;
  vec3 colour = unknown ? vec3(0.0) : coloured(value);
  if (share >= 0.0) colour = mix(image, colour, unknown ? 0.0 : share);
  result = vec4(colour, 1.0);
}`;

const POINTS_VERTEX = `#version 300 es
${TABLE}
uniform vec4 lens;   // focal length, focal length times baseline, centre (full-size pixels)
uniform vec2 grid;   // offset of the disparity, full-size pixels a texel
uniform mat3 turn;
uniform vec3 pivot;
uniform vec3 shift;
uniform vec4 zoom;   // focal length in clip units, size of a point, near plane
out vec3 colour;
void main() {
  ivec2 texel = ivec2(gl_VertexID % size.x, gl_VertexID / size.x);
  int value = texelFetch(disparity, texel, 0).r;
  float d = float(value) / 16.0 - grid.x;
  gl_Position = vec4(0.0, 0.0, 2.0, 1.0);
  gl_PointSize = 1.0;
  colour = vec3(0.0);
  if (value == ${UNKNOWN} || d <= 0.0) return;
  float z = lens.y / d;
  vec3 point = vec3((vec2(texel) * grid.y - lens.zw) * z / lens.x, z);
  vec3 q = turn * (point - pivot) + shift;
  float near = zoom.w;
  float far = near * 1e5;
  gl_Position = vec4(q.x * zoom.x, -q.y * zoom.y, (q.z * (far + near) - 2.0 * far * near) / (far - near), q.z);
  gl_PointSize = clamp(zoom.z * z / q.z, 1.0, 64.0);
  colour = texelFetch(left, texel, 0).rgb;
}`;

const POINTS_FRAGMENT = `#version 300 es
precision highp float;
in vec3 colour;
out vec4 result;
void main() { result = vec4(colour, 1.0); }`;

class GlPainter {
  static make() {
    const gl = canvas.getContext("webgl2", { alpha: false, antialias: false, depth: true });
    return gl && new GlPainter(gl);
  }

  constructor(gl) {
    this.gl = gl;
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
    const gl = this.gl;
    this.flat = this.program(FLAT_VERTEX, FLAT_FRAGMENT);
    this.points = this.program(POINTS_VERTEX, POINTS_FRAGMENT);
    // Disparity, left image and table of colours.
    [gl.NEAREST, gl.LINEAR, gl.NEAREST].forEach((filter, unit) => this.texture(unit, filter));
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
    gl.pixelStorei(gl.UNPACK_COLORSPACE_CONVERSION_WEBGL, gl.NONE);
    gl.bindVertexArray(gl.createVertexArray());
    this.size = [0, 0];
  }

  program(vertex, fragment) {
    const gl = this.gl;
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
    const gl = this.gl;
    gl.activeTexture(gl.TEXTURE0 + unit);
    gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
    for (const name of ["MIN_FILTER", "MAG_FILTER"]) gl.texParameteri(gl.TEXTURE_2D, gl["TEXTURE_" + name], filter);
    for (const name of ["WRAP_S", "WRAP_T"]) gl.texParameteri(gl.TEXTURE_2D, gl["TEXTURE_" + name], gl.CLAMP_TO_EDGE);
  }

  setColours() {
    const gl = this.gl;
    if (!colours.length) return;
    gl.activeTexture(gl.TEXTURE2);
    const bytes = new Uint8Array(colours.flat());
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGB8, 256, 1, 0, gl.RGB, gl.UNSIGNED_BYTE, bytes);
  }

  setFrame() {
    const gl = this.gl;
    if (!frame) return;
    const { width, height } = frame.header;
    const fresh = this.size[0] !== width || this.size[1] !== height;
    this.size = [width, height];
    gl.activeTexture(gl.TEXTURE0);
    if (fresh) {
      gl.texImage2D(gl.TEXTURE_2D, 0, gl.R16I, width, height, 0, gl.RED_INTEGER, gl.SHORT, frame.disparity);
    } else {
      gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, 0, width, height, gl.RED_INTEGER, gl.SHORT, frame.disparity);
    }
    gl.activeTexture(gl.TEXTURE1);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA8, gl.RGBA, gl.UNSIGNED_BYTE, frame.image);
  }

  use(one) {
    const gl = this.gl;
    gl.useProgram(one.program);
    gl.uniform1i(one.places.disparity, 0);
    gl.uniform1i(one.places.left, 1);
    gl.uniform1i(one.places.table, 2);
    gl.uniform2i(one.places.size, ...this.size);
    gl.uniform2i(one.places.limits, Math.round(span[0] * 16), Math.round(span[1] * 16));
  }

  paint(width, height) {
    const gl = this.gl;
    const ground = getComputedStyle(stage).backgroundColor.match(/\d+/g).slice(0, 3);
    gl.viewport(0, 0, width, height);
    gl.clearColor(...ground.map((part) => part / 255), 1);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    if (!frame || !colours.length) return;
    if (view === "points") {
      this.paintPoints(width, height);
      return;
    }
    gl.disable(gl.DEPTH_TEST);
    this.use(this.flat);
    for (const pane of panesOn(width, height, frame.header)) {
      gl.viewport(pane.x, height - pane.y - pane.h, pane.w, pane.h);
      gl.uniform1f(this.flat.places.share, { left: 0, blend }[pane.what] ?? -1);
      gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
    }
  }

  paintPoints(width, height) {
    const gl = this.gl;
    const at = this.points.places;
    const lens = lensOf(frame.header);
    const scale = frame.header.scale;
    const fit = Math.min(width / this.size[0], height / this.size[1]) / scale;
    const focal = lens.focal * fit;
    const c = camera;
    gl.enable(gl.DEPTH_TEST);
    this.use(this.points);
    gl.uniform4f(at.lens, lens.focal, lens.focal * lens.baseline, lens.x, lens.y);
    gl.uniform2f(at.grid, lens.offset, scale);
    gl.uniformMatrix3fv(at.turn, false, rotation(c.yaw, c.pitch));
    gl.uniform3f(at.pivot, 0, 0, c.pivot);
    gl.uniform3f(at.shift, c.x, c.y, c.distance);
    gl.uniform4f(at.zoom, (2 * focal) / width, (2 * focal) / height, fit * scale * 1.5, c.distance * 0.02);
    gl.drawArrays(gl.POINTS, 0, this.size[0] * this.size[1]);
  }
}

// # Painting without WebGL2

class PlainPainter {
  constructor() {
    this.context = canvas.getContext("2d", { alpha: false });
    this.map = document.createElement("canvas");
    this.threeD = false;
  }

  setColours() {
    this.setFrame();
  }

  setFrame() {
    if (!frame || !colours.length) return;
    const { width, height } = frame.header;
    const words = new Uint32Array(new Uint8Array(colours.flatMap((colour) => [...colour, 255])).buffer);
    const low = Math.round(span[0] * 16);
    const range = Math.max(Math.round(span[1] * 16) - low, 1);
    const half = Math.floor(range / 2);
    const pixels = new Uint32Array(width * height);
    frame.disparity.forEach((value, i) => {
      if (value !== UNKNOWN) pixels[i] = words[Math.floor((clamp(value - low, 0, range) * 255 + half) / range)];
    });
    Object.assign(this.map, { width, height });
    const image = new ImageData(new Uint8ClampedArray(pixels.buffer), width, height);
    this.map.getContext("2d").putImageData(image, 0, 0);
  }

  paint(width, height) {
    const c = this.context;
    const draw = (image, pane) => c.drawImage(image, pane.x, pane.y, pane.w, pane.h);
    c.fillStyle = getComputedStyle(stage).backgroundColor;
    c.fillRect(0, 0, width, height);
    if (!frame) return;
    for (const pane of panesOn(width, height, frame.header)) {
      c.fillStyle = "#000";
      c.fillRect(pane.x, pane.y, pane.w, pane.h);
      c.imageSmoothingEnabled = true;
      if (pane.what !== "disparity") draw(frame.image, pane);
      c.imageSmoothingEnabled = false;
      c.globalAlpha = pane.what === "blend" ? blend : 1;
      if (pane.what !== "left") draw(this.map, pane);
      c.globalAlpha = 1;
    }
  }
}

// # Camera of the 3-D view

const camera = { yaw: 0, pitch: 0, pivot: 1, distance: 1, x: 0, y: 0 };

// Geometry for the points. Without a calibration a plausible one, not to scale.
function lensOf(header) {
  const g = header.geometry;
  if (g) {
    return { focal: g.focal_px, baseline: g.baseline_m, x: g.centre_x_px, y: g.centre_y_px,
      offset: g.centre_x_px - g.right_centre_x_px };
  }
  const [w, h] = [header.width * header.scale, header.height * header.scale];
  return { focal: w, baseline: 0.1, x: w / 2, y: h / 2, offset: Math.min(header.range[0], 0) - 1 };
}

function resetCamera() {
  Object.assign(camera, { yaw: 0.28, pitch: -0.2, x: 0, y: 0 });
  if (!frame) return;
  const lens = lensOf(frame.header);
  // About the mean disparity, which is nearer than the mean depth.
  const known = frame.disparity.filter((d) => d !== UNKNOWN && d / 16 > lens.offset);
  const mean = known.reduce((sum, d) => sum + d / 16 - lens.offset, 0) / known.length;
  camera.pivot = (lens.focal * lens.baseline) / mean || 1;
  camera.distance = camera.pivot * 1.1;
  repaint();
}

function rotation(yaw, pitch) {
  const [cy, sy, cp, sp] = [Math.cos(yaw), Math.sin(yaw), Math.cos(pitch), Math.sin(pitch)];
  return [cy, sp * sy, -cp * sy, 0, cp, sp, sy, -sp * cy, cp * cy];
}

function orbit(dx, dy) {
  camera.yaw += dx;
  camera.pitch = clamp(camera.pitch + dy, -1.55, 1.55);
  repaint();
}

function pan(dx, dy) {
  if (!frame) return;
  const { header } = frame;
  const fit = Math.min(canvas.clientWidth / header.width, canvas.clientHeight / header.height) / header.scale;
  const scale = camera.distance / (lensOf(header).focal * fit);
  camera.x += dx * scale;
  camera.y += dy * scale;
  repaint();
}

function zoom(factor) {
  camera.distance = clamp(camera.distance * factor, camera.pivot * 0.02, camera.pivot * 20);
  repaint();
}

// # Pointer

const pointers = new Map();

function probeAt(event) {
  if (!frame) return;
  const box = canvas.getBoundingClientRect();
  const ratio = canvas.width / box.width;
  const [x, y] = [(event.clientX - box.left) * ratio, (event.clientY - box.top) * ratio];
  const { width, height } = frame.header;
  for (const pane of panesOn(canvas.width, canvas.height, frame.header)) {
    const column = Math.floor(((x - pane.x) / pane.w) * width);
    const row = Math.floor(((y - pane.y) / pane.h) * height);
    if (column >= 0 && row >= 0 && column < width && row < height) {
      setProbe(column, row);
      return;
    }
  }
}

function setProbe(column, row) {
  const { width, height } = frame.header;
  // Fractions keep their place if the server changes the size.
  probe = [(clamp(column, 0, width - 1) + 0.5) / width, (clamp(row, 0, height - 1) + 0.5) / height];
  showReadout();
  placeCrosses();
}

canvas.addEventListener("pointerdown", (event) => {
  pointers.set(event.pointerId, event);
  if (view === "points") canvas.setPointerCapture(event.pointerId);
  else probeAt(event);
});
canvas.addEventListener("pointermove", (event) => {
  if (view !== "points") {
    probeAt(event);
    return;
  }
  const before = pointers.get(event.pointerId);
  if (!before) return;
  pointers.set(event.pointerId, event);
  const [dx, dy] = [event.clientX - before.clientX, event.clientY - before.clientY];
  const other = [...pointers.values()].find((one) => one.pointerId !== event.pointerId);
  if (other) {
    const away = (one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
    zoom(away(before) / Math.max(away(event), 1));
    pan(dx / 2, dy / 2);
  } else if (event.shiftKey || event.buttons & 6) {
    pan(dx, dy);
  } else {
    orbit(-dx * 0.006, -dy * 0.006);
  }
});
for (const name of ["pointerup", "pointercancel"]) {
  canvas.addEventListener(name, (event) => pointers.delete(event.pointerId));
}
canvas.addEventListener("contextmenu", (event) => { if (view === "points") event.preventDefault(); });
canvas.addEventListener("dblclick", () => { if (view === "points") resetCamera(); });
canvas.addEventListener("wheel", (event) => {
  if (view !== "points") return;
  event.preventDefault();
  zoom(Math.exp(clamp(event.deltaY * (event.deltaMode ? 30 : 1), -240, 240) * 0.0015));
}, { passive: false });

function showReadout() {
  const out = $("readout");
  const say = (tag, textContent, className = "") => element(tag, { textContent, className });
  if (view === "points" || !probe || !frame) {
    const help = view !== "points" ? "Point at the image for disparity, depth and confidence"
      : !frame || frame.header.geometry ? "Points in metres" : "Not to scale: no calibration";
    out.replaceChildren(say("span", help, "quiet"));
    return;
  }
  const { header, disparity, confidence } = frame;
  const column = Math.floor(probe[0] * header.width);
  const row = Math.floor(probe[1] * header.height);
  const at = row * header.width + column;
  const raw = disparity[at];
  Object.assign(out.dataset, { raw, column, row });
  const parts = [say("span", "x " + column * header.scale + "  y " + row * header.scale)];
  if (raw === UNKNOWN) {
    parts.push(say("b", "unknown"));
  } else {
    const depth = depthOf(raw / 16);
    parts.push(say("b", (raw / 16).toFixed(2) + " px"));
    if (depth !== null) parts.push(say("b", metres(depth) + " m"));
    if (confidence) parts.push(say("span", confidence[at] ? `confidence ${Math.round(confidence[at] / 2.55)} %` : "filled"));
  }
  out.replaceChildren(...parts);
}

function placeCrosses() {
  const crosses = stage.querySelectorAll(".cross");
  const panes = probe && frame && view !== "points" ? panesOn(canvas.width, canvas.height, frame.header) : [];
  const ratio = canvas.width / Math.max(canvas.clientWidth, 1);
  crosses.forEach((cross, i) => {
    show(cross, i < panes.length);
    if (i >= panes.length) return;
    cross.style.left = (panes[i].x + probe[0] * panes[i].w) / ratio + "px";
    cross.style.top = (panes[i].y + probe[1] * panes[i].h) / ratio + "px";
  });
}

// # Status

function drawnRate() {
  return drawnTimes.filter((time) => time > Date.now() - 3000).length / 3;
}

function showRates() {
  const live = socket && hello;
  text($("rate"), live && status ? status.rate.toFixed(1) + " pairs/s" : "");
  noteAge();
  const age = live ? oldest() : null;
  text($("age"), age === null ? "" : seconds(age));
  $("age").classList.toggle("alarm", age >= OLD_MS);
  showBanners();
  if (!live || retryAt) return;
  if (status?.ended) setState("wait", "Ended");
  else if (status?.paused) setState("wait", "Paused");
  else if (drawnRate() > 0) setState("live", "Live");
  else setState("wait", "Waiting for images");
}

function showStatus() {
  const s = status;
  press($("pause"), s.paused);
  text($("pause"), s.paused ? "Resume" : "Pause");
  const { on, outputs } = s.recording || {};
  show($("record"), s.recording);
  press($("record"), on);
  text($("record"), on ? "Stop recording" : "Record");
  $("record").title = (outputs || []).join("\n") + " (r)";
  $("about").title = "Status (i)" + (s.warnings.length ? ", warnings: " + s.warnings.length : "");
  $("about").classList.toggle("warned", s.warnings.length > 0);
  showRates();
  showViewers();
  if (panel === "details") showFacts();
}

function inWords(warning) {
  return warning.text + (warning.count > 1 ? ` (${warning.count} times)` : "");
}

function showBanners() {
  const lines = [[notice, false], [oldWords(), true]];
  if (status) {
    lines.push(...status.banners.map((one) => [one.text, one.trouble]));
    lines.push(...status.warnings.filter((one) => one.ago_s < 60).map((one) => [inWords(one), true]));
    if (status.ended && !notice) lines.push(["The run has ended. The last images remain.", false]);
  }
  const banners = lines.filter(([words]) => words)
    .map(([textContent, trouble]) => element("p", { textContent, className: trouble ? "trouble" : "" }));
  // Screen readers read what changes.
  const made = element("div", {}, ...banners);
  if (made.innerHTML !== $("banners").innerHTML) $("banners").replaceChildren(...banners);
}

// The rows stay while the viewers do, so that a button keeps the focus.
let viewersShown = "";
function showViewers() {
  const viewers = status.viewers || [];
  show($("viewers-part"), viewers.length);
  const numbers = viewers.map((one) => one.id).join();
  if (numbers !== viewersShown) {
    viewersShown = numbers;
    $("viewers").replaceChildren(...viewers.map((one) => {
      const row = element("li", {}, element("span"));
      if (!one.own) {
        const close = element("button", { type: "button", textContent: "Close" });
        close.setAttribute("aria-label", `Close viewer ${one.kind} ${one.address}`);
        close.onclick = () => send({ type: "close", viewer: one.id });
        row.append(close);
      }
      return row;
    }));
  }
  viewers.forEach((one, i) => text($("viewers").children[i].firstChild, [
    one.own ? "this page" : one.kind, one.address, `for ${Math.floor(one.since_s / 60)} min`,
    one.may_change ? "" : "without the token", one.silent_s > 10 ? `silent for ${one.silent_s} s` : "",
  ].filter(Boolean).join(", ")));
}

function showFacts() {
  const s = status;
  if (!s) return;
  const count = (n, what) => n.toLocaleString("en") + " " + what;
  const facts = [
    ["Engine", s.engine],
    ["Rate", s.rate.toFixed(1) + " pairs/s"],
    ["Latency", s.latency_ms ? "median " + s.latency_ms.p50.toFixed(1) + " ms, 95 % " + s.latency_ms.p95.toFixed(1) + " ms" : "unknown"],
    ["Known pixels", s.valid_share === null ? "unknown" : (100 * s.valid_share).toFixed(1) + " %"],
    ["Matched", count(s.matched, "of") + " " + count(s.pairs, "pairs")],
    ["Lost", [
      s.unpaired[0] + s.unpaired[1] > 0 && count(s.unpaired[0], "left and") + " " + count(s.unpaired[1], "right frames without a partner"),
      s.dropped > 0 && count(s.dropped, "pairs dropped, matcher too slow"),
      ...s.outputs.map((o) => (o.dropped || o.failed) && o.name + ": " + count(o.dropped, "dropped") + (o.failed ? ", failed" : "")),
    ].filter(Boolean)],
    ...s.outputs.map((o) => ["Output", o.name + ": " + count(o.frames, "frames"), o.failed]),
    ["Alignment", s.alignment ? s.alignment.text : "unknown", s.alignment && s.alignment.alarm],
    ["Exposure, noise", s.exposure ? s.exposure.text : "unknown", s.exposure && s.exposure.alarm],
    ...s.warnings.map((one) => ["Warning", inWords(one) + `, ${one.ago_s} s ago`, one.ago_s < 60]).reverse(),
    ["This page", [
      drawnRate().toFixed(1) + " images/s" + (frame ? ", " + frame.header.width + "x" + frame.header.height : "") + ({ 2: " (half size)", 4: " (quarter size)" }[s.client.scale] || ""),
      count(s.client.skipped + skippedHere, "images skipped"),
      oldest() === null ? null : "image up to " + seconds(oldest()) + " old, from its capture",
      painter.threeD ? null : "without WebGL2",
    ].filter(Boolean)],
    ["stereod", hello ? hello.version : ""],
  ];
  const nodes = [];
  for (const [name, value, alarm] of facts) {
    const lines = Array.isArray(value) ? value : [value];
    const className = alarm ? "alarm" : "";
    const paragraphs = (lines.length ? lines : ["nothing"]).map((line) => element("p", { textContent: line, className }));
    nodes.push(element("dt", { textContent: name }), element("dd", {}, ...paragraphs));
  }
  $("facts").replaceChildren(...nodes);
}

// # Tuning

let knobs = [];
let rows = [];
// The user's values that are not in effect, by name: each has the number of the request for it or, once it
// is refused, the value that stayed in effect.
const own = new Map();
let sentNumber = 0;
let answered = 0;
let problem = null;

const nameOf = (knob) => knob.section + "." + knob.key;

function forgetRequests() {
  own.clear();
  sentNumber = 0;
  answered = 0;
  problem = null;
}

function takeKnobs(message) {
  const inEffect = new Map(message.knobs.map((knob) => [nameOf(knob), knob.value]));
  for (const answer of message.answers) {
    answered = Math.max(answered, answer.number);
    problem = answer.problem ?? problem;
    for (const [name, { value, number }] of own) {
      if (number !== answer.number) continue;
      if (answer.problem === null) own.delete(name);
      else own.set(name, { value, insteadOf: inEffect.get(name) ?? null });
    }
  }
  // Refused values stay to be corrected, until another viewer changes the same knob.
  for (const [name, { insteadOf }] of own) {
    if (insteadOf !== undefined && insteadOf !== inEffect.get(name)) own.delete(name);
  }
  const isRefusal = message.answers.some((answer) => answer.problem !== null);
  if (!isRefusal && ![...own.values()].some((mine) => mine.insteadOf !== undefined)) problem = null;
  const next = message.knobs.map((knob) => {
    const mine = knob.locked ? undefined : own.get(nameOf(knob));
    return mine ? { ...knob, value: mine.value, means: null } : knob;
  });
  const shape = (list) => JSON.stringify(list.map((knob) => ({ ...knob, value: 0, means: 0 })));
  const same = shape(knobs) === shape(next);
  if (same) knobs.forEach((knob, i) => Object.assign(knob, next[i]));
  else knobs = next;
  if (!same) buildKnobs();
  rows.forEach((row) => row());
  showEffect();
}

function showEffect() {
  const node = $("effect");
  node.classList.toggle("alarm", Boolean(problem));
  text(node, problem || (answered < sentNumber ? "working ..." : status?.ended ? "the run has ended" : "in effect"));
}

let tuneTimer = 0;
function turned(knob, value, soon = false) {
  if (knob.value === value) return;
  knob.value = value;
  knob.means = null;
  own.set(nameOf(knob), { value });
  rows.forEach((row) => row());
  clearTimeout(tuneTimer);
  if (soon) tuneTimer = setTimeout(tuneAll, 120);
  else tuneAll();
}

function tuneAll() {
  clearTimeout(tuneTimer);
  sentNumber += 1;
  const values = [];
  for (const [name, { value, number }] of own) {
    if (number !== undefined) continue;
    own.set(name, { value, number: sentNumber });
    values.push([...name.split("."), value]);
  }
  send({ type: "tune", number: sentNumber, values });
  showEffect();
}

function resetAll() {
  clearTimeout(tuneTimer);
  own.clear();
  sentNumber += 1;
  send({ type: "reset", number: sentNumber });
  showEffect();
}

function buildKnobs() {
  rows = [];
  const groups = new Map();
  knobs.forEach((knob, i) => {
    if (!groups.has(knob.group)) {
      groups.set(knob.group, element("fieldset", {}, element("legend", { textContent: knob.group })));
    }
    groups.get(knob.group).append(buildKnob(knob, "knob-" + i));
  });
  $("knobs").replaceChildren(...groups.values());
}

function buildKnob(knob, id) {
  const disabled = Boolean(knob.locked);
  let title = knob.hint + "\n\n" + nameOf(knob);
  if (disabled) title += "\n\nCannot change in this run: " + knob.locked + ".";
  const set = element("div", { className: "set" });
  const row = element("div", { className: "knob", title }, element("label", { htmlFor: id, textContent: knob.label }), set);
  row.dataset.name = nameOf(knob);
  if (disabled) row.append(element("p", { className: "reason", id: id + "-why", textContent: "fixed: " + knob.locked }));
  const control = (tag, properties, name) => {
    const made = element(tag, { id, disabled, ...properties });
    if (name) made.setAttribute("aria-label", knob.label + ", " + name);
    if (disabled) made.setAttribute("aria-describedby", id + "-why");
    set.append(made);
    return made;
  };
  if (knob.kind === "switch") {
    const box = control("input", { type: "checkbox" });
    box.onchange = () => turned(knob, String(box.checked));
    rows.push(() => { box.checked = knob.value === "true"; });
  } else if (knob.kind.choice) {
    const select = control("select");
    select.append(...knob.kind.choice.map((name) => element("option", { value: name, textContent: name })));
    select.onchange = () => turned(knob, select.value);
    rows.push(() => {
      for (const option of select.options) {
        const means = option.value === knob.value && knob.means && knob.means !== knob.value;
        text(option, means ? option.value + " (" + knob.means + ")" : option.value);
      }
      select.value = knob.value;
    });
  } else {
    const { low, high, step, word } = knob.kind.number;
    const slider = control("input", { type: "range", id: id + "-slide", min: low, max: high, step }, "slider");
    const field = control("input", { type: "text", inputMode: "decimal", autocomplete: "off", spellcheck: false });
    slider.oninput = () => turned(knob, slider.value, true);
    field.onchange = () => {
      const typed = field.value.trim().replace(",", ".");
      turned(knob, typed === "" && word ? word : typed);
    };
    let auto = null;
    if (word) {
      auto = control("button", { type: "button", id: id + "-word", className: "word", textContent: word }, word);
      auto.onclick = () => turned(knob, knob.value === word ? slider.value : word);
      set.append(auto);
    }
    rows.push(() => {
      const isWord = word && knob.value === word;
      const number = Number.parseFloat(isWord ? knob.means : knob.value);
      if (Number.isFinite(number)) slider.value = number;
      if (document.activeElement !== field || field.value === "" || Number(field.value) === number) {
        field.value = isWord ? "" : knob.value;
      }
      field.placeholder = isWord ? knob.means || word : "";
      if (auto) press(auto, isWord);
    });
  }
  return row;
}

function nextColours() {
  const knob = knobs.find((one) => one.section === "colour" && one.key === "map");
  if (!allowed("Changing the colours") || !knob) return;
  const names = knob.kind.choice;
  turned(knob, names[(names.indexOf(knob.value) + 1) % names.length]);
}

// # Controls

function updateControls() {
  const may = Boolean(hello?.may_change);
  show($("pause"), may);
  show($("tune"), may);
  for (const id of ["pause", "record", "reset", "save"]) $(id).disabled = !mayChange();
  if (panel === "tuning" && !may) openPanel(null);
}

function setView(name) {
  if (name === "points" && !painter.threeD) {
    note("The 3-D view needs WebGL2, which this browser does not have.", false);
    return setView("both");
  }
  view = name;
  remember(() => localStorage, "stereod.view", name);
  const radio = document.querySelector(`#views input[value="${name}"]`);
  radio.checked = true;
  const points = name === "points";
  stage.classList.toggle("orbiting", points);
  show($("mix"), name === "blend");
  show($("orbit"), points);
  show($("legend"), !points && name !== "left");
  canvas.setAttribute("aria-label", points
    ? "Points in three dimensions. Arrow keys rotate, with Shift move, plus and minus zoom."
    : "Disparity and left image. Arrow keys move the probe.");
  pointers.clear();
  showReadout();
  repaint();
}

function openPanel(name) {
  const inside = $("side").contains(document.activeElement);
  const before = panel;
  panel = name;
  show($("side"), name !== null);
  show($("details"), name === "details");
  show($("tuning"), name === "tuning");
  $("about").setAttribute("aria-expanded", String(name === "details"));
  $("tune").setAttribute("aria-expanded", String(name === "tuning"));
  if (inside && before && !name) $(before === "tuning" ? "tune" : "about").focus();
  if (name) $(name).querySelector(".close").focus({ preventScroll: true });
  if (name === "details") showFacts();
}

function togglePanel(name) {
  openPanel(panel === name ? null : name);
}

// Frees Space.
function byKey(name) {
  togglePanel(name);
  if (!panel) document.activeElement.blur();
}

function openShots(on) {
  show($("shots"), on);
  $("shoot").setAttribute("aria-expanded", String(on));
  if (on) $("shot").focus();
}

function togglePause() {
  if (allowed("Pausing")) send({ type: "pause", on: !status?.paused });
}

function toggleRecording() {
  if (status?.recording && allowed("Recording")) send({ type: "record", on: !status.recording.on });
}

function saveView() {
  if (!frame) return;
  openShots(false);
  const { width, height, seq } = frame.header;
  if (view !== "points") {
    canvas.width = view === "both" ? 2 * width + 2 : width;
    canvas.height = height;
  }
  painter.paint(canvas.width, canvas.height);
  canvas.toBlob((blob) => {
    const link = element("a", { href: URL.createObjectURL(blob), download: "stereod-" + view + "-" + seq + ".png" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }, "image/png");
  dirty = true;
  paint();
}

const SIZES = { auto: null, full: 1, half: 2, quarter: 4 };
function sendQuality() {
  remember(() => localStorage, "stereod.size", $("size").value);
  send({ type: "quality", scale: SIZES[$("size").value] });
}

document.querySelectorAll("#views input").forEach((radio) => {
  radio.onchange = () => setView(radio.value);
});
$("retry").onclick = () => { attempt = 0; connect(); };
$("pause").onclick = togglePause;
$("record").onclick = toggleRecording;
$("about").onclick = () => togglePanel("details");
$("tune").onclick = () => togglePanel("tuning");
$("ask").onclick = () => $("help").showModal();
$("shoot").onclick = () => openShots($("shots").hidden);
$("shot").onclick = saveView;
for (const id of ["png", "ply"]) $(id).addEventListener("click", () => setTimeout(() => openShots(false), 0));
$("home").onclick = resetCamera;
$("size").onchange = sendQuality;
$("reset").onclick = resetAll;
$("save").onclick = () => send({ type: "save" });
$("blend").oninput = () => { blend = $("blend").value / 100; repaint(); };
$("knobs").onsubmit = (event) => event.preventDefault();
$("token-form").onsubmit = (event) => {
  event.preventDefault();
  token = $("token").value.trim();
  remember(() => sessionStorage, "stereod.token", token);
  complain(null);
  connect();
};
document.querySelectorAll(".close").forEach((button) => {
  button.onclick = () => { if (button.closest("dialog")) $("help").close(); else openPanel(null); };
});
document.addEventListener("pointerdown", (event) => {
  if (!event.target.closest("#tools")) openShots(false);
});
document.addEventListener("focusin", (event) => {
  if (!$("shots").hidden && !event.target.closest("#shots, #shoot")) openShots(false);
});

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function keyOnCanvas(event) {
  const arrow = ARROWS[event.key];
  if (!arrow || !frame) return false;
  if (view === "points") {
    if (event.shiftKey) pan(arrow[0] * 20, arrow[1] * 20);
    else orbit(-arrow[0] * 0.06, -arrow[1] * 0.06);
    return true;
  }
  const { width, height } = frame.header;
  const step = event.shiftKey ? 10 : 1;
  const [x, y] = probe || [0.5, 0.5];
  setProbe(Math.floor(x * width) + arrow[0] * step, Math.floor(y * height) + arrow[1] * step);
  return true;
}

const KEYS = {
  " ": togglePause,
  c: nextColours,
  l: () => setView(VIEWS[(VIEWS.indexOf(view) + 1) % (painter.threeD ? 5 : 4)]),
  r: toggleRecording,
  t: () => { if (allowed("Tuning")) byKey("tuning"); },
  i: () => byKey("details"),
  w: () => { if (allowed("Saving settings")) send({ type: "save" }); },
  s: saveView,
  p: () => { if (frame?.header.geometry) $("ply").click(); else note("A point cloud needs a calibration.", false); },
  f: () => { if (document.fullscreenElement) document.exitFullscreen(); else if (stage.requestFullscreen) stage.requestFullscreen().catch(() => {}); },
  h: () => { if (!$("help").open) $("help").showModal(); },
  0: resetCamera,
  "+": () => { if (view === "points") zoom(0.87); },
  "-": () => { if (view === "points") zoom(1.15); },
};
VIEWS.forEach((name, i) => { KEYS[i + 1] = () => setView(name); });
KEYS["="] = KEYS["+"];

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const target = event.target;
  if ($("help").open) {
    if (event.key === "h") { event.preventDefault(); $("help").close(); }
    return;
  }
  if (event.key === "Escape") {
    if (!$("shots").hidden) { openShots(false); $("shoot").focus(); } else if (panel) openPanel(null);
    return;
  }
  if (target.matches("input[type=text], select, textarea")) return;
  if (target === canvas && keyOnCanvas(event)) { event.preventDefault(); return; }
  if (event.key === " " && target.matches("button, a, input, summary")) return;
  const action = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!action || event.repeat && event.key === " ") return;
  event.preventDefault();
  action();
});

// # Start

let painter = null;
try {
  painter = GlPainter.make();
} catch { /* A driver that cannot compile the shaders. */ }
painter = painter || new PlainPainter();

takeToken();
if (!painter.threeD) {
  const radio = document.querySelector('#views input[value="points"]');
  radio.disabled = true;
  radio.parentElement.title = "Needs WebGL2, which this browser does not have";
}
const size = remember(() => localStorage, "stereod.size");
if (size in SIZES) $("size").value = size;
const last = remember(() => localStorage, "stereod.view");
setView(VIEWS.includes(last) ? last : "both");
setDownloads();
new ResizeObserver(repaint).observe(canvas);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
document.addEventListener("visibilitychange", () => { if (!document.hidden && retryAt) connect(); });
setInterval(tick, 500);
if (typeof DecompressionStream === "undefined") {
  setState("lost", "Browser too old");
  complain("This browser lacks DecompressionStream. Chrome 103, Firefox 113 and Safari 16.4 or later have it.");
} else {
  connect();
}
