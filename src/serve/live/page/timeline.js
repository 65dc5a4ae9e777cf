// The timeline of a recording: its place, steps, the marked part, and the speed.
import { $, allowed, mayChange, note, press, send, show, state, text } from "./state.js";

const SETTLES_MS = 700; // Time in which an image of the chosen place comes, on most connections.

let isHeld = false; // The slider, by a pointer.
let moved = 0;

// Times of the recording; a text says why there are none.
function span() {
  return state.frame && typeof state.hello?.timeline === "object" ? state.hello.timeline : null;
}

// Seconds from the first image to the pair that is shown.
function position() {
  return Math.max(state.frame.header.time - span().begin, 0);
}

export function showTimeline() {
  const times = span();
  show($("timeline"), times);
  if (!times) return;
  const { marks, repeats, speed } = state.status?.playing ?? { marks: [null, null], speed: 1 };
  const may = mayChange() && !state.status?.ended;
  for (const control of $("timeline").querySelectorAll("button, input, select")) control.disabled = !may;
  const [time, length] = [position(), Math.max(times.length, position())];
  $("place").max = length;
  if (!isHeld && performance.now() - moved > SETTLES_MS) $("place").value = time;
  const pair = "pair " + state.frame.header.seq;
  $("place").setAttribute("aria-valuetext", `${time.toFixed(1)} of ${length.toFixed(1)} seconds, ${pair}`);
  text($("time"), `${time.toFixed(2)} / ${length.toFixed(2)} s  ${pair}`);
  const [begin, end] = [marks[0] ?? 0, marks[1] ?? length];
  show($("part"), marks.some((mark) => mark !== null));
  $("part").style.left = `${100 * begin / length}%`;
  $("part").style.right = `${100 - 100 * Math.min(end / length, 1)}%`;
  marks.forEach((mark, i) => press($(["from", "to"][i]), mark !== null));
  press($("repeat"), repeats);
  show($("speed").parentElement, times.paced);
  if (document.activeElement !== $("speed")) $("speed").value = speed;
}

// Returns true if this viewer may move through the recording, and else says why not.
function isMovable() {
  const why = state.hello?.timeline;
  if (typeof why === "string") note(why[0].toUpperCase() + why.slice(1) + ".", false);
  return Boolean(span()) && allowed("Moving through the recording");
}

function moveTo(to) {
  moved = performance.now();
  send({ type: "move", to });
}

export function step(to) {
  if (isMovable()) send({ type: "move", to });
}

export function toBegin() {
  if (isMovable()) moveTo(0);
}

export function toEnd() {
  if (isMovable()) moveTo(Math.max(span().length, position()));
}

export function mark(end) {
  if (isMovable()) send({ type: "mark", end, at: position() });
}

export function toggleRepeat() {
  if (isMovable()) send({ type: "play", repeats: !state.status?.playing?.repeats });
}

// The server keeps speeds within their range.
export function changeSpeed(factor) {
  if (isMovable()) send({ type: "play", speed: (state.status?.playing?.speed ?? 1) * factor });
}

$("speed").onchange = () => { if (isMovable()) send({ type: "play", speed: Number($("speed").value) }); };
$("place").oninput = () => moveTo(Number($("place").value));
$("place").onpointerdown = () => { isHeld = true; };
for (const name of ["pointerup", "pointercancel", "lostpointercapture"]) {
  $("place").addEventListener(name, () => { isHeld = false; });
}
