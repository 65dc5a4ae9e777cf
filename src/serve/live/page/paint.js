// The canvas: layout of the views, colours, the probe and the measured distance.
import { $, canvas, clamp, depthOf, element, metres, press, repaint, show, stage, state, svg, text, UNKNOWN } from "./state.js";
import { overlayOf } from "./scan.js";
import { deviationAt, gridWords, placeOf, pointAt } from "./points.js";

export function setColours(table, span) {
  state.colours = table.slice(0, 257).concat(state.hello.verdicts.map((one) => one[1]));
  state.span = span;
  state.painter.setColours();
  showLegend();
  state.dirty = true;
}

// That of the disparity, of the confidence, or of the verdicts.
export function showLegend() {
  if (!state.hello) return;
  const isSure = state.view === "confidence";
  const isCheck = state.view === "check";
  const calibrated = depthOf(1) !== null;
  const [low, high] = isCheck ? ["", ""] : isSure ? ["unsure", "sure"] : ["far", "near"];
  const labels = isCheck ? state.hello.verdicts.slice(1).map(([name]) => name) : [0, 0.25, 0.5, 0.75, 1].map((part) => {
    const d = state.span[0] + part * (state.span[1] - state.span[0]);
    if (isSure) return String(100 * part);
    return calibrated ? metres(depthOf(d) < 999.5 ? depthOf(d) : Infinity) : d.toFixed(state.span[1] - state.span[0] < 8 ? 1 : 0);
  });
  if (!isCheck) labels[4] += isSure ? " %" : calibrated ? " m" : " px";
  const ticks = $("ticks");
  // Below their bands, in two lines if need be.
  ticks.style.cssText = isCheck ? "display: grid; grid: auto / repeat(4, 1fr); height: auto; text-align: center; white-space: normal" : "";
  if (ticks.childElementCount !== labels.length) ticks.replaceChildren(...labels.map(() => element(isCheck ? "div" : "span")));
  labels.forEach((label, i) => text(ticks.children[i], label));
  text($("low"), low);
  text($("high"), high);
  text($("unknown"), isSure ? "unknown, filled" : "unknown");
  $("unknown").style.setProperty("--unknown", `rgb(${isSure ? state.hello.no_confidence : state.colours[isCheck ? 257 : 256]})`);
  const ramp = $("ramp").getContext("2d");
  const pixels = ramp.createImageData(256, 1);
  for (let i = 0; i < 256; i++) pixels.data.set(isSure ? [i, i, i, 255] : [...state.colours[isCheck ? 258 + (i >> 6) : i], 255], 4 * i);
  ramp.putImageData(pixels, 0, 0);
  $("legend").title = isCheck ? "" : isSure ? "Probability that the disparity is right within 1 px"
    : "Disparity " + state.span[0] + " to " + state.span[1] + " px";
  $("legend").setAttribute("aria-label", "Colours: " + (isCheck ? labels.join(", ") : `${low} ${labels[0]} to ${high} ${labels[4]}`));
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

const panes = () => panesOn(canvas.width, canvas.height, state.frame.header);

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
  for (const pane of panes()) {
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
    state.dirty = true;
  }
}

state.paint = () => {
  resize();
  if (!state.dirty) return;
  state.dirty = false;
  state.painter.paint(canvas.width, canvas.height);
  placeCrosses();
};

