// The WebSocket, and the messages that come from it.
import { $, addressOf, complain, element, note, send, setDownloads, setState, show, state, text } from "./state.js";
import { setColours } from "./paint.js";
import { arrived, queue, takeTime, times } from "./frames.js";
import { showRates, showStatus } from "./status.js";
import { forgetRequests, takeKnobs } from "./tuning.js";
import { sendQuality, updateControls } from "./controls.js";
import { takePath } from "./scan.js";
import { takeZones } from "./zones.js";

const SILENCE_MS = 30000; // The server sends a status every second, after a frame that is on its way.

let heard = 0;

export function connect() {
  state.retryAt = 0;
  show($("retry"), false);
  setState("wait", state.attempt ? "Reconnecting" : "Connecting");
  const address = addressOf("live");
  address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
  const made = new WebSocket(address.href);
  state.socket = made;
  heard = Date.now();
  made.binaryType = "arraybuffer";
  made.onopen = () => { heard = Date.now(); };
  made.onmessage = (event) => {
    if (state.socket !== made) return;
    heard = Date.now();
    if (typeof event.data === "string") receive(JSON.parse(event.data));
    else arrived(made, event.data);
  };
  made.onclose = (event) => { if (state.socket === made) lost(event); };
}

function lost(event) {
  state.socket?.close();
  state.socket = null;
  queue.length = 0;
  updateControls();
  state.notice = event?.reason && event.code !== 1008 ? event.reason[0].toUpperCase() + event.reason.slice(1) + "." : "";
  // The run is over, or this viewer was closed.
  if (event?.code === 1000 || event?.code === 4000) {
    state.notice += " This page does not connect again by itself.";
    setState("wait", event.code === 1000 ? "Ended" : "Closed");
    show($("retry"), true);
    showRates();
    return;
  }
  const reason = event?.code === 1008 ? event.reason || "no reason given" : "";
  if (/token/i.test(reason)) {
    setState(state.token ? "lost" : "wait", state.token ? "Token refused" : "Token needed");
    complain((state.token ? `The server refused the token (${reason}). ` : "")
      + "Paste the whole address that stereod printed at its start, with ?token=..., or enter the token here.", true);
    show($("retry"), true);
    return;
  }
  if (reason) complain("The server refused the connection: " + reason);
  else if (!state.frame) complain((state.notice || "No connection to stereod.") + " This page tries again by itself.");
  state.attempt += 1;
  const wait = reason ? 10000 : Math.min(500 * 2 ** (state.attempt - 1), 8000) * (0.8 + 0.4 * Math.random());
  state.retryAt = Date.now() + wait;
  show($("retry"), true);
  tick();
}

export function tick() {
  const now = Date.now();
  if (state.retryAt) {
    setState("lost", "Connection lost, next try in " + Math.max(0, Math.ceil((state.retryAt - now) / 1000)) + " s");
    if (now >= state.retryAt) connect();
  } else if (state.socket && now - heard > SILENCE_MS) {
    lost(null);
  }
  showRates();
}

// Links to the pages of the other rigs.
function showRigs({ rigs, rig, source }) {
  const several = rigs.length > 1;
  document.title = "stereod: " + (several ? rigs[rig] + ", " : "") + source;
  show($("rigs"), several);
  if (!several) return;
  $("rigs").replaceChildren(...rigs.map((name, place) => {
    const link = element("a", { textContent: name, href: addressOf(`../${name}/`).href });
    if (place === rig) link.setAttribute("aria-current", "page");
    return link;
  }));
}

function receive(message) {
  switch (message.type) {
    case "hello":
      state.hello = message;
      state.attempt = 0;
      state.notice = "";
      times.length = 0;
      complain(null);
      for (const id of ["path", "way"]) show($(id), false);
      setState("live", "Connected");
      setColours(message.colours, state.span);
      text($("source"), message.source);
      $("source").title = message.source + ", stereod " + message.version;
      showRigs(message);
      sendQuality();
      forgetRequests();
      setDownloads();
      updateControls();
      break;
    case "status":
      if (state.status?.paused && state.frame) state.frame.waited = performance.now();
      state.status = message;
      send({ type: "clock", at: performance.now() });
      showStatus();
      break;
    case "path":
      takePath(message);
      break;
    case "clock":
      takeTime(message);
      break;
    case "knobs":
      setColours(message.colours, state.span);
      takeKnobs(message);
      takeZones(message.zones);
      updateControls();
      break;
    case "note":
      note(message.text, message.ok);
      break;
  }
}
