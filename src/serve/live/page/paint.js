// The canvas: layout of the views, colours, the camera of the 3-D view, and the probe.
import { $, canvas, clamp, depthOf, element, metres, show, stage, state, text, UNKNOWN } from "./state.js";

let dirty = true;

export function setColours(table, limits) {
  if (table) state.colours = table;
  if (limits) state.span = limits;
  state.painter.setColours();
  const ramp = $("ramp").getContext("2d");
  const pixels = ramp.createImageData(256, 1);
  state.colours.slice(0, 256).forEach((colour, i) => pixels.data.set([...colour, 255], 4 * i));
  ramp.putImageData(pixels, 0, 0);
  $("unknown").style.setProperty("--unknown", `rgb(${state.colours[256]})`);
  showLegend();
  dirty = true;
}

export function showLegend() {
  const calibrated = depthOf(1) !== null;
  const labels = [0, 0.25, 0.5, 0.75, 1].map((part) => {
    const d = state.span[0] + part * (state.span[1] - state.span[0]);
    return calibrated ? metres(depthOf(d)) : d.toFixed(state.span[1] - state.span[0] < 8 ? 1 : 0);
  });
  labels[4] += calibrated ? " m" : " px";
  const ticks = $("ticks");
  if (ticks.childElementCount !== 5) ticks.replaceChildren(...labels.map(() => element("span")));
  labels.forEach((label, i) => text(ticks.children[i], label));
  $("legend").title = "Disparity " + state.span[0] + " to " + state.span[1] + " px";
  $("legend").setAttribute("aria-label", "Colours: far " + labels[0] + " to near " + labels[4]);
}

// One or two images, as large as they fit; two side by side or one below the other.
export function panesOn(width, height, header) {
  const { width: w, height: h } = header;
  const shown = state.view === "both" ? ["left", "disparity"] : [state.view];
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

// Left, top, width and height of the visible part of the flat views, as fractions of the image.
export function partOf() {
  const size = 1 / state.lens.scale;
  return [state.lens.x, state.lens.y].map((middle) => clamp(middle - size / 2, 0, 1 - size)).concat(size, size);
}

// Returns the pane below a place of the canvas, and the place in the image as fractions; null outside of all.
export function placeAt(clientX, clientY) {
  if (!state.frame) return null;
  const box = canvas.getBoundingClientRect();
  const ratio = canvas.width / box.width;
  const [left, top, across, down] = partOf();
  for (const pane of panesOn(canvas.width, canvas.height, state.frame.header)) {
    const [x, y] = [((clientX - box.left) * ratio - pane.x) / pane.w, ((clientY - box.top) * ratio - pane.y) / pane.h];
    if (x >= 0 && y >= 0 && x < 1 && y < 1) return { pane, x: left + x * across, y: top + y * down };
  }
  return null;
}

function look(scale, x, y) {
  state.lens = { scale: clamp(scale, 1, 64), x, y };
  const [left, top, size] = partOf();
  Object.assign(state.lens, { x: left + size / 2, y: top + size / 2 });
  show($("fit"), state.lens.scale > 1 && state.view !== "points");
  text($("fit"), "Whole image (now " + state.lens.scale.toFixed(1) + " times)");
  repaint();
}

export function showWhole() {
  look(1, 0.5, 0.5);
}

// Magnifies the flat views; the place in the image, the probe if none is given, stays where it is.
export function magnify(factor, at = state.probe || [state.lens.x, state.lens.y]) {
  const { scale, x, y } = state.lens;
  const after = clamp(scale * factor, 1, 64);
  look(after, at[0] + (x - at[0]) * scale / after, at[1] + (y - at[1]) * scale / after);
}

// Moves the magnified views with the pointer, by pixels of the page.
export function drag(dx, dy) {
  if (!state.frame) return;
  const [pane] = panesOn(canvas.clientWidth, canvas.clientHeight, state.frame.header);
  const { scale, x, y } = state.lens;
  look(scale, x - dx / pane.w / scale, y - dy / pane.h / scale);
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
  state.painter.paint(canvas.width, canvas.height);
  placeCrosses();
}

export function paintNow() {
  dirty = true;
  paint();
}

let asked = false;
export function repaint() {
  dirty = true;
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => { asked = false; paint(); });
}

