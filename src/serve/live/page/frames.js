// Frames: their decoding, and the age of the image on the screen.
import { $, canvas, complain, note, OLD_MS, send, setDownloads, show, state } from "./state.js";
import { paintNow, setColours, showLegend, showReadout } from "./paint.js";
import { resetCamera } from "./points.js";
import { drawScan } from "./scan.js";
import { showTimeline } from "./timeline.js";

// Decodes one frame at a time, the newest one; skipped ones are acknowledged with it.
export const queue = [];
let decoding = false;
export let skippedHere = 0;
export const drawnTimes = [];

export function arrived(from, data) {
  queue.push({ from, data });
  if (!decoding) decodeNext();
}

async function decodeNext() {
  decoding = true;
  while (queue.length) {
    const waiting = queue.splice(0);
    const newest = waiting.pop();
    skippedHere += waiting.length;
    let next = null;
    try {
      next = await decode(newest.data);
    } catch (error) {
      note("A frame could not be decoded: " + error.message, false);
    }
    const hidden = document.hidden;
    if (next && state.socket === newest.from) {
      noteAge();
      state.frame?.image.close();
      state.frame?.right?.close();
      state.frame = next;
      show($("check"), next.verdicts);
      if (state.view === "check" && !next.verdicts) $("views").querySelector("[value=disparity]").click();
      if (String(next.header.colour_span) !== String(state.span)) setColours(state.colours, next.header.colour_span);
      state.painter.setFrame();
      // A hidden page has no animation frames, so that it gets no images.
      if (hidden) await new Promise((done) => requestAnimationFrame(done));
      state.frame.waited = hidden && performance.now();
      paintNow();
      drawn(next.header);
    }
    if (state.socket === newest.from) {
      for (const { data } of [...waiting, newest]) send({ type: "ack", seq: headerOf(data).seq, hidden });
    }
  }
  decoding = false;
}

function headerOf(data) {
  const length = new DataView(data).getUint32(0, true);
  return JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length)));
}

// Undoes the compression and the differences from the row above (docs/remote.md). No Blob or Response,
// which take three times as long, because they go through the browser's process.
async function inflate(part, { width, height }, planes) {
  const { readable, writable } = new DecompressionStream("deflate");
  const writer = writable.getWriter();
  // Its errors are those of the reader.
  writer.write(part).catch(() => {});
  writer.close().catch(() => {});
  const count = width * height;
  const bytes = new Uint8Array(planes * count);
  const reader = readable.getReader();
  let end = 0;
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    bytes.set(next.value, end);
    end += next.value.length;
  }
  if (end !== bytes.length) throw new Error("its numbers are incomplete");
  const values = planes === 2 ? new Int16Array(count) : bytes;
  for (let i = 0; i < count; i++)
    values[i] = (planes === 2 ? bytes[i] | (bytes[count + i] << 8) : bytes[i]) + (i < width ? 0 : values[i - width]);
  return values;
}

async function decode(data) {
  const header = headerOf(data);
  let at = 4 + new DataView(data).getUint32(0, true);
  const part = (length) => new Uint8Array(data, (at += length) - length, length);
  const bytes = (length) => length && inflate(part(length), header, 1);
  const jpeg = (length) => createImageBitmap(new Blob([part(length)], { type: "image/jpeg" }), { colorSpaceConversion: "none" });
  const [image, disparity, confidence, verdicts, right] = await Promise.all([
    jpeg(header.jpeg),
    inflate(part(header.disparity), header, 2),
    bytes(header.confidence),
    bytes(header.verdicts),
    header.right ? jpeg(header.right) : null,
  ]);
  return { header, image, disparity, confidence, verdicts, right };
}

let calibratedBefore = null;
function drawn(header) {
  const now = Date.now();
  drawnTimes.push(now);
  while (drawnTimes.length > 1 && drawnTimes[0] < now - 3000) drawnTimes.shift();
  complain(null);
  const calibrated = JSON.stringify(header.geometry);
  if (calibrated !== calibratedBefore) {
    calibratedBefore = calibrated;
    resetCamera();
    setDownloads();
    showLegend();
  }
  drawScan(header);
  canvas.dataset.seq = header.seq;
  showTimeline();
  showReadout();
}

export const times = []; // Answers to questions for the server's time, and how long they took.
const ages = []; // Ages of the last two seconds.

export function takeTime({ at, server }) {
  const now = performance.now();
  times.push({ offset: server - (at + now) / 2, took: now - at });
  if (times.length > 120) times.shift();
}

// Notes the time from the image's capture until now. The quickest answer tells the server's time best.
export function noteAge() {
  const now = performance.now();
  while (ages.length && ages[0].at < now - 2000) ages.shift();
  // After a pause, or after its page was hidden, an old image is no news until another one could have come.
  if (!state.frame || !times.length || state.status?.paused || document.hidden || now - state.frame.waited < OLD_MS) return;
  const { offset } = times.reduce((best, one) => (one.took < best.took ? one : best));
  ages.push({ at: now, age: Math.max(now + offset - state.frame.header.captured, 0) });
}

export function oldest() {
  return ages.length ? Math.max(...ages.map((one) => one.age)) : null;
}

export function seconds(ms) {
  return ms < OLD_MS ? Math.round(ms) + " ms" : (ms / 1000).toFixed(ms < 10000 ? 1 : 0) + " s";
}

// Says that the image is old, in steps, so that screen readers are not kept busy.
export function oldWords() {
  const age = oldest();
  const isOver = !state.socket && !state.retryAt;
  if (age === null || age < OLD_MS || state.status.paused || state.status.ended || isOver) return null;
  const { captured, latency_ms } = state.frame.header;
  const isNewest = state.status.newest <= captured;
  const isMatcher = latency_ms > 0.5 * age;
  if (isNewest && age < 2 * OLD_MS) return null;
  const step = [60, 30, 10, 5, 2, 1].find((limit) => age >= 1000 * limit);
  return `The image is more than ${step} s old: ` + (state.socket?.readyState !== 1 ? "there is no connection."
    : isMatcher ? "matching is too slow." : isNewest ? "no newer pair was matched." : "the connection or this browser is too slow for more.");
}
