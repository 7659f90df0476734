// CellExplorer: a unit of every memory along a text. All of the trace is here: looking at it asks Python nothing.

function render(lab) {
  let trace = traceOf(lab), panels = [], hovered = null, ranks = null;
  const name = (memory) => lookOf(memory).label;
  const now = () => Math.min(hovered ?? lab.get("step"), trace.length - 1);
  const values = () => lab.get("values");
  const sequences = lab.get("sequences"), steps = sequences.length > 0, what = steps ? "step" : "character"; // of a text
  const placeOf = (step) => (steps ? `step ${step}` : `“${visible(trace.symbols[step])}”`);

  // controls
  if (lab.own) {
    lab.local = () => {
      const networks = lab.get("networks"), about = networks[lab.get("run")];
      try {
        if (!about) throw new Error(`there is no run ${JSON.stringify(lab.get("run"))} in this page`);
        lab.receive({ ...readHere(about, lab.get("text"), lab.get("span")), ...about.records, error: "" });
      } catch (error) { lab.receive({ error: error.message }); }
    };
  }
  const run = runChoice(lab);
  const shown = choices("Values", [["printed", "as in the paper"], ["tanh", "tanh"], ["raw", "raw"]], values(), (each) => { lab.set({ values: each }); rank(false); });
  const text = steps ? lab.needsPython(selection("Sequence", sequences, lab.get("text"), (each) => lab.set({ text: each }, true))) : textBox(lab, "Text: type or paste your own", "text");
  if (steps) text.update = () => text.show(lab.get("text"));
  const unit = slider("Unit", { min: 0, max: trace.units - 1, value: lab.get("unit") }, (each) => pick(each));
  const rule = selection("Find units", trace.rules, lab.get("rule"), (each) => { lab.set({ rule: each }); rank(true); });
  const of = selection("in", [], null, (each) => { lab.set({ ranked: each }); rank(true); });
  const characters = labelled("characters", make("input", { type: "text", size: 8, value: lab.get("characters"), input: (event) => { lab.set({ characters: event.target.value }); rank(true); } }));
  const score = make("span", { class: "nl-score", "aria-live": "polite" });
  const walk = make("div", { class: "nl-control" }, make("span", { class: "nl-buttons" },
    button("‹", () => along(-1), { "aria-label": "previous unit" }), button("›", () => along(1), { "aria-label": "next unit" })), score);

  // views
  const scaleLegend = legend("", scale("diverging", 1));
  const columns = make("div", { class: "nl-columns" });
  const page = unitPage(lab, (run, each, m) => lab.set({ run, unit: each, page: m }, true));
  const phrase = spanPanel(lab, (m, each) => { lab.set({ page: m }); pick(each); });
  const readout = make("div", { class: "nl-readout" });
  const course = chart({ height: 170, label: "the unit's value at each step, for each memory", hover: (x) => look(x === null ? null : Math.round(x)), press: (x) => settle(Math.round(x)) });
  const rho = chart({ height: 170, label: "autocorrelation of the unit" });
  const left = chart({ height: 170, label: `what was written into the unit at each ${what} and is left at this one`, press: (x) => settle(Math.round(x)) });
  const kept = make("p", { class: "nl-quiet" }), retention = make("div", {}, make("h3", {}, "Retention"), left.node, kept);
  const times = make("div", { class: "nl-times" });
  lab.ended(course.end);
  lab.ended(rho.end);
  lab.ended(left.end);
  lab.ended(() => panels.forEach(({ map }) => map.end()));
  if (lab.own) lab.hint("These networks run in this page: type your own text, or choose another network.");
  if (!lab.alone || lab.own) lab.hint(`Drag over ${steps ? "some steps" : "a phrase"}, or hold Shift with the arrow keys, to find the units that are on ${steps ? "at them" : "in it"} and off elsewhere.`);
  lab.hint(`Point at a ${what}, or walk along with the arrow keys: everything below follows. Click a square of a map to look at another unit, and at all that is recorded of it.`);
  lab.body.append(
    make("div", { class: "nl-controls" }, run, steps ? text : null, shown, scaleLegend), steps ? "" : text,
    make("div", { class: "nl-controls" }, unit, rule, of, characters, walk),
    columns, phrase, page, readout,
    make("div", { class: "nl-columns" },
      make("div", {}, make("h3", {}, steps ? "Along the sequence" : "Along the text"), course.node), retention,
      make("div", {}, make("h3", {}, "Autocorrelation"), rho.node, times)),
  );

  function build() {
    panels.forEach(({ map }) => map.end());
    panels = trace.memories.map((memory, m) => {
      const words = make("h3", {});
      const view = textView({ label: `${steps ? "steps" : "text"}, coloured by the ${name(memory)}; arrow keys move along`, hover: look, select: settle, span: lab.alone && !lab.own ? null : (from, to) => { lab.set({ span: [from, to] }, true, TYPING); spans(); } });
      view.show(trace.symbols);
      const map = unitMap(`all units of the ${name(memory)} at this ${what}; arrow keys choose another unit and open its page`, (each) => { lab.set({ page: m }); pick(each); });
      columns.append(make("div", { class: steps ? "nl-squares" : null }, words, view.node, map));
      return { m, memory, words, view, map };
    });
  }

  const spans = () => { panels.forEach(({ view }) => view.mark(...lab.get("span"))); };
  const go = framed((each, anew) => { lab.set({ unit: each }); if (anew && lab.get("rule") === "alike") rank(false); all(); lab.say(spoken()); });
  const pick = (each) => go(each, true); // what moves like it is ranked anew; along the ranks nothing is
  const look = framed((step) => { hovered = step; moment(); });
  function settle(step) { hovered = null; lab.set({ step }); moment(); lab.say(spoken()); }

  /** Rank the units as chosen; `go` to the best. */
  function rank(go) {
    const chosen = trace.rules.some(([each]) => each === lab.get("rule")) ? lab.get("rule") : "";
    const m = Math.max(0, trace.memories.indexOf(lab.get("ranked")));
    ranks = chosen ? ranking(trace, m, chosen, values(), lab.get("characters"), lab.get("unit")) : null;
    characters.hidden = chosen !== "characters";
    of.hidden = !chosen || trace.memories.length === 1;
    if (go && ranks?.length && chosen !== "alike") lab.set({ unit: ranks[0][0] });
    all();
  }

  function along(by) {
    const list = ranks ? ranks.map(([each]) => each) : null;
    if (!list) return pick(Math.max(0, Math.min(trace.units - 1, lab.get("unit") + by)));
    if (list.length) go(list[Math.max(0, Math.min(list.length - 1, list.indexOf(lab.get("unit")) + by))]);
  }

  function limit() {
    const bounded = trace.memories.every((_, m) => !trace.cells || trace.through(m, values()) || values() === "printed");
    if (bounded) return 1;
    let most = 1e-6;
    trace.memories.forEach((_, m) => trace.row(m, lab.get("unit"), values()).forEach((value) => { most = Math.max(most, Math.abs(value)); }));
    return most;
  }

  /** Everything that depends on the unit. */
  function all() {
    const each = lab.get("unit"), how = values();
    unit.show(each, trace.units - 1);
    const shades = scale("diverging", limit());
    scaleLegend.show(shades, how === "raw" ? `c, all panels (the maps end at ±${number(shades.high)})` : how === "tanh" ? "tanh c, all panels" : "tanh c or c, as in the paper, all panels");
    const place = ranks?.findIndex(([other]) => other === each) ?? -1;
    score.textContent = !ranks ? "" : !ranks.length ? "no living unit does here" : place < 0 ? `${ranks.length} units ranked`
      : `${place + 1} of ${ranks.length}: ` + (lab.get("rule") === "slow" ? `${number(ranks[place][1])} ${what}s` : lab.get("rule") === "moving" ? `${number(ranks[place][1])} a step` : `r = ${number(ranks[place][1], 2)}`);
    for (const { m, memory, words, view } of panels) {
      const row = trace.row(m, each, how);
      const life = trace.life(m, each), saturated = trace.saturated(m);
      words.replaceChildren(make("span", {}, `${name(memory)}, unit ${each}: `), make("span", { class: "nl-quiet" }, quantity(m, how) + (life ? `; ${life} here` : "") + (saturated ? `. ${saturated} of ${trace.units} units are saturated here` : "")));
      view.paint((step) => ({ shade: shades.shade(row[step]) }));
    }
    correlations(each, how);
    page.show(trace, lab.get("page"), each);
    phrase.show(trace);
    spans();
    moment();
  }

  const quantity = (m, how) => (!trace.cells ? "h" : trace.through(m, how) ? "tanh c" : "c");

  /** Everything that depends on the character that is looked at. */
  function moment() {
    const step = now(), each = lab.get("unit"), how = values(), shades = scale("diverging", limit());
    for (const { m, view, map } of panels) {
      view.select(step);
      map.show(trace.units, each, (other) => shades.shade(trace.value(m, other, step, how)), (other) => trace.life(m, other) !== "",
        `all ${trace.units} units at ${placeOf(step)}; a dot: it stands still here`);
    }
    const rows = trace.memories.map((_, m) => trace.row(m, each, how));
    const high = limit();
    const drawn = trace.inputs.map((input) => { const row = trace.label(input), most = row.reduce((sum, value) => Math.max(sum, Math.abs(value)), 1e-6); return { label: "", colour: "#8a8a8a", faint: true, points: Array.from(row, (value, t) => [t, (high * value) / most]) }; });
    if (drawn.length) drawn[0].label = `input ${drawn.length > 1 ? `0 to ${drawn.length - 1}, each` : "0,"} scaled`;
    course.show({
      x: { label: what, low: 0, high: Math.max(1, trace.length - 1) }, y: { label: how === "raw" ? "c" : "value", low: -high, high },
      series: [...drawn, ...trace.memories.map((memory, m) => ({ label: name(memory), colour: lookOf(memory).colour, points: Array.from(rows[m], (value, t) => [t, value]) }))],
      cursor: step,
    });
    remains(step, each);
    tell(step, each);
  }

  /** Which characters wrote what the unit holds at this one. */
  function remains(step, each) {
    retention.hidden = !trace.cells;
    if (!trace.cells) return;
    const parts = trace.memories.map((_, m) => trace.left(m, each, step));
    const most = Math.max(1e-3, ...parts.flatMap((part) => (part ? Array.from(part, Math.abs) : [])));
    const named = (wanted) => trace.memories.filter((_, m) => Boolean(parts[m]) === wanted).map(name);
    left.show({
      x: { label: `${what} that wrote it`, low: 0, high: Math.max(1, trace.length - 1) }, y: { label: "part of c", low: -most, high: most },
      series: trace.memories.flatMap((memory, m) => (parts[m] ? [{ label: name(memory), colour: lookOf(memory).colour, points: Array.from(parts[m], (value, t) => [t, value]) }] : [])),
      cursor: step,
    });
    const largest = (part) => {
      const t = part.reduce((best, value, k) => (Math.abs(value) > Math.abs(part[best]) ? k : best), 0);
      return steps ? placeOf(t) : `${placeOf(t)} (character ${t + 1})`;
    };
    const biggest = trace.memories.flatMap((memory, m) => (parts[m] ? [`${name(memory)}: most is from ${largest(parts[m])}`] : []));
    kept.textContent = [...(biggest.length ? [`At ${placeOf(step)} the parts sum to c. ${biggest.join("; ")}.`] : []),
      ...(named(false).length ? [`Not defined for the ${named(false).join(", ")}, which has no forget gate of its own.`] : [])].join(" ");
  }

  function tell(step, each) {
    const next = trace.symbols[step + 1];
    const gates = trace.cells ? ["i", "f", "g", "o"] : [];
    const head = ["", ...(trace.cells ? ["c", "tanh c", ...gates] : ["h"])];
    const rows = trace.memories.map((memory, m) => {
      const raw = trace.value(m, each, step, "raw");
      return [name(memory), ...(trace.cells ? [raw, Math.tanh(raw)] : [raw]).map((value) => fixed(value)), ...gates.map((gate) => trace.gate(gate, m, each, step)).map((value) => (Number.isNaN(value) ? "–" : fixed(value)))];
    });
    const table = make("table", {}, make("thead", {}, make("tr", {}, ...head.map((cell) => make("th", { scope: "col" }, cell)))),
      make("tbody", {}, ...rows.map(([first, ...rest]) => make("tr", {}, make("th", { scope: "row" }, first), ...rest.map((cell) => make("td", {}, cell))))));
    const read = trace.inputs.map((input) => `${input}: ${fixed(trace.label(input)[step])}`).join(", ");
    const here = steps ? `Step ${step} of 0 to ${trace.length - 1}` : `Character ${step + 1} of ${trace.length}: ${placeOf(step)}`;
    readout.replaceChildren(make("div", {}, make("h3", {}, here), read ? make("p", { class: "nl-quiet" }, read) : "", table));
    if (!lab.get("vocabulary").length) return;
    const bars = guesses("What may come next", ...trace.next(step), lab.get("vocabulary"), next);
    const came = next === undefined ? "the text ends here" : `then comes “${visible(next)}”, ${number(trace.surprises[step], 2)} bits of surprise`;
    readout.append(bars);
    bars.append(make("p", { class: "nl-quiet" }, came));
  }

  const spoken = () => {
    const step = now();
    return `${placeOf(step)}, unit ${lab.get("unit")}: ` + trace.memories.map((memory, m) => `${name(memory)} ${number(trace.value(m, lab.get("unit"), step, values()), 2)}`).join(", ");
  };

  function correlations(each, how) {
    const found = trace.memories.map((memory, m) => ({ memory, m, points: autocorrelation(trace.row(m, each, how), Math.min(LAGS, Math.floor(trace.length / 2))).map((value, lag) => [lag, value]) }));
    const lags = Math.max(2, ...found.map(({ points }) => points.length - 1));
    const low = found.some(({ points }) => points.some(([, value]) => value < -0.5)) ? -1 : -0.5;
    rho.show({
      x: { label: `${what}s apart`, low: 0, high: lags }, y: { label: "autocorrelation", low, high: 1, ticks: [-1, -0.5, 0, 0.5, 1].filter((tick) => tick >= low) },
      series: [...found.filter(({ points }) => points.length).map(({ memory, points }) => ({ label: name(memory), colour: lookOf(memory).colour, points })),
        { label: "1/e", colour: "#8a8a8a", dash: "3 2", points: [[0, 1 / Math.E], [lags, 1 / Math.E]] }],
    });
    const on = lab.get("known_on");
    times.replaceChildren(...trace.memories.map((memory, m) => {
      const estimate = trace.timescale(m, each, how);
      const words = !estimate ? "no timescale is recorded for this network" : estimate.reason !== undefined ? `no timescale: ${estimate.reason}`
        : `timescale ${number(estimate.time)} characters (95 % ${number(estimate.low)} to ${number(estimate.high)})`;
      return make("div", {}, make("strong", {}, `${name(memory)}: `), words);
    }), make("div", { class: "nl-quiet" }, on ? `The curve is of what is read above, the timescales of ${on}.` : `The curve is of what is read above alone.`));
  }

  function arrived() {
    trace = traceOf(lab);
    if (!(lab.get("unit") in Array(trace.units).fill(0))) lab.set({ unit: 0 }); // a link may say anything
    if (!(lab.get("step") in trace.symbols)) lab.set({ step: 0 });
    hovered = null;
    run.update();
    text.update();
    rule.show(lab.get("rule"));
    of.offer(trace.memories.map((memory) => [memory, name(memory)]), trace.memories.includes(lab.get("ranked")) ? lab.get("ranked") : trace.memories[0]);
    shown.hidden = !trace.cells;
    columns.replaceChildren();
    build();
    rank(false);
  }

  lab.watch(["states", "pages", "contrasts", "span"], settled(arrived, 0));
  lab.watch(["passages"], framed(() => all()));
  const linked = (event) => { // #unit-inner-106 in the notebook around
    const [, memory, each] = /#unit-(.+)-(\d+)$/.exec(decodeURIComponent(event.target.closest?.("a")?.hash ?? "")) ?? [];
    if (!trace.memories.includes(memory) || Number(each) >= trace.units) return;
    event.preventDefault();
    lab.set({ page: trace.memories.indexOf(memory), unit: Number(each) });
    all();
    lab.root.scrollIntoView({ block: "nearest" });
  };
  document.addEventListener("click", linked, true);
  lab.ended(() => document.removeEventListener("click", linked, true));
  lab.watch(["runs", "titles", "run", "text"], () => { run.update(); text.update(); lab.local?.(); }); // cancelled, too
  lab.watch(["unit", "values", "step", "rule", "page", "ranked", "characters"], framed(() => { shown.show(values()); rule.show(lab.get("rule")); rank(false); }));
  arrived();
  lab.local?.(); // a link may name another text
  return all;
}