export const camera = { yaw: 0, pitch: 0, pivot: 1, distance: 1, x: 0, y: 0 };

// Geometry for the points. Without a calibration a plausible one, not to scale.
export function lensOf(header) {
  const g = header.geometry;
  if (g) {
    return { focal: g.focal_px, baseline: g.baseline_m, x: g.centre_x_px, y: g.centre_y_px,
      offset: g.centre_x_px - g.right_centre_x_px };
  }
  const [w, h] = [header.width * header.scale, header.height * header.scale];
  return { focal: w, baseline: 0.1, x: w / 2, y: h / 2, offset: Math.min(header.range[0], 0) - 1 };
}

export function resetCamera() {
  Object.assign(camera, { yaw: 0.28, pitch: -0.2, x: 0, y: 0 });
  if (!state.frame) return;
  const lens = lensOf(state.frame.header);
  // About the mean disparity, which is nearer than the mean depth.
  const known = state.frame.disparity.filter((d) => d !== UNKNOWN && d / 16 > lens.offset);
  const mean = known.reduce((sum, d) => sum + d / 16 - lens.offset, 0) / known.length;
  camera.pivot = (lens.focal * lens.baseline) / mean || 1;
  camera.distance = camera.pivot * 1.1;
  repaint();
}

export function rotation(yaw, pitch) {
  const [cy, sy, cp, sp] = [Math.cos(yaw), Math.sin(yaw), Math.cos(pitch), Math.sin(pitch)];
  return [cy, sp * sy, -cp * sy, 0, cp, sp, sy, -sp * cy, cp * cy];
}

export function orbit(dx, dy) {
  camera.yaw += dx;
  camera.pitch = clamp(camera.pitch + dy, -1.55, 1.55);
  repaint();
}

export function pan(dx, dy) {
  if (!state.frame) return;
  const { header } = state.frame;
  const fit = Math.min(canvas.clientWidth / header.width, canvas.clientHeight / header.height) / header.scale;
  const scale = camera.distance / (lensOf(header).focal * fit);
  camera.x += dx * scale;
  camera.y += dy * scale;
  repaint();
}

export function zoom(factor) {
  camera.distance = clamp(camera.distance * factor, camera.pivot * 0.02, camera.pivot * 20);
  repaint();
}

export function setProbe(column, row) {
  const { width, height } = state.frame.header;
  // Fractions keep their place if the server changes the size.
  state.probe = [(clamp(column, 0, width - 1) + 0.5) / width, (clamp(row, 0, height - 1) + 0.5) / height];
  const [left, top, size] = partOf();
  const [x, y] = [[state.probe[0], left], [state.probe[1], top]].map(([at, begin]) => Math.min(at - begin, 0) + Math.max(at - begin - size, 0));
  // Arrow keys may move it out of the visible part.
  if (x || y) look(state.lens.scale, state.lens.x + x, state.lens.y + y);
  showReadout();
  placeCrosses();
}

export function showReadout() {
  const out = $("readout");
  const say = (tag, textContent, className = "") => element(tag, { textContent, className });
  if (state.view === "points" || !state.probe || !state.frame) {
    const help = state.view !== "points" ? "Point at the image for disparity, depth and confidence"
      : !state.frame || state.frame.header.geometry ? "Points in metres" : "Not to scale: no calibration";
    out.replaceChildren(say("span", help, "quiet"));
    return;
  }
  const { header, disparity, confidence } = state.frame;
  const column = Math.floor(state.probe[0] * header.width);
  const row = Math.floor(state.probe[1] * header.height);
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
  const panes = state.probe && state.frame && state.view !== "points" ? panesOn(canvas.width, canvas.height, state.frame.header) : [];
  const ratio = canvas.width / Math.max(canvas.clientWidth, 1);
  const [left, top, size] = partOf();
  crosses.forEach((cross, i) => {
    show(cross, i < panes.length);
    if (i >= panes.length) return;
    const [x, y] = [(state.probe[0] - left) / size, (state.probe[1] - top) / size];
    show(cross, x >= 0 && y >= 0 && x <= 1 && y <= 1);
    cross.style.left = (panes[i].x + x * panes[i].w) / ratio + "px";
    cross.style.top = (panes[i].y + y * panes[i].h) / ratio + "px";
  });
}
