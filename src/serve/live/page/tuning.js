// The panel with the knobs.
import { $, allowed, element, mayChange, press, send, state, text } from "./state.js";

let knobs = [];
let rows = [];
// The user's values that are not in effect, by name: each has the number of the request for it or, once it
// is refused, the value that stayed in effect.
const own = new Map();
let sentNumber = 0;
let answered = 0;
let problem = null;

const nameOf = (knob) => knob.section + "." + knob.key;

// What to do with answers, by the numbers of requests.
const waiting = new Map();

// Sends a request with the next number. A problem is handed to `answered`, if that is given, or told with the knobs.
export function ask(message, answered) {
  sentNumber += 1;
  if (answered) waiting.set(sentNumber, answered);
  send({ ...message, number: sentNumber });
  showEffect();
}

export function forgetRequests() {
  own.clear();
  waiting.clear();
  sentNumber = 0;
  answered = 0;
  problem = null;
}

export function takeKnobs(message) {
  const inEffect = new Map(message.knobs.map((knob) => [nameOf(knob), knob.value]));
  for (const answer of message.answers) {
    answered = Math.max(answered, answer.number);
    waiting.get(answer.number)?.(answer.problem);
    if (!waiting.delete(answer.number)) problem = answer.problem ?? problem;
    for (const [name, { value, number }] of own) {
      if (number !== answer.number) continue;
      if (answer.problem === null) own.delete(name);
      else own.set(name, { value, insteadOf: inEffect.get(name) ?? null });
    }
  }
  // Refused values stay to be corrected, until another viewer changes the same knob.
  for (const [name, { insteadOf }] of own) {
    if (insteadOf !== undefined && insteadOf !== inEffect.get(name)) own.delete(name);
  }
  const isRefusal = message.answers.some((answer) => answer.problem !== null);
  if (!isRefusal && ![...own.values()].some((mine) => mine.insteadOf !== undefined)) problem = null;
  const next = message.knobs.map((knob) => {
    const mine = knob.locked ? undefined : own.get(nameOf(knob));
    return mine ? { ...knob, value: mine.value, means: null } : knob;
  });
  const shape = (list) => JSON.stringify(list.map((knob) => ({ ...knob, value: 0, means: 0 })));
  const same = shape(knobs) === shape(next);
  if (same) knobs.forEach((knob, i) => Object.assign(knob, next[i]));
  else knobs = next;
  if (!same) buildKnobs();
  rows.forEach((row) => row());
  showEffect();
}

function showEffect() {
  const node = $("effect");
  node.classList.toggle("alarm", Boolean(problem));
  text(node, problem || (answered < sentNumber ? "working ..." : state.status?.ended ? "the run has ended" : "in effect"));
}

let tuneTimer = 0;
function turned(knob, value, soon = false) {
  if (knob.value === value) return;
  knob.value = value;
  knob.means = null;
  own.set(nameOf(knob), { value });
  rows.forEach((row) => row());
  clearTimeout(tuneTimer);
  if (soon) tuneTimer = setTimeout(tuneAll, 120);
  else tuneAll();
}

function tuneAll() {
  clearTimeout(tuneTimer);
  const values = [];
  for (const [name, { value, number }] of own) {
    if (number !== undefined) continue;
    own.set(name, { value, number: sentNumber + 1 });
    values.push([...name.split("."), value]);
  }
  ask({ type: "tune", values });
}

export function resetAll() {
  clearTimeout(tuneTimer);
  own.clear();
  ask({ type: "reset" });
}

function buildKnobs() {
  rows = [];
  const built = knobs.map((knob, i) => buildKnob(knob, "knob-" + i));
  const headings = [...new Set(knobs.map((knob) => knob.group))];
  $("knobs").replaceChildren(...headings.map((heading) => {
    const [usual, rare] = [false, true].map((isRare) => built.filter((_, i) => knobs[i].group === heading && knobs[i].rare === isRare));
    const group = element("fieldset", {}, element("legend", { textContent: heading }), ...usual);
    if (rare.length) group.append(fold(heading, rare));
    return group;
  }));
}

