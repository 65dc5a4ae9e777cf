// The live page: takes frames from the WebSocket, draws them, and shows the status and the knobs. This file
// connects keys, buttons and pointers with the parts in page/, and starts the page.
import {
  $, allowed, canvas, clamp, complain, element, isStacked, note, press, remember, repaint, send, setDownloads, setState,
  show, state, takeToken, tokenIn,
} from "./page/state.js";
import { drag, magnify, measureAt, placeAt, setProbe, showWhole, toggleMeasuring } from "./page/paint.js";
import { orbit, pan, pick, refit, resetCamera, zoom } from "./page/points.js";
import { ROWS } from "./page/keys.js";
import { GlPainter, PlainPainter } from "./page/painters.js";
import { toggleBanners } from "./page/status.js";
import { nextColours, resetAll } from "./page/tuning.js";
import { toggleAround, togglePath } from "./page/scan.js";
import { addCorner, drawZone, sendZone } from "./page/zones.js";
import {
  byKey, confirmed, openPanel, openRecorder, openShots, pointers, saveView, sendQuality, setView, SIZES, startRecording,
  toggleDepthColours, toggleFullScreen, togglePanel, togglePause, toggleRecording, VIEWS, withLegend,
} from "./page/controls.js";
import { changeSpeed, mark, step, toBegin, toEnd, toggleRepeat } from "./page/timeline.js";
import { connect, tick } from "./page/connection.js";

// Returns column and row of the map under a pointer; in three dimensions, those of the nearest point.
function under({ clientX, clientY }) {
  if (state.view === "points") return pick(clientX, clientY);
  const at = placeAt(clientX, clientY);
  return at && [Math.floor(at.x * state.frame.header.width), Math.floor(at.y * state.frame.header.height)];
}

function probeAt(event) {
  const at = under(event);
  if (at) setProbe(...at);
}

// Magnifies about a place of the page.
function magnifyAt(factor, clientX, clientY) {
  const at = placeAt(clientX, clientY);
  magnify(factor, at ? [at.x, at.y] : undefined);
}

function reset() {
  if (state.view === "points") resetCamera();
  else showWhole();
}

function nearer(factor) {
  if (state.view === "points") zoom(1 / factor);
  else magnify(factor);
}

let pressed = null; // The press of the only pointer, for clicks that measure.
canvas.addEventListener("pointerdown", (event) => {
  pointers.set(event.pointerId, event);
  canvas.setPointerCapture(event.pointerId);
  pressed = pointers.size === 1 && event;
  if (!state.measured) probeAt(event);
});
canvas.addEventListener("pointermove", (event) => {
  const before = pointers.get(event.pointerId);
  const isFlat = state.view !== "points";
  if (!before || (isFlat && pointers.size === 1 && state.lens.scale === 1)) {
    if (!state.measured) probeAt(event);
    return;
  }
  pointers.set(event.pointerId, event);
  const [dx, dy] = [event.clientX - before.clientX, event.clientY - before.clientY];
  const other = [...pointers.values()].find((one) => one.pointerId !== event.pointerId);
  if (other) {
    const away = (one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
    const factor = Math.max(away(event), 1) / Math.max(away(before), 1);
    if (isFlat) {
      magnifyAt(factor, (event.clientX + other.clientX) / 2, (event.clientY + other.clientY) / 2);
      drag(dx / 2, dy / 2);
    } else {
      zoom(1 / factor);
      pan(dx / 2, dy / 2);
    }
  } else if (isFlat) {
    drag(dx, dy);
  } else if (event.shiftKey || event.buttons & 6) {
    pan(dx, dy);
  } else {
    orbit(dx, dy);
  }
});
for (const name of ["pointerup", "pointercancel"]) {
  canvas.addEventListener(name, (event) => pointers.delete(event.pointerId));
}
canvas.addEventListener("pointerup", (event) => {
  const isClick = pressed && event.button === 0 && Math.hypot(event.clientX - pressed.clientX, event.clientY - pressed.clientY) < 4;
  pressed = null;
  const place = isClick && state.corners && placeAt(event.clientX, event.clientY);
  if (place && place.pane.what !== "right" && state.view !== "points") return addCorner([place.x, place.y]);
  const at = isClick && state.measured && under(event);
  if (at) measureAt([(at[0] + 0.5) / state.frame.header.width, (at[1] + 0.5) / state.frame.header.height]);
});
canvas.addEventListener("contextmenu", (event) => { if (state.view === "points") event.preventDefault(); });
canvas.addEventListener("dblclick", () => { if (!state.measured && !state.corners) reset(); });
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  const factor = Math.exp(clamp(event.deltaY * (event.deltaMode ? 30 : 1), -240, 240) * 0.0015);
  if (state.view === "points") zoom(factor);
  else magnifyAt(1 / factor, event.clientX, event.clientY);
}, { passive: false });