export function paintNow() {
  state.dirty = true;
  state.paint();
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

// Column and row of the map at a place in the image.
function texel([x, y]) {
  const { width, height } = state.frame.header;
  return [Math.min(Math.floor(x * width), width - 1), Math.min(Math.floor(y * height), height - 1)];
}

export function showReadout() {
  const out = $("readout");
  text($("grid"), state.view === "points" ? gridWords() : "");
  const say = (tag, textContent, className = "") => element(tag, { textContent, className });
  if (state.measured && state.frame) {
    out.replaceChildren(say(state.measured.length === 2 ? "b" : "span", distance().words, "words"));
    return;
  }
  if (!state.probe || !state.frame) {
    out.replaceChildren(say("span", "Point at the image for disparity, depth and confidence", "quiet"));
    return;
  }
  const { header, disparity, confidence, verdicts } = state.frame;
  const [column, row] = texel(state.probe);
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
  if (verdicts) parts.push(say("span", "check: " + state.hello.verdicts[verdicts[at]][0]));
  out.replaceChildren(...parts);
}

// Returns the measured distance in words: in short for the line, and as readout. It follows the disparities of both pixels.
function distance() {
  const { measured } = state;
  if (measured.length < 2) return { words: `Measure: click the ${measured.length ? "second" : "first"} point` };
  if (!state.frame.header.geometry) return { words: "Distances need a calibration" };
  const ends = measured.map((end) => texel(end));
  const [from, to] = ends.map((end) => pointAt(...end));
  if (!from || !to) return { words: "A point has no disparity; click again" };
  const by = [0, 1, 2].map((axis) => to[axis] - from[axis]);
  const length = Math.hypot(...by);
  // A point moves along its ray; its depth is right within its standard deviation.
  const along = (point) => [0, 1, 2].reduce((sum, axis) => sum + point[axis] * by[axis], 0) / (point[2] * length);
  const deviation = Math.hypot(along(from) * deviationAt(...ends[0]), along(to) * deviationAt(...ends[1]));
  const error = deviation > 0 ? ` \u00b1 ${Number(deviation.toPrecision(2))}` : "";
  const [x, y, z] = by.map((part) => Math.round(1e3 * part)).map((mm) => (mm < 0 ? "" : "+") + (mm / 1e3).toFixed(3));
  return {
    short: length.toFixed(3) + error + " m",
    words: `Distance ${length.toFixed(3)}${error} m (right ${x}, down ${y}, forward ${z})`,
  };
}

export function toggleMeasuring() {
  state.measured = state.measured ? null : [];
  press($("measure"), state.measured);
  showReadout();
  placeCrosses();
}

// Takes an end of the distance; a third one begins anew.
export function measureAt(end) {
  if (state.measured.length === 2) state.measured = [];
  state.measured.push(end);
  showReadout();
  placeCrosses();
}

// Returns the places of a pixel on the stage, one for each pane; null if it is not to be seen.
function placesOf(end) {
  const ratio = canvas.width / Math.max(canvas.clientWidth, 1);
  if (state.view === "points") {
    const point = pointAt(...texel(end));
    const at = point && placeOf(point);
    return [at && at.slice(0, 2).map((part) => part / ratio)];
  }
  const [left, top, size] = partOf();
  const [x, y] = [(end[0] - left) / size, (end[1] - top) / size];
  const isShown = x >= 0 && y >= 0 && x <= 1 && y <= 1;
  return panes().map((pane) => isShown && [(pane.x + x * pane.w) / ratio, (pane.y + y * pane.h) / ratio]);
}

function placeCrosses() {
  const places = state.probe && state.frame && !state.measured ? placesOf(state.probe) : [];
  stage.querySelectorAll(".cross").forEach((cross, i) => {
    show(cross, places[i]);
    if (places[i]) [cross.style.left, cross.style.top] = places[i].map((part) => part + "px");
  });
  const ends = (state.frame && state.measured || []).map(placesOf);
  const marks = ends.flat().filter(Boolean).map(([cx, cy]) => svg("circle", { cx, cy, r: 4 }));
  const { short } = ends[1] ? distance() : {};
  const lines = (ends[1] || []).flatMap((to, i) => {
    const from = ends[0][i];
    if (!to || !from) return [];
    const [x, y] = [(from[0] + to[0]) / 2, Math.max((from[1] + to[1]) / 2 - 8, 14)];
    const anchor = ["start", "middle", "end"][clamp(Math.floor((3 * x) / canvas.clientWidth), 0, 2)];
    return [svg("line", { x1: from[0], y1: from[1], x2: to[0], y2: to[1] }),
      svg("text", { x, y, fill: "#ffbe3c", "text-anchor": anchor }, short || "")];
  });
  const ratio = canvas.width / Math.max(canvas.clientWidth, 1);
  const flat = state.frame && state.view !== "points" ? panes() : [];
  $("ruler").replaceChildren(...flat.filter((pane) => pane.what !== "right").map((pane) => overlayOf(pane, ratio, partOf())),
    ...lines, ...marks);
}
