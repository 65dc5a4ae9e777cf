// Views, panels and buttons.
import { $, addressOf, allowed, canvas, element, isStacked, mayChange, note, press, remember, repaint, send, show, stage, state, text } from "./state.js";
import { paintNow, showLegend, showReadout } from "./paint.js";
import { refit } from "./points.js";
import { showFacts, toggleBanners } from "./status.js";
import { showTimeline } from "./timeline.js";
import { drawZone } from "./zones.js";

export const VIEWS = [...document.querySelectorAll("#views input")].map((radio) => radio.value);

export const pointers = new Map();

export function updateControls() {
  const may = Boolean(state.hello?.may_change);
  show($("pause"), may);
  show($("tune"), may);
  for (const id of ["pause", "record", "reset", "save"]) $(id).disabled = !mayChange();
  if (state.panel === "tuning" && !may) openPanel(null);
  showTimeline();
}

export function setView(name) {
  if (name === "points" && !state.painter.threeD) {
    note("The 3-D view needs WebGL2, which this browser does not have.", false);
    return setView("both");
  }
  // The key of the next view steps over it.
  if (name === "check" && state.frame?.verdicts === 0) name = state.view === "confidence" ? "right" : "disparity";
  if ((name === "right") !== (state.view === "right")) {
    state.view = name;
    sendQuality();
  }
  state.view = name;
  remember(() => localStorage, "stereod.view", name);
  document.querySelector(`#views input[value="${name}"]`).checked = true;
  const points = name === "points";
  stage.classList.toggle("orbiting", points);
  show($("mix"), name === "blend");
  show($("orbit"), points);
  show($("legend"), !["left", "right"].includes(name) && (!points || state.byDepth));
  showLegend();
  show($("fit"), state.lens.scale > 1 && !points);
  canvas.setAttribute("aria-label", points
    ? "Points in three dimensions. Arrow keys rotate, with Shift move, plus and minus zoom."
    : "Disparity and left image. Arrow keys move the probe, plus and minus zoom.");
  pointers.clear();
  refit();
  showReadout();
  repaint();
}

export function toggleDepthColours() {
  state.byDepth = !state.byDepth;
  press($("depth-colours"), state.byDepth);
  setView(state.view);
}

export function openPanel(name) {
  const inside = $("side").contains(document.activeElement);
  const before = state.panel;
  state.panel = name;
  if (name && isStacked() && !$("banners").hidden) toggleBanners();
  show($("side"), name !== null);
  document.body.classList.toggle("panelled", name !== null);
  for (const [panel, button] of [["details", "about"], ["tuning", "tune"]]) {
    show($(panel), name === panel);
    $(button).setAttribute("aria-expanded", name === panel);
  }
  if (inside && before && !name) $(before === "tuning" ? "tune" : "about").focus();
  if (name) $(name).querySelector(".close").focus({ preventScroll: true });
  if (name === "details") showFacts();
  if (name !== "tuning" && state.corners) drawZone(false);
}

export function togglePanel(name) {
  openPanel(state.panel === name ? null : name);
}

// Frees Space.
export function byKey(name) {
  togglePanel(name);
  if (!state.panel) document.activeElement.blur();
}

export function openShots(on) {
  show($("shots"), on);
  $("shoot").setAttribute("aria-expanded", on);
  if (on) $("shot").focus();
  if (on && mayChange() && state.status?.recording) listRecordings();
}

async function listRecordings() {
  const { files } = await listed();
  $("recordings").replaceChildren(...files.map(({ name, bytes, address }) => element("a", {
    href: addressOf(address).href, download: name, textContent: `${name}, ${inBytes(bytes)}`,
  })));
  show($("recordings"), files.length);
}

export function openRecorder(on) {
  show($("recorder"), on);
  $("record").setAttribute("aria-expanded", on);
  if (!on) return;
  $("file").focus();
  text($("room"), "");
  listed().then(({ free }) => text($("room"), free === null ? "" : `${inBytes(free)} free`));
}

export function startRecording() {
  openRecorder(false);
  $("record").focus();
  if (allowed("Recording")) send({ type: "record", on: true, name: $("file").value });
}

function inBytes(bytes) {
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
}

// The files of frames that the run has written so far, and the room for more.
async function listed() {
  const answer = await fetch(addressOf("recordings")).catch(() => null);
  return answer?.ok ? answer.json() : { files: [], free: null };
}

// Keys that change files for all have to be pressed twice.
let asked = null;
export function confirmed(what, words) {
  const now = performance.now();
  const isAgain = asked?.what === what && now - asked.at < 4000;
  asked = isAgain ? null : { what, at: now };
  if (!isAgain) note(words);
  return isAgain;
}

export function togglePause() {
  if (allowed("Pausing")) send({ type: "pause", on: !state.status?.paused });
}

export function toggleRecording() {
  if (state.status?.recording && allowed("Recording")) send({ type: "record", on: !state.status.recording.on });
}

// Saves the present view, whole. `finish` may put it on a larger canvas.
export function saveView(finish = (view) => view) {
  if (!state.frame) return;
  openShots(false);
  const { width, height, seq, time } = state.frame.header;
  const { lens } = state;
  state.lens = { scale: 1, x: 0.5, y: 0.5 };
  if (state.view !== "points") {
    canvas.width = state.view === "both" ? 2 * width + 2 : width;
    canvas.height = height;
  }
  state.painter.paint(canvas.width, canvas.height);
  // As the server names its files (snapshot.rs).
  const download = `stereod-${String(seq).padStart(6, "0")}-${time.toFixed(3)}s-${state.view}.png`;
  finish(canvas).toBlob((blob) => {
    const link = element("a", { href: URL.createObjectURL(blob), download });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }, "image/png");
  state.lens = lens;
  paintNow();
}

// Puts the legend and the values at the probe below a view.
export function withLegend(view) {
  const { height } = view;
  const sheet = element("canvas", { width: Math.max(view.width, 460), height: height + 56 });
  const c = sheet.getContext("2d");
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);
  c.fillStyle = colour("--ground");
  c.fillRect(0, 0, sheet.width, sheet.height);
  c.drawImage(view, 0, 0);
  c.fillStyle = colour("--text");
  c.font = "12px system-ui, sans-serif";
  const { seq, time } = state.frame.header;
  c.fillText(`${$("source").textContent}, pair ${seq}, ${time.toFixed(3)} s`, 8, height + 16);
  if ($("legend").hidden) return sheet;
  c.imageSmoothingEnabled = false;
  const isCheck = state.view === "check";
  const length = isCheck ? 280 : 200;
  c.drawImage($("ramp"), 54, height + 24, length, 10);
  [["low", 8], ["high", length + 60], ["unknown", length + 116]].forEach(([id, x]) => c.fillText($(id).textContent, x, height + 33));
  c.textAlign = "center";
  [...$("ticks").children].forEach((tick, i) => c.fillText(tick.textContent, 54 + length / 8 * (2 * i + isCheck), height + 49));
  c.fillStyle = $("unknown").style.getPropertyValue("--unknown");
  c.fillRect(length + 100, height + 24, 12, 10);
  return sheet;
}

export function toggleFullScreen() {
  if (document.fullscreenElement) document.exitFullscreen();
  else document.querySelector("main").requestFullscreen().catch(() => {});
}

export const SIZES = { auto: null, full: 1, half: 2, quarter: 4 };
export function sendQuality() {
  remember(() => localStorage, "stereod.size", $("size").value);
  send({ type: "quality", scale: SIZES[$("size").value], right: state.view === "right" });
}