document.querySelectorAll("#views input").forEach((radio) => {
  radio.onchange = () => setView(radio.value);
});
const CLICKS = {
  retry: () => { state.attempt = 0; connect(); },
  alerts: () => {
    if ($("banners").hidden && isStacked()) openPanel(null);
    toggleBanners();
  },
  record: () => { if (state.status.recording.on) toggleRecording(); else openRecorder($("recorder").hidden); },
  about: () => togglePanel("details"),
  tune: () => togglePanel("tuning"),
  shoot: () => openShots($("shots").hidden),
  sheet: () => saveView(withLegend),
  draw: () => {
    drawZone(!state.corners);
    if (state.corners && ["points", "right"].includes(state.view)) setView("left");
  },
  reset: resetAll,
  save: () => send({ type: "save" }),
};
for (const [id, act] of Object.entries(CLICKS)) $(id).onclick = act;
$("recorder").onsubmit = (event) => { event.preventDefault(); startRecording(); };
show($("full"), document.fullscreenEnabled);
document.addEventListener("fullscreenchange", () => press($("full"), document.fullscreenElement));
for (const id of ["png", "depth", "ply", "toml"]) $(id).addEventListener("click", () => setTimeout(() => openShots(false), 0));
$("zone").onsubmit = (event) => { event.preventDefault(); sendZone(); };
$("size").onchange = sendQuality;
$("blend").oninput = () => { state.blend = $("blend").value / 100; repaint(); };
$("knobs").onsubmit = (event) => event.preventDefault();
$("token-form").onsubmit = (event) => {
  event.preventDefault();
  state.token = tokenIn($("token").value);
  remember(() => sessionStorage, "stereod.token", state.token);
  complain(null);
  connect();
};
document.querySelectorAll(".close").forEach((button) => {
  button.onclick = () => { if (button.closest("dialog")) $("help").close(); else openPanel(null); };
});
for (const name of ["pointerdown", "focusin"]) {
  document.addEventListener(name, ({ target }) => {
    if (!target.closest("#shots, #shoot")) openShots(false);
    if (!target.closest("#recorder, #record")) openRecorder(false);
  });
}

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function keyOnCanvas(event) {
  if (event.key === "Enter" && state.corners && state.probe) {
    addCorner(state.probe);
    return true;
  }
  const arrow = ARROWS[event.key];
  if (!arrow || !state.frame) return false;
  if (state.view === "points") {
    if (event.shiftKey) pan(arrow[0] * 20, arrow[1] * 20);
    else orbit(arrow[0] * 20, arrow[1] * 20);
    return true;
  }
  const { width, height } = state.frame.header;
  const step = event.shiftKey ? 10 : 1;
  const [x, y] = state.probe || [0.5, 0.5];
  setProbe(Math.floor(x * width) + arrow[0] * step, Math.floor(y * height) + arrow[1] * step);
  return true;
}

