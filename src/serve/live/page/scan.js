// The scan of obstacles from above, in a corner of the picture: ahead is up.
import { $, element, show } from "./state.js";

const COLOURS = { c: "#1e7a3c", u: "#667" };

export function drawScan({ obstacles }) {
  show($("scan"), obstacles);
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
    wedge(bin, 0, reach, COLOURS[state === "o" ? "c" : state]);
    if (state === "o") wedge(bin, Math.max(reach - 4, 0), reach, `rgb(235 ${Math.round((220 * reach) / height)} 40)`);
  });
  const { nearest, zones } = obstacles;
  const side = nearest && Math.round(nearest.direction_deg);
  const said = nearest
    ? `${nearest.distance_m.toFixed(2)} m, ${side ? `${Math.abs(side)}° ${side > 0 ? "left" : "right"}` : "ahead"}`
    : `nothing found within ${far_m.toFixed(1)} m`;
  const words = { true: "occupied", false: "free", null: "unknown" };
  $("near").replaceChildren(said, ...zones.map(({ name, occupied, nearest: thing }) => element("div", {
    textContent: `${name}: ${words[occupied]}${thing ? `, ${thing.distance_m.toFixed(2)} m` : ""}`,
  })));
}
