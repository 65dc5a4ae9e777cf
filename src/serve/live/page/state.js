// The shared state of the page's parts, small tools, and the connection as the parts use it.

export const UNKNOWN = -32768; // Disparity of a pixel without one.
export const OLD_MS = 1000; // Older images are called old.
export const $ = (id) => document.getElementById(id);
export const canvas = $("canvas");
export const stage = $("stage");

export const state = {
  socket: null,
  token: "",
  attempt: 0,
  retryAt: 0,
  hello: null,
  status: null,
  notice: "", // Reason for the end of the connection.
  frame: null, // The drawn frame: {header, disparity, confidence, verdicts, image, right}.
  colours: [], // From far to near, of unknown pixels, and of verdicts.
  span: [0, 64],
  view: "both",
  lens: { scale: 1, x: 0.5, y: 0.5 }, // Magnification of the flat views, and the middle as fractions of the image.
  letters: true, // Keys of one character work everywhere.
  blend: 0.55,
  byDepth: false, // Points have the colours of their disparities.
  measured: null, // Ends of the measured distance, as fractions of the image.
  corners: null, // Those of the zone that is drawn, as fractions of the image.
  around: true, // Obstacles are shown.
  path: true,
  probe: null, // Position of the probe in pixels of the frame's arrays, as a fraction of the image.
  panel: null,
  painter: null,
  dirty: true, // The canvas.
};

// Reports whether the parts of the page stand one below the other, so that a list and a panel have no room together.
export const isStacked = () => getComputedStyle(document.body).display === "flex";

export function repaint() {
  state.dirty = true;
  if (state.asked) return;
  state.asked = true;
  requestAnimationFrame(() => { state.asked = false; state.paint(); });
}

export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

export function svg(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export function show(node, on) {
  node.hidden = !on;
}

export function text(node, value) {
  if (node.textContent !== value) node.textContent = value;
}

export function press(button, on) {
  button.setAttribute("aria-pressed", Boolean(on));
}

export function clamp(value, low, high) {
  return Math.min(Math.max(value, low), high);
}

export function metres(z) {
  if (!(z > 0 && Number.isFinite(z))) return "\u221e";
  return z.toFixed(z >= 100 ? 0 : z >= 10 ? 1 : z >= 1 ? 2 : 3);
}

export function remember(store, key, value) {
  try {
    if (value === undefined) return store().getItem(key);
    store().setItem(key, value);
  } catch { /* Storage may be forbidden. */ }
  return null;
}

let noteTimer = 0;
export function note(message, ok = true) {
  const node = $("note");
  text(node, message);
  node.classList.toggle("alarm", !ok);
  show(node, true);
  clearTimeout(noteTimer);
  noteTimer = setTimeout(() => show(node, false), ok ? 4000 : 8000);
}

export function mayChange() {
  return Boolean(state.hello?.may_change && state.socket?.readyState === 1);
}

// Returns true if this viewer may change the run, and else says that it needs the token.
export function allowed(what) {
  if (!mayChange()) note(what + (state.socket?.readyState === 1 ? " needs the token." : " needs a connection."), false);
  return mayChange();
}

// Depth of a disparity; null without a calibration.
export function depthOf(disparity) {
  const g = state.frame?.header.geometry;
  if (!g) return null;
  return (g.focal_px * g.baseline_m) / (disparity - (g.centre_x_px - g.right_centre_x_px));
}

export function takeToken() {
  const address = new URL(location.href);
  const given = address.searchParams.get("token");
  if (given !== null) {
    state.token = given;
    remember(() => sessionStorage, "stereod.token", given);
    address.searchParams.delete("token");
    history.replaceState(null, "", address.pathname + address.search + address.hash);
  } else {
    state.token = remember(() => sessionStorage, "stereod.token") || "";
  }
}

export function addressOf(path) {
  const address = new URL(path, location.href);
  address.search = state.token ? "?token=" + encodeURIComponent(state.token) : "";
  address.hash = "";
  return address;
}

export function setDownloads() {
  const files = { png: "disparity.png", depth: "depth.png", ply: "cloud.ply", toml: "settings.toml", "zones-toml": "zones.toml" };
  for (const [id, file] of Object.entries(files)) $(id).href = addressOf("snapshot/" + file).href;
  const calibrated = state.frame?.header.geometry;
  show($("toml"), mayChange());
  for (const id of ["depth", "ply"]) show($(id), calibrated);
  show($("why-no-ply"), !calibrated);
}

// Takes the token of a whole address, too.
export function tokenIn(given) {
  const found = /[?&]token=([^&#\s]+)/.exec(given);
  return found ? decodeURIComponent(found[1]) : given.trim();
}

export function setState(kind, words) {
  $("state").dataset.state = kind;
  text($("state"), words);
}

export function complain(words, askToken = false) {
  show($("message"), Boolean(words));
  text($("message-text"), words || "");
  show($("token-form"), askToken);
}

export function send(message) {
  if (state.socket?.readyState === 1) state.socket.send(JSON.stringify(message));
}