const ACTIONS = {
  pause: togglePause,
  "next-colours": nextColours,
  "next-view": () => {
    const views = VIEWS.filter((name) => name !== "points" || state.painter.threeD);
    setView(views[(views.indexOf(state.view) + 1) % views.length]);
  },
  record: () => {
    if (!state.status?.recording || !allowed("Recording")) return;
    const what = state.status.recording.on ? "stop" : "start";
    if (confirmed("record", `Press r again to ${what} the recording, for all viewers.`)) toggleRecording();
  },
  tune: () => { if (allowed("Tuning")) byKey("tuning"); },
  status: () => byKey("details"),
  "write-settings": () => {
    if (!allowed("Saving settings")) return;
    if (confirmed("save", "Press w again to write the settings to a file on the machine of stereod.")) send({ type: "save" });
  },
  snapshot: () => saveView(),
  "point-cloud": () => { if (state.frame?.header.geometry) $("ply").click(); else note("A point cloud needs a calibration.", false); },
  "full-screen": () => { if (document.fullscreenEnabled) toggleFullScreen(); },
  forwards: () => step("next"),
  backwards: () => step("before"),
  begin: toBegin,
  end: toEnd,
  "mark-begin": () => mark(false),
  "mark-end": () => mark(true),
  repeat: toggleRepeat,
  slower: () => changeSpeed(0.5),
  faster: () => changeSpeed(2),
  help: () => { if (!$("help").open) $("help").showModal(); },
  whole: reset,
  nearer: () => nearer(1.15),
  farther: () => nearer(0.87),
  measure: toggleMeasuring,
  obstacles: () => { if (state.frame?.header.obstacles) toggleAround(); },
  path: () => { if (!$("way").hidden) togglePath(); },
  "depth-colours": toggleDepthColours,
  // Again: from the left camera.
  points: () => { if (state.view === "points") resetCamera(true); else setView("points"); },
};
VIEWS.forEach((name) => { ACTIONS[name] ??= () => setView(name); });
// Buttons that do what a key does.
const BUTTONS = {
  pause: "pause", ask: "help", shot: "snapshot", full: "full-screen", home: "whole", fit: "whole", measure: "measure", around: "obstacles",
  way: "path", "depth-colours": "depth-colours", before: "backwards", next: "forwards", from: "mark-begin", to: "mark-end", repeat: "repeat",
};
for (const [id, action] of Object.entries(BUTTONS)) $(id).onclick = ACTIONS[action];
const KEYS = Object.fromEntries(ROWS.flatMap((row) => row.keys).map(([key, action]) => [key, ACTIONS[action]]));

for (const group of new Set(ROWS.map((row) => row.group))) {
  $("keys").append(element("h3", { textContent: group }), element("dl", {}, ...ROWS.filter((row) => row.group === group).flatMap((row) => [
    element("dt", {}, ...row.names.flatMap((textContent) => [element("kbd", { textContent }), " "])),
    element("dd", { textContent: row.meaning }),
  ])));
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const target = event.target;
  if ($("help").open) {
    if (event.key === "h") { event.preventDefault(); $("help").close(); }
    return;
  }
  if (event.key === "Escape") {
    if (!$("shots").hidden) { openShots(false); $("shoot").focus(); } else if (!$("recorder").hidden) { openRecorder(false); $("record").focus(); } else if (state.panel) openPanel(null); else if (!$("banners").hidden) toggleBanners();
    return;
  }
  if (target.matches("input[type=text], input[type=number], select, textarea")) return;
  if (!state.letters && event.key.length === 1 && target !== canvas) return;
  if (target === canvas && keyOnCanvas(event)) { event.preventDefault(); return; }
  if (event.key === " " && target.matches("button, a, input:not([type=range]), summary")) return;
  // A slider has them for itself.
  if (["Home", "End"].includes(event.key) && target.matches("input[type=range]")) return;
  const action = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!action || event.repeat && event.key === " ") return;
  event.preventDefault();
  action();
});

try {
  state.painter = GlPainter.make();
} catch { /* A driver that cannot compile the shaders. */ }
state.painter = state.painter || new PlainPainter();

takeToken();
if (!state.painter.threeD) {
  const radio = document.querySelector('#views input[value="points"]');
  radio.disabled = true;
  radio.parentElement.title = "Needs WebGL2, which this browser does not have";
}
const size = remember(() => localStorage, "stereod.size");
if (size in SIZES) $("size").value = size;
state.letters = remember(() => localStorage, "stereod.letters") !== "false";
$("letters").checked = state.letters;
$("letters").onchange = () => {
  state.letters = $("letters").checked;
  remember(() => localStorage, "stereod.letters", String(state.letters));
};
const last = remember(() => localStorage, "stereod.view");
setView(VIEWS.includes(last) ? last : "both");
setDownloads();
new ResizeObserver(() => { refit(); repaint(); }).observe(canvas);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
document.addEventListener("visibilitychange", () => { if (!document.hidden && state.retryAt) connect(); });
setInterval(tick, 500);
if (typeof DecompressionStream === "undefined") {
  setState("lost", "Browser too old");
  complain("This browser lacks DecompressionStream. Chrome 103, Firefox 113 and Safari 16.4 or later have it.");
} else {
  connect();
}
