// Elements. Text goes into the page as text nodes alone: nothing that a run, a text or a label says is ever parsed.

const SVG = new Set(["svg", "g", "path", "line", "rect", "circle", "text", "title"]);

/** An element with attributes (functions become listeners, null and false are left out) and children. */
function make(tag, attributes = {}, ...children) {
  const node = SVG.has(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

// every widget is a module of its own, and names must differ between all of them
const made = (globalThis[Symbol.for("nlstm_lab.made")] ??= { count: 0 });
/** A name for an element that no other element in the page has. */
const unique = (stem) => `nl-${stem}-${++made.count}`;

/** A labelled control: the label is what a screen reader says, and a click on it moves the focus. */
function labelled(label, control, extra = null) {
  control.id ||= unique("control");
  return make("div", { class: "nl-control" }, make("label", { for: control.id }, label), control, extra);
}

/** A choice from [value, label] pairs, or from names. `choose(value)` is called with the value as it was given. */
function selection(label, options, value, choose) {
  const control = make("select", { change: () => choose(pairs[control.selectedIndex][0]) });
  let pairs = [];
  const node = labelled(label, control);
  node.offer = (offered, chosen) => {
    pairs = offered.map((option) => (Array.isArray(option) ? option : [option, String(option)]));
    control.replaceChildren(...pairs.map(([, text]) => make("option", {}, text)));
    control.selectedIndex = pairs.findIndex(([each]) => each === chosen);
  };
  node.show = (chosen) => { control.selectedIndex = pairs.findIndex(([each]) => each === chosen); };
  node.offer(options, value);
  return node;
}

/** A few choices side by side, of which one is on: arrow keys move between them. */
function choices(label, options, value, choose) {
  const name = unique("choice");
  const inputs = new Map();
  const group = make("fieldset", { class: "nl-choices" }, make("legend", {}, label));
  for (const [each, text] of options) {
    const input = make("input", { type: "radio", name, change: () => choose(each) });
    inputs.set(each, input);
    group.append(make("label", {}, input, make("span", {}, text)));
  }
  group.show = (chosen) => inputs.forEach((input, each) => { input.checked = each === chosen; });
  group.show(value);
  return group;
}

/** A slider with its value beside it. `choose(value)` is called at every move. */
function slider(label, { min, max, step = 1, value, format = String }, choose) {
  const shown = make("output", {});
  const control = make("input", {
    type: "range", min, max, step, value,
    input: () => { say(control.valueAsNumber); choose(control.valueAsNumber); },
  });
  const say = (now) => { shown.textContent = format(now); control.setAttribute("aria-valuetext", format(now)); };
  const node = labelled(label, control, shown);
  node.show = (now, highest = control.max) => {
    control.max = highest;
    control.value = now;
    say(now);
  };
  say(value);
  return node;
}

/** Call `f(value)` when what was typed into a field is done: by Enter, or by leaving it; once for each value. */
function entered(field, f) {
  let last = null;
  const done = () => { if (field.value !== last) f((last = field.value)); };
  field.addEventListener("focus", () => { last = field.value; });
  field.addEventListener("change", done);
  field.addEventListener("keydown", (event) => { if (event.key === "Enter") done(); });
  return field;
}

/** A check box. */
function toggle(label, value, choose) {
  const control = make("input", { type: "checkbox", change: () => choose(control.checked) });
  control.checked = value;
  const node = make("label", { class: "nl-toggle" }, control, make("span", {}, label));
  node.show = (now) => { control.checked = now; };
  return node;
}

/** A button. */
function button(label, press, attributes = {}) {
  return make("button", { type: "button", click: press, ...attributes }, label);
}

/** Call `f` once, `delay` ms after the last of a burst of calls. */
function settled(f, delay) {
  let timer = null;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => f(...values), delay);
  };
}

/** Call `f` at most once a frame, with the last values. */
function framed(f) {
  let waiting = null;
  return (...values) => {
    if (waiting === null) requestAnimationFrame(() => { const last = waiting; waiting = null; f(...last); });
    waiting = values;
  };
}
