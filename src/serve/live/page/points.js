// The points in three dimensions: their viewpoint, the numbers for the shaders, and the point under the mouse.
// As in the window (src/window/orbit.rs), but that they fit the first view.
import { canvas, clamp, repaint, state, UNKNOWN } from "./state.js";

const REACH = 12; // Distance from the mouse in pixels of the page within which a point is picked.
const DISTANCE = [0.05, 20]; // Smallest and largest, where 1 is that of the left camera.
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

// Returns the standard deviation of the depth there in metres, if the disparity is right within 1 px; NaN if unknown.
export function deviationAt(column, row) {
  const { header, confidence } = state.frame;
  const { focal, baseline } = lensOf(header);
  const z = pointAt(column, row)[2];
  return (z * z) / (focal * baseline) * (state.hello.deviations_px[confidence?.[row * header.width + column]] ?? NaN);
}

function pointOf(lens, { scale }, column, row, value) {
  const parallax = value / 16 - lens.offset;
  if (value === UNKNOWN || parallax <= 0) return null;
  const z = (lens.focal * lens.baseline) / parallax;
  return [((column * scale - lens.x) * z) / lens.focal, ((row * scale - lens.y) * z) / lens.focal, z];
}

// Share of the points that may lie beyond the edges of the first view, on each side.
const OUTSIDE = 0.02;
const DEEP = 4; // Points deeper than this multiple of the median depth may lie outside.

let isStart = true; // Nobody has moved the camera.

// Returns points of the present frame, spread over the image.
function somePoints() {
  const { header, disparity } = state.frame;
  const lens = lensOf(header);
  const points = [];
  const skip = Math.ceil(disparity.length / 4096) | 1;
  for (let i = 0; i < disparity.length; i += skip) {
    const point = pointOf(lens, header, i % header.width, Math.floor(i / header.width), disparity[i]);
    if (point) points.push(point);
  }
  return points;
}

const quantile = (values, share) => values.sort((a, b) => a - b)[Math.floor((values.length - 1) * share)];

function lookAround(points) {
  stage.pivot = quantile(points.map((point) => point[2]), 0.5);
  stage.ground = Math.max(quantile(points.map((point) => point[1]), 0.97), 0.1 * stage.pivot);
  const most = stage.pivot / 5;
  const ten = 10 ** Math.floor(Math.log10(most));
  stage.square = ten * [5, 2, 1].find((step) => step * ten <= most * 1.0001 || step === 1);
}

// From beside and above, with the points as large as they fit; true: as the left camera sees the scene.
export function resetCamera(asLeft = false) {
  Object.assign(camera, asLeft === true ? { yaw: 0, pitch: 0, distance: 1 } : { yaw: 0.35, pitch: -0.3, distance: 1.9 });
  camera.pan = [0, 0];
  isStart = asLeft !== true;
  const points = state.frame ? somePoints() : [];
  if (points.length) lookAround(points);
  if (points.length && isStart) fit(points);
  repaint();
}

// Fits the points into a view of another size.
export function refit() {
  if (isStart && state.view === "points") resetCamera();
}

// Moves the camera back and aside until the points fit, except for a few at each edge and those far behind.
function fit(points) {
  const { pivot } = stage;
  const { project, turn } = partsOf(state.frame.header, canvas.clientWidth || 1, canvas.clientHeight || 1);
  const seen = points.filter(([, , z]) => z <= DEEP * pivot)
    .map(([x, y, z]) => [0, 1, 2].map((row) => turn[0][row] * x + turn[1][row] * y + turn[2][row] * (z - pivot)));
  // At a distance d the point (x, y, z) with the shift p is at ((x + p) s + (z + d) o) / (z + d) in clip space.
  // It is within 1 if p is between -x + (z + d) low and -x + (z + d) high.
  const limits = [0, 1].map((axis) => {
    const [low, high] = [-0.94, 0.94].map((edge) => (edge - project[2][axis]) / project[axis][axis]).sort((a, b) => a - b);
    const least = quantile(seen.map((point) => point[2] * low - point[axis]), 1 - OUTSIDE);
    const most = quantile(seen.map((point) => point[2] * high - point[axis]), OUTSIDE);
    return { low, high, least, most };
  });
  const distance = Math.max(...limits.map(({ low, high, least, most }) => (least - most) / (high - low)));
  camera.distance = clamp(distance / pivot, ...DISTANCE);
  camera.pan = limits.map(({ low, high, least, most }) => (least + most + (low + high) * distance) / 2 / pivot);
}

export function gridWords() {
  if (!state.frame?.header.geometry) return "Not to scale: no calibration";
  return `Grid: squares of ${Number(stage.square.toPrecision(2))} m`;
}

// By pixels of the page.
export function orbit(dx, dy) {
  isStart = false;
  camera.yaw -= (2 * dx) / canvas.clientHeight;
  camera.pitch = clamp(camera.pitch - (2 * dy) / canvas.clientHeight, -1.5, 1.5);
  repaint();
}

export function pan(dx, dy) {
  isStart = false;
  const scale = camera.distance / canvas.clientHeight;
  camera.pan = [camera.pan[0] + dx * scale, camera.pan[1] + dy * scale];
  repaint();
}

export function zoom(factor) {
  isStart = false;
  camera.distance = clamp(camera.distance * factor, ...DISTANCE);
  repaint();
}

// The matrices from the camera's axes to clip space, and from the scene's axes to the camera's, column by column, and
// the extent in clip space of a metre to the right and down. The image of the left camera fits into the canvas.
function partsOf(header, width, height) {
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
  return { project, turn, spread };
}

// The matrix from points to clip space, column by column. The pivot is in front of the camera.
function matrixOf(header, width, height) {
  const { pivot } = stage;
  const { project, turn, spread } = partsOf(header, width, height);
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
