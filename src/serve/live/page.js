// The live page: takes frames from the WebSocket, draws them, and shows the status and the knobs. This file
// connects keys, buttons and pointers with the parts in page/, and starts the page.
import {
  $, allowed, canvas, clamp, complain, note, remember, send, setDownloads, setState, stage, state,
  takeToken,
} from "./page/state.js";
import { orbit, pan, panesOn, repaint, resetCamera, setProbe, zoom } from "./page/paint.js";
import { GlPainter, PlainPainter } from "./page/painters.js";
import { nextColours, resetAll } from "./page/tuning.js";
import {
  byKey, openPanel, openShots, pointers, saveView, sendQuality, setView, SIZES, togglePanel, togglePause,
  toggleRecording, VIEWS,
} from "./page/controls.js";
import { connect, tick } from "./page/connection.js";

function probeAt(event) {
  if (!state.frame) return;
  const box = canvas.getBoundingClientRect();
  const ratio = canvas.width / box.width;
  const [x, y] = [(event.clientX - box.left) * ratio, (event.clientY - box.top) * ratio];
  const { width, height } = state.frame.header;
  for (const pane of panesOn(canvas.width, canvas.height, state.frame.header)) {
    const column = Math.floor(((x - pane.x) / pane.w) * width);
    const row = Math.floor(((y - pane.y) / pane.h) * height);
    if (column >= 0 && row >= 0 && column < width && row < height) {
      setProbe(column, row);
      return;
    }
  }
}

canvas.addEventListener("pointerdown", (event) => {
  pointers.set(event.pointerId, event);
  if (state.view === "points") canvas.setPointerCapture(event.pointerId);
  else probeAt(event);
});
canvas.addEventListener("pointermove", (event) => {
  if (state.view !== "points") {
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
canvas.addEventListener("contextmenu", (event) => { if (state.view === "points") event.preventDefault(); });
canvas.addEventListener("dblclick", () => { if (state.view === "points") resetCamera(); });
canvas.addEventListener("wheel", (event) => {
  if (state.view !== "points") return;
  event.preventDefault();
  zoom(Math.exp(clamp(event.deltaY * (event.deltaMode ? 30 : 1), -240, 240) * 0.0015));
}, { passive: false });

document.querySelectorAll("#views input").forEach((radio) => {
  radio.onchange = () => setView(radio.value);
});
$("retry").onclick = () => { state.attempt = 0; connect(); };
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
$("blend").oninput = () => { state.blend = $("blend").value / 100; repaint(); };
$("knobs").onsubmit = (event) => event.preventDefault();
$("token-form").onsubmit = (event) => {
  event.preventDefault();
  state.token = $("token").value.trim();
  remember(() => sessionStorage, "stereod.token", state.token);
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
  if (!arrow || !state.frame) return false;
  if (state.view === "points") {
    if (event.shiftKey) pan(arrow[0] * 20, arrow[1] * 20);
    else orbit(-arrow[0] * 0.06, -arrow[1] * 0.06);
    return true;
  }
  const { width, height } = state.frame.header;
  const step = event.shiftKey ? 10 : 1;
  const [x, y] = state.probe || [0.5, 0.5];
  setProbe(Math.floor(x * width) + arrow[0] * step, Math.floor(y * height) + arrow[1] * step);
  return true;
}

const KEYS = {
  " ": togglePause,
  c: nextColours,
  l: () => setView(VIEWS[(VIEWS.indexOf(state.view) + 1) % (state.painter.threeD ? 5 : 4)]),
  r: toggleRecording,
  t: () => { if (allowed("Tuning")) byKey("tuning"); },
  i: () => byKey("details"),
  w: () => { if (allowed("Saving settings")) send({ type: "save" }); },
  s: saveView,
  p: () => { if (state.frame?.header.geometry) $("ply").click(); else note("A point cloud needs a calibration.", false); },
  f: () => { if (document.fullscreenElement) document.exitFullscreen(); else if (stage.requestFullscreen) stage.requestFullscreen().catch(() => {}); },
  h: () => { if (!$("help").open) $("help").showModal(); },
  0: resetCamera,
  "+": () => { if (state.view === "points") zoom(0.87); },
  "-": () => { if (state.view === "points") zoom(1.15); },
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
    if (!$("shots").hidden) { openShots(false); $("shoot").focus(); } else if (state.panel) openPanel(null);
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
const last = remember(() => localStorage, "stereod.view");
setView(VIEWS.includes(last) ? last : "both");
setDownloads();
new ResizeObserver(repaint).observe(canvas);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
document.addEventListener("visibilitychange", () => { if (!document.hidden && state.retryAt) connect(); });
setInterval(tick, 500);
if (typeof DecompressionStream === "undefined") {
  setState("lost", "Browser too old");
  complain("This browser lacks DecompressionStream. Chrome 103, Firefox 113 and Safari 16.4 or later have it.");
} else {
  connect();
}
