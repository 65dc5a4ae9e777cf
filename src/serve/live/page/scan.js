// The scan of obstacles and the zones: over the images, and from above in a corner, where ahead is up. In another corner
// the path of the vehicle.
import { $, element, press, repaint, show, state, svg } from "./state.js";

const COLOURS = { c: "#28963c", u: "#696969" };
const ZONES = { true: "#ff8a5c", false: "#6ee08c", null: "#d6dae0" }; // Occupied, free, unknown.

const colourOf = (state, share) => COLOURS[state] || `rgb(235 ${Math.round(220 * share)} 40)`;
const away = (zone) => zone.nearest ? ` ${zone.nearest.distance_m.toFixed(2)} m` : "";

export function toggleAround() {
  state.around = !state.around;
  if (state.frame) drawScan(state.frame.header);
  repaint();
}

// Returns the scan as a strip at the upper edge of a pane, the edges of zones, and the corners of the one that is drawn.
export function overlayOf(pane, ratio, [left, top, size]) {
  const { overlay, obstacles } = state.frame.header;
  const [x, y, width, height] = [pane.x, pane.y, pane.w, pane.h].map((part) => part / ratio);
  const at = ([across, down]) => [((across - left) / size) * width, ((down - top) / size) * height];
  const points = (places) => places.map((place) => at(place).join()).join(" ");
  const made = [];
  if (overlay && state.around) {
    const { states, distances_m, far_m } = obstacles.scan;
    [...states].forEach((state, bin) => {
      const [right, begin] = [0, 1].map((i) => at([overlay.edges[bin + i], 0])[0]);
      made.push(svg("rect", { x: begin, width: right - begin, height: 8, fill: colourOf(state, distances_m[bin] / far_m) }));
    });
    obstacles.zones.forEach((zone, i) => {
      const lines = overlay.zones[i];
      const stroke = ZONES[zone.occupied];
      for (const line of lines) made.push(svg("polyline", { points: points(line), stroke }));
      if (!lines.length) return;
      const [tx, ty] = lines.flat().map(at).reduce((a, b) => (b[1] < a[1] ? b : a));
      made.push(svg("text", { x: tx, y: Math.max(ty - 5, 24), fill: stroke, "text-anchor": tx > width / 2 ? "end" : "start" }, zone.name + away(zone)));
    });
  }
  if (state.corners) {
    made.push(svg("polygon", { points: points(state.corners), stroke: "#ffbe3c" }));
    for (const [cx, cy] of state.corners.map(at)) made.push(svg("circle", { cx, cy, r: 5 }));
  }
  return svg("svg", { x, y, width, height }, ...made);
}

export function drawScan({ obstacles }) {
  show($("scan"), obstacles && state.around && !state.corners);
  show($("around"), obstacles);
  press($("around"), state.around);
  if (!obstacles) return;
  const { first_deg, bin_deg, far_m, states, distances_m } = obstacles.scan;
  const canvas = $("above");
  const { width, height } = canvas;
  const draw = canvas.getContext("2d");
  const middle = first_deg + (bin_deg * states.length) / 2;
  // Angles of the scan are positive to the left, those of a canvas to the right, from the right.
  const turned = (degrees) => ((-90 - (degrees - middle)) * Math.PI) / 180;
  const wedge = (bin, from, to, colour) => {
    const [start, end] = [first_deg + bin * bin_deg, first_deg + (bin + 1) * bin_deg].map(turned);
    draw.beginPath();
    draw.arc(width / 2, height, to, end, start);
    draw.arc(width / 2, height, from, start, end, true);
    draw.fillStyle = colour;
    draw.fill();
  };
  draw.clearRect(0, 0, width, height);
  [...states].forEach((state, bin) => {
    const reach = Math.min(distances_m[bin] / far_m || 1, 1) * height;
    wedge(bin, 0, reach, colourOf(state === "o" ? "c" : state));
    if (state === "o") wedge(bin, Math.max(reach - 4, 0), reach, colourOf(state, reach / height));
  });
  const { nearest, zones } = obstacles;
  const side = nearest && Math.round(nearest.direction_deg);
  const said = nearest
    ? `${nearest.distance_m.toFixed(2)} m, ${side ? `${Math.abs(side)}° ${side > 0 ? "left" : "right"}` : "ahead"}`
    : `nothing found within ${far_m.toFixed(1)} m`;
  const words = { true: "occupied", false: "free", null: "unknown" };
  $("near").replaceChildren(said, ...zones.map((zone) => element("div", {
    textContent: `${zone.name}: ${words[zone.occupied]}${away(zone)}`,
  })));
}

export function togglePath() {
  state.path = !state.path;
  press($("way"), state.path);
  show($("path"), state.path);
}

// Takes the changes of the path: points have metres across and down, and whether no line leads to them.
let points = [];
export function takePath({ keep, points: more, now: [x, y, direction], square, bar_m, text: words, lost }) {
  points = points.slice(points.length - keep).concat(more);
  const d = [...points, [x, y]].map(([across, down, begins], i) => `${begins || !i ? "M" : "L"}${across} ${down}`).join("");
  const [left, top, side] = square;
  const drawn = svg("svg", { viewBox: [...square, side], role: "img", "aria-label": "Path from above" },
    svg("path", { d, stroke: "#56b4e9" }), svg("path", { d: `M${left} ${top + 0.99 * side}h${bar_m}`, stroke: "#fff" }),
    svg("path", { class: "vehicle", d: "M0-7 5 7 0 4-5 7z", transform: `translate(${x} ${y}) rotate(${direction}) scale(${side / 160})` }),
    svg("text", { x: left, y: top + 0.96 * side, "font-size": side / 14 }, bar_m + " m"));
  $("path").replaceChildren(drawn, element("div", { textContent: words, className: lost ? "alarm" : "" }));
  show($("way"), true);
  show($("path"), state.path);
}
