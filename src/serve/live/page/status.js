// The figures of the run, its problems, and the list of viewers.
import { $, element, OLD_MS, press, send, setState, show, state, text } from "./state.js";
import { drawnTimes, noteAge, oldest, oldWords, seconds, skippedHere } from "./frames.js";

function drawnRate() {
  return drawnTimes.filter((time) => time > Date.now() - 3000).length / 3;
}

export function showRates() {
  const live = state.socket && state.hello;
  text($("rate"), live && state.status ? state.status.rate.toFixed(1) + " pairs/s" : "");
  noteAge();
  const age = live ? oldest() : null;
  text($("age"), age === null ? "" : seconds(age));
  show($("delay"), age !== null);
  $("age").classList.toggle("alarm", age >= OLD_MS);
  showBanners();
  if (!live || state.retryAt) return;
  if (state.status?.ended) setState("wait", "Ended");
  else if (state.status?.paused) setState("wait", "Paused");
  else if (drawnRate() > 0) setState("live", "Live");
  else setState("wait", "Waiting for images");
}

export function showStatus() {
  const s = state.status;
  press($("pause"), s.paused);
  text($("pause"), s.paused ? "Resume" : "Pause");
  const { on, outputs } = s.recording || {};
  show($("record"), s.recording);
  press($("record"), on);
  text($("record"), on ? "Stop recording" : "Record");
  $("record").title = (outputs || []).join("\n") + " (r)";
  $("about").title = "Status (i)" + (s.warnings.length ? ", warnings: " + s.warnings.length : "");
  $("about").classList.toggle("warned", s.warnings.length > 0);
  showRates();
  showViewers();
  if (state.panel === "details") showFacts();
}

// "noise 0.7 0.6" of the two views, with their names.
function ofBoth(words) {
  return words.replace(/(\w+) ([\d.]+) ([\d.]+)( %)?/g, "$1 left $2$4, right $3$4").split("  ");
}

function inWords(warning) {
  return warning.text + (warning.count > 1 ? ` (${warning.count} times)` : "");
}

function showBanners() {
  const lines = [[state.notice, false], [oldWords(), true]];
  if (state.status) {
    lines.push(...state.status.banners.map((one) => [one.text, one.trouble]));
    lines.push(...state.status.warnings.filter((one) => one.ago_s < 60).map((one) => [inWords(one), true]));
    if (state.status.ended && !state.notice) lines.push(["The run has ended. The last images remain.", false]);
  }
  const banners = lines.filter(([words]) => words)
    .map(([textContent, trouble]) => element("p", { textContent, className: trouble ? "trouble" : "" }));
  // Screen readers read what changes.
  const made = element("div", {}, ...banners);
  if (made.innerHTML !== $("banners").innerHTML) $("banners").replaceChildren(...banners);
}

// The rows stay while the viewers do, so that a button keeps the focus.
let viewersShown = "";
function showViewers() {
  const viewers = state.status.viewers || [];
  show($("viewers-part"), viewers.length);
  const numbers = viewers.map((one) => one.id).join();
  if (numbers !== viewersShown) {
    viewersShown = numbers;
    $("viewers").replaceChildren(...viewers.map((one) => {
      const row = element("li", {}, element("span"));
      if (!one.own) {
        const close = element("button", { type: "button", textContent: "Close" });
        close.setAttribute("aria-label", `Close viewer ${one.kind} ${one.address}`);
        close.onclick = () => send({ type: "close", viewer: one.id });
        row.append(close);
      }
      return row;
    }));
  }
  viewers.forEach((one, i) => text($("viewers").children[i].firstChild, [
    one.own ? "this page" : one.kind, one.address, `for ${Math.floor(one.since_s / 60)} min`,
    one.may_change ? "" : "without the token", one.silent_s > 10 ? `silent for ${one.silent_s} s` : "",
  ].filter(Boolean).join(", ")));
}

export function showFacts() {
  const s = state.status;
  if (!s) return;
  const count = (n, what) => n.toLocaleString("en") + " " + what;
  const facts = [
    ["Engine", s.engine],
    ["Rate", s.rate.toFixed(1) + " pairs/s"],
    ["Latency", s.latency_ms ? "median " + s.latency_ms.p50.toFixed(1) + " ms, 95 % " + s.latency_ms.p95.toFixed(1) + " ms" : "unknown"],
    ["Known pixels", s.valid_share === null ? "unknown" : (100 * s.valid_share).toFixed(1) + " %"],
    ["Matched", count(s.matched, "of") + " " + count(s.pairs, "pairs")],
    ["Lost", [
      s.unpaired[0] + s.unpaired[1] > 0 && count(s.unpaired[0], "left and") + " " + count(s.unpaired[1], "right frames without a partner"),
      s.dropped > 0 && count(s.dropped, "pairs dropped, matcher too slow"),
      ...s.outputs.map((o) => (o.dropped || o.failed) && o.name + ": " + count(o.dropped, "dropped") + (o.failed ? ", failed" : "")),
    ].filter(Boolean)],
    ...s.outputs.map((o) => ["Output", o.name + ": " + count(o.frames, "frames"), o.failed]),
    ["Alignment", s.alignment ? s.alignment.text : "unknown", s.alignment && s.alignment.alarm],
    ["Exposure, noise", s.exposure ? ofBoth(s.exposure.text) : "unknown", s.exposure && s.exposure.alarm],
    ...s.warnings.map((one) => ["Warning", inWords(one) + `, ${one.ago_s} s ago`, one.ago_s < 60]).reverse(),
    ["This page", [
      drawnRate().toFixed(1) + " images/s" + (state.frame ? ", " + state.frame.header.width + "x" + state.frame.header.height : "") + ({ 2: " (half size)", 4: " (quarter size)" }[s.client.scale] || ""),
      count(s.client.skipped + skippedHere, "images skipped"),
      oldest() === null ? null : "image up to " + seconds(oldest()) + " old, from its capture",
      state.painter.threeD ? null : "without WebGL2",
    ].filter(Boolean)],
    ["stereod", state.hello ? state.hello.version : ""],
  ];
  const nodes = [];
  for (const [name, value, alarm] of facts) {
    const lines = Array.isArray(value) ? value : [value];
    const className = alarm ? "alarm" : "";
    const paragraphs = (lines.length ? lines : ["nothing"]).map((line) => element("p", { textContent: line, className }));
    nodes.push(element("dt", { textContent: name }), element("dd", {}, ...paragraphs));
  }
  $("facts").replaceChildren(...nodes);
}
