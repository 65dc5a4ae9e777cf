// The list of zones, and drawing one over the left image.
import { $, element, repaint, show, state, text } from "./state.js";
import { ask } from "./tuning.js";

let shown = "";
export function takeZones(zones) {
  show($("zones"), zones);
  // The rows stay while the zones do, so that a button keeps the focus.
  if (!zones || shown === String(zones)) return;
  shown = String(zones);
  $("zone-list").replaceChildren(...zones.map((name) => element("li", {}, name, element("button", {
    textContent: "Remove", ariaLabel: "Remove zone " + name, onclick: () => ask({ type: "zone", edit: { remove: name } }),
  }))));
}

export function drawZone(on) {
  state.corners = on ? [] : null;
  show($("zone"), on);
  $("draw").setAttribute("aria-expanded", on);
  show($("scan"), !on && state.around && state.frame?.header.obstacles);
  $("done").disabled = true;
  text($("corners"), "Tap three corners or more in the left image, or move the probe with arrows and press Enter.");
  repaint();
}

export function addCorner(place) {
  state.corners.push(place.map((part) => Number(part.toFixed(4))));
  $("done").disabled = state.corners.length < 3;
  repaint();
}

export function sendZone() {
  const [near_m, far_m] = ["near-m", "far-m"].map((id) => $(id).valueAsNumber);
  const add = { name: $("zone-name").value.trim(), image: state.corners, near_m, far_m };
  ask({ type: "zone", edit: { add } }, (problem) => {
    if (problem) text($("corners"), problem);
    else drawZone(false);
  });
}
