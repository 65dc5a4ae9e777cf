// The points in three dimensions: their viewpoint, the numbers for the shaders, and the point under the mouse.
// As in the window (src/window/orbit.rs).
import { canvas, clamp, repaint, state, UNKNOWN } from "./state.js";

const REACH = 12; // Distance from the mouse in pixels of the page within which a point is picked.
const PICKED = 1 << 20; // Largest number of pixels among which one is picked.

// Extent of the scene in metres, which stays while it moves: depth of the pivot, distance of the ground below the
// camera, side of the grid's squares. Angles in radians, distance and pan as multiples of the pivot's depth.
const stage = { pivot: 1, ground: 0.5, square: 0.2 };
const camera = { yaw: 0, pitch: 0, distance: 1, pan: [0, 0] };

// Geometry of the cameras. Without a calibration depths have the right order and no true unit.
export function lensOf({ geometry: g, width, height, scale }) {
  if (g) {
    return { focal: g.focal_px, baseline: g.baseline_m, x: g.centre_x_px, y: g.centre_y_px,
      offset: g.centre_x_px - g.right_centre_x_px };
  }
  const [w, h] = [width * scale, height * scale];
  return { focal: Math.max(w, h), baseline: 0.1, x: (w - 1) / 2, y: (h - 1) / 2, offset: 0 };
}

// Returns the point of a place in the map; null without a depth.
export function pointAt(column, row) {
  const { header, disparity } = state.frame;
  return pointOf(lensOf(header), header, column, row, disparity[row * header.width + column]);
}

function pointOf(lens, { scale }, column, row, value) {
  const parallax = value / 16 - lens.offset;
  if (value === UNKNOWN || parallax <= 0) return null;
  const z = (lens.focal * lens.baseline) / parallax;
  return [((column * scale - lens.x) * z) / lens.focal, ((row * scale - lens.y) * z) / lens.focal, z];
}

function lookAround() {
  const { header, disparity } = state.frame;
  const lens = lensOf(header);
  const points = [];
  const skip = Math.ceil(disparity.length / 4096) | 1;
  for (let i = 0; i < disparity.length; i += skip) {
    const point = pointOf(lens, header, i % header.width, Math.floor(i / header.width), disparity[i]);
    if (point) points.push(point);
  }
  if (!points.length) return;
  const at = (axis, share) => points.map((point) => point[axis]).sort((a, b) => a - b)[Math.floor((points.length - 1) * share)];
  stage.pivot = at(2, 0.5);
  stage.ground = Math.max(at(1, 0.97), 0.1 * stage.pivot);
  const most = stage.pivot / 5;
  const ten = 10 ** Math.floor(Math.log10(most));
  stage.square = ten * [5, 2, 1].find((step) => step * ten <= most * 1.0001 || step === 1);
}

// From beside and above; true: as the left camera sees the scene.
export function resetCamera(asLeft = false) {
  Object.assign(camera, asLeft === true ? { yaw: 0, pitch: 0, distance: 1 } : { yaw: 0.35, pitch: -0.3, distance: 1.9 });
  camera.pan = [0, 0];
  if (state.frame) lookAround();
  repaint();
}

export function gridWords() {
  if (!state.frame?.header.geometry) return "Not to scale: no calibration";
  return `Grid: squares of ${Number(stage.square.toPrecision(2))} m`;
}

// By pixels of the page.
export function orbit(dx, dy) {
  camera.yaw -= (2 * dx) / canvas.clientHeight;
  camera.pitch = clamp(camera.pitch - (2 * dy) / canvas.clientHeight, -1.5, 1.5);
  repaint();
}

export function pan(dx, dy) {
  const scale = camera.distance / canvas.clientHeight;
  camera.pan = [camera.pan[0] + dx * scale, camera.pan[1] + dy * scale];
  repaint();
}

export function zoom(factor) {
  camera.distance = clamp(camera.distance * factor, 0.05, 20);
  repaint();
}