// Headings whose rare knobs are shown.
const unfolded = new Set();

function fold(heading, rare) {
  const title = element("summary", { textContent: `${rare.length} more` });
  const details = element("details", { open: unfolded.has(heading) }, title, ...rare);
  details.ontoggle = () => unfolded[details.open ? "add" : "delete"](heading);
  return details;
}

function buildKnob(knob, id) {
  const disabled = Boolean(knob.locked);
  let title = knob.hint + "\n\n" + nameOf(knob);
  if (disabled) title += "\n\nCannot change in this run: " + knob.locked + ".";
  const set = element("div", { className: "set" });
  const row = element("div", { className: "knob", title }, element("label", { htmlFor: id, textContent: knob.label }), set);
  if (knob.below) row.firstChild.append(element("small", { textContent: knob.below }));
  row.dataset.name = nameOf(knob);
  if (disabled) row.append(element("p", { className: "reason", id: id + "-why", textContent: "fixed: " + knob.locked }));
  const control = (tag, properties, name) => {
    const made = element(tag, { id, disabled, ...properties });
    if (name) made.setAttribute("aria-label", knob.label + ", " + name);
    if (disabled) made.setAttribute("aria-describedby", id + "-why");
    set.append(made);
    return made;
  };
  if (knob.kind === "switch") {
    const box = control("input", { type: "checkbox" });
    box.onchange = () => turned(knob, String(box.checked));
    rows.push(() => { box.checked = knob.value === "true"; });
  } else if (knob.kind.choice) {
    const select = control("select");
    select.append(...knob.kind.choice.map((name) => element("option", { value: name, textContent: name })));
    select.onchange = () => turned(knob, select.value);
    rows.push(() => {
      for (const option of select.options) {
        const means = option.value === knob.value && knob.means && knob.means !== knob.value;
        text(option, means ? option.value + " (" + knob.means + ")" : option.value);
      }
      select.value = knob.value;
    });
  } else {
    const { low, high, step, word } = knob.kind.number;
    const slider = control("input", { type: "range", id: id + "-slide", min: low, max: high, step }, "slider");
    const field = control("input", { type: "text", inputMode: "decimal", autocomplete: "off", spellcheck: false });
    slider.oninput = () => turned(knob, slider.value, true);
    field.onchange = () => {
      const typed = field.value.trim().replace(",", ".");
      turned(knob, typed === "" && word ? word : typed);
    };
    let auto = null;
    if (word) {
      auto = control("button", { type: "button", id: id + "-word", className: "word", textContent: word }, word);
      auto.onclick = () => turned(knob, knob.value === word ? slider.value : word);
      set.append(auto);
    }
    rows.push(() => {
      const isWord = word && knob.value === word;
      const number = Number.parseFloat(isWord ? knob.means : knob.value);
      if (Number.isFinite(number)) slider.value = number;
      if (document.activeElement !== field || field.value === "" || Number(field.value) === number) {
        field.value = isWord ? "" : knob.value;
      }
      field.placeholder = isWord ? knob.means || word : "";
      if (auto) press(auto, isWord);
    });
  }
  return row;
}

// Returns the knobs that a message names by their flags or keys.
export function knobsIn(message) {
  const names = message.match(/--[\w-]+|\[\w+\] \w+|\w+\.\w+/g) || [];
  const isNamed = (knob) => [knob.flag, nameOf(knob), `[${knob.section}] ${knob.key}`].some((name) => names.includes(name));
  return mayChange() ? knobs.filter((knob) => !knob.locked && isNamed(knob)) : [];
}

export function focusKnob(knob) {
  const row = document.querySelector(`.knob[data-name="${nameOf(knob)}"]`);
  const fold = row.closest("details");
  if (fold) fold.open = true;
  row.scrollIntoView({ block: "center" });
  row.querySelector("select, input").focus();
}

export function nextColours() {
  const knob = knobs.find((one) => one.section === "colour" && one.key === "map");
  if (!allowed("Changing the colours") || !knob) return;
  const names = knob.kind.choice;
  turned(knob, names[(names.indexOf(knob.value) + 1) % names.length]);
}
