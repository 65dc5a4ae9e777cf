// Views, panels and buttons.
import { $, allowed, canvas, element, mayChange, note, remember, send, show, stage, state } from "./state.js";
import { paintNow, repaint, showReadout } from "./paint.js";
import { showFacts } from "./status.js";

export const VIEWS = ["both", "disparity", "left", "blend", "points"];

export const pointers = new Map();

export function updateControls() {
  const may = Boolean(state.hello?.may_change);
  show($("pause"), may);
  show($("tune"), may);
  for (const id of ["pause", "record", "reset", "save"]) $(id).disabled = !mayChange();
  if (state.panel === "tuning" && !may) openPanel(null);
}

export function setView(name) {
  if (name === "points" && !state.painter.threeD) {
    note("The 3-D view needs WebGL2, which this browser does not have.", false);
    return setView("both");
  }
  state.view = name;
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

export function openPanel(name) {
  const inside = $("side").contains(document.activeElement);
  const before = state.panel;
  state.panel = name;
  show($("side"), name !== null);
  show($("details"), name === "details");
  show($("tuning"), name === "tuning");
  $("about").setAttribute("aria-expanded", String(name === "details"));
  $("tune").setAttribute("aria-expanded", String(name === "tuning"));
  if (inside && before && !name) $(before === "tuning" ? "tune" : "about").focus();
  if (name) $(name).querySelector(".close").focus({ preventScroll: true });
  if (name === "details") showFacts();
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
  $("shoot").setAttribute("aria-expanded", String(on));
  if (on) $("shot").focus();
}

export function togglePause() {
  if (allowed("Pausing")) send({ type: "pause", on: !state.status?.paused });
}

export function toggleRecording() {
  if (state.status?.recording && allowed("Recording")) send({ type: "record", on: !state.status.recording.on });
}

export function saveView() {
  if (!state.frame) return;
  openShots(false);
  const { width, height, seq } = state.frame.header;
  if (state.view !== "points") {
    canvas.width = state.view === "both" ? 2 * width + 2 : width;
    canvas.height = height;
  }
  state.painter.paint(canvas.width, canvas.height);
  canvas.toBlob((blob) => {
    const link = element("a", { href: URL.createObjectURL(blob), download: "stereod-" + state.view + "-" + seq + ".png" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }, "image/png");
  paintNow();
}

export const SIZES = { auto: null, full: 1, half: 2, quarter: 4 };
export function sendQuality() {
  remember(() => localStorage, "stereod.size", $("size").value);
  send({ type: "quality", scale: SIZES[$("size").value] });
}