// The matrix from points to clip space, column by column, and the extent there of a metre to the right and down. The image
// of the left camera fits into the canvas, and the pivot is in front of it.
function matrixOf(header, width, height) {
  const lens = lensOf(header);
  const { pivot } = stage;
  const size = [header.width * header.scale, header.height * header.scale];
  const fit = Math.min(width / size[0], height / size[1]);
  const share = [(fit * size[0]) / width, (fit * size[1]) / height];
  const [near, far] = [0.01 * pivot, 1000 * pivot];
  const spread = [((2 * lens.focal) / size[0]) * share[0], ((-2 * lens.focal) / size[1]) * share[1]];
  const project = [
    [spread[0], 0, 0, 0],
    [0, spread[1], 0, 0],
    [((2 * (lens.x + 0.5)) / size[0] - 1) * share[0], (1 - (2 * (lens.y + 0.5)) / size[1]) * share[1],
      (far + near) / (far - near), 1],
    [0, 0, (-2 * near * far) / (far - near), 0],
  ];
  const [sy, cy, sp, cp] = [Math.sin(camera.yaw), Math.cos(camera.yaw), Math.sin(camera.pitch), Math.cos(camera.pitch)];
  const turn = [[cy, -sp * sy, -cp * sy], [0, cp, -sp], [sy, sp * cy, cp * cy]];
  const end = [...camera.pan, camera.distance];
  const shift = [0, 1, 2].map((row) => pivot * (end[row] - turn[2][row]));
  const columns = [[...turn[0], 0], [...turn[1], 0], [...turn[2], 0], [...shift, 1]];
  const times = (column) => [0, 1, 2, 3].map((row) => column.reduce((sum, part, i) => sum + part * project[i][row], 0));
  return { matrix: columns.flatMap(times), spread };
}

export const isLeftCamera = () => !camera.yaw && !camera.pitch && camera.distance === 1 && !camera.pan[0] && !camera.pan[1];

// `struct Space` of shaders/points.wgsl.
export function spaceOf(header, width, height) {
  const lens = lensOf(header);
  const { matrix, spread } = matrixOf(header, width, height);
  const swell = 1 + Math.min(2 * Math.max(Math.abs(camera.yaw), Math.abs(camera.pitch)), 0.5);
  return new Float32Array([...matrix, lens.x, lens.y, ...spread, lens.focal, lens.focal * lens.baseline,
    lens.offset, header.scale, 0, 3e38, stage.ground, stage.square, swell, ...new Array(7).fill(0)]);
}

// Returns x and y on the canvas in its pixels, and the distance; null behind the viewer.
function placeOn(matrix, [x, y, z]) {
  const row = (i) => matrix[i] * x + matrix[4 + i] * y + matrix[8 + i] * z + matrix[12 + i];
  const w = row(3);
  return w > 0 ? [(0.5 + (0.5 * row(0)) / w) * canvas.width, (0.5 - (0.5 * row(1)) / w) * canvas.height, w] : null;
}

export function placeOf(point) {
  return placeOn(matrixOf(state.frame.header, canvas.width, canvas.height).matrix, point);
}

// Returns column and row of the point at a place of the page, the nearest to the viewer among those close by.
export function pick(clientX, clientY) {
  if (!state.frame) return null;
  const box = canvas.getBoundingClientRect();
  const ratio = canvas.width / box.width;
  const [x, y, reach] = [(clientX - box.left) * ratio, (clientY - box.top) * ratio, REACH * ratio];
  const { header, disparity } = state.frame;
  const lens = lensOf(header);
  const { matrix } = matrixOf(header, canvas.width, canvas.height);
  const skip = Math.ceil(Math.sqrt(Math.ceil(disparity.length / PICKED)));
  let best = null;
  for (let row = 0; row < header.height; row += skip) {
    for (let column = 0; column < header.width; column += skip) {
      const point = pointOf(lens, header, column, row, disparity[row * header.width + column]);
      const at = point && placeOn(matrix, point);
      const away = at ? Math.hypot(at[0] - x, at[1] - y) : Infinity;
      if (away > reach) continue;
      const isClose = 3 * away <= reach;
      const value = isClose ? at[2] : away;
      if (!best || isClose > best.isClose || (isClose === best.isClose && value < best.value)) best = { isClose, value, column, row };
    }
  }
  return best && [best.column, best.row];
}
