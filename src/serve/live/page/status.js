// The figures of the run, its problems, and the list of viewers.
import { $, element, OLD_MS, press, send, setState, show, state, text } from "./state.js";
import { showTimeline } from "./timeline.js";
import { drawnTimes, noteAge, oldest, oldWords, seconds, skippedHere } from "./frames.js";
import { focusKnob, knobsIn } from "./tuning.js";

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
  else if (state.status?.paused) setState("wait", state.status.playing?.at_end ? "At the end" : "Paused");
  else if (drawnRate() > 0) setState("live", "Live");
  else setState("wait", "Waiting for images");
}

export function showStatus() {
  const s = state.status;
  press($("pause"), s.paused);
  text($("pause"), s.playing?.at_end ? "Play again" : s.paused ? "Resume" : "Pause");
  const { on, outputs } = s.recording || {};
  show($("record"), s.recording);
  press($("record"), on);
  text($("record"), on ? "Stop recording" : "Record");
  $("record").title = (outputs || []).join("\n") + " (r)";
  $("about").title = "Status (i)" + (s.warnings.length ? ", warnings: " + s.warnings.length : "");
  $("about").classList.toggle("warned", s.warnings.length > 0);
  if (on) $("file").value = "";
  showRates();
  showTimeline();
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

// Returns the messages in their order of urgency: words, and whether it is a trouble.
function messages() {
  const { banners, warnings, ended } = state.status || { banners: [], warnings: [] };
  const recent = warnings.filter((one) => one.ago_s < 60).sort((a, b) => a.ago_s - b.ago_s);
  const of = (trouble) => banners.filter((one) => one.trouble === trouble).map((one) => [one.text, trouble]);
  return [
    [state.notice, false], ...of(true), [oldWords(), true], ...recent.map((one) => [inWords(one), true]), ...of(false),
    [ended && !state.notice && "The run has ended. The last images remain.", false],
  ].filter(([words]) => words);
}

function banner([, trouble], knobs) {
  const cures = knobs.map((knob) => element("button", {
    textContent: "Tuning: " + knob.label, onclick: () => { openTuning(); focusKnob(knob); },
  }));
  return element("p", { className: trouble ? "trouble" : "" }, element("span"), ...cures);
}

function openTuning() {
  if (state.panel !== "tuning") $("tune").click();
}

let bannersShown = "";
let told = [];
function showBanners() {
  const lines = messages();
  const cures = lines.map(([words]) => knobsIn(words));
  // The rows stay while their buttons do, so that a button keeps the focus.
  const shape = JSON.stringify(lines.map(([, trouble], i) => [trouble, cures[i].map((knob) => knob.label)]));
  if (shape !== bannersShown) $("banners").replaceChildren(...lines.map((line, i) => banner(line, cures[i])));
  bannersShown = shape;
  lines.forEach(([words], i) => text($("banners").children[i].firstChild, words));
  const troubles = lines.filter(([, trouble]) => trouble).length;
  const count = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;
  text($("count"), troubles ? count(troubles, "warning") : count(lines.length, "message"));
  text($("worst"), lines[0]?.[0] ?? "");
  $("alerts").classList.toggle("trouble", troubles);
  show($("alerts"), lines.length);
  show($("banners"), lines.length && $("alerts").getAttribute("aria-expanded") === "true");
  // Screen readers read new ones, and no numbers that change.
  const now = lines.map(([words]) => words.replace(/[\d.]+/g, ""));
  const news = lines.filter((_, i) => !told.includes(now[i]));
  if (news.length) text($("news"), news.map(([words]) => words).join("\n"));
  told = now;
}

export function toggleBanners() {
  $("alerts").setAttribute("aria-expanded", $("banners").hidden);
  showBanners();
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
        const close = element("button", { textContent: "Close", onclick: () => send({ type: "close", viewer: one.id }) });
        close.setAttribute("aria-label", `Close viewer ${one.kind} ${one.address}`);
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
    ...(s.verdicts ? [["Checked", `${s.verdicts.agree.toFixed(1)} % agree, ${s.verdicts.contradict.toFixed(1)} % contradict`]] : []),
    ["Matched", count(s.matched, "of") + " " + count(s.pairs, "pairs")],
    ["Lost", [
      s.unpaired[0] + s.unpaired[1] > 0 && count(s.unpaired[0], "left and") + " " + count(s.unpaired[1], "right frames without a partner"),
      s.dropped > 0 && count(s.dropped, "pairs dropped, matcher too slow"),
      s.late > 0 && count(s.late, "pairs behind the pace, matcher too slow"),
      ...s.outputs.map((o) => (o.dropped || o.failed) && o.name + ": " + count(o.dropped, "dropped") + (o.failed ? ", failed" : "")),
    ].filter(Boolean)],
    ...s.outputs.map((o) => ["Output", o.name + ": " + count(o.frames, "frames"), o.failed]),
    ["Alignment", s.alignment?.text ?? "unknown", s.alignment?.alarm],
    ...(s.odometry ? [["Odometry", s.odometry.text, s.odometry.alarm]] : []),
    ["Exposure, noise", s.exposure ? ofBoth(s.exposure.text) : "unknown", s.exposure?.alarm],
    ...s.warnings.map((one) => ["Warning", inWords(one) + `, ${one.ago_s} s ago`, one.ago_s < 60]).reverse(),
    ["This page", [
      drawnRate().toFixed(1) + " images/s" + (state.frame ? ", " + state.frame.header.width + "x" + state.frame.header.height : "") + ({ 2: " (half size)", 4: " (quarter size)" }[s.client.scale] || ""),
      count(s.client.skipped + skippedHere, "images skipped"),
      oldest() === null ? null : "image up to " + seconds(oldest()) + " old, from its capture",
      state.painter.threeD ? null : "without WebGL2",
    ].filter(Boolean)],
    ["stereod", state.hello ? state.hello.version : ""],
  ];
  $("facts").replaceChildren(...facts.flatMap(([name, value, alarm]) => {
    const lines = [value].flat();
    const paragraphs = (lines.length ? lines : ["nothing"]).map((line) => element("p", { textContent: line, className: alarm ? "alarm" : "" }));
    return [element("dt", { textContent: name }), element("dd", {}, ...paragraphs)];
  }));
}
