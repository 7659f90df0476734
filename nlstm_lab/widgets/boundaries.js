// BoundaryExplorer: every character is a column of tracks: z, operations and norms of the layers, surprise.
// z feeds back into the layers, so another threshold is another reading: Python's, or one that the page holds.

const CELL = 9, GAP = 4, BITS = 28, HEAD = 22; // px: a track, between groups, the surprise's, the character's
const MOVES = { COPY: [0.38, 0.62], UPDATE: [0.2, 0.8], FLUSH: [0, 1] }; // how much of its track an operation fills

/** The first step at which z changes with another threshold, as far as this reading can tell. */
function settledUntil(reading, threshold) {
  if (reading.boundary !== "step") return 0;
  const least = (2 * threshold - 1) / reading.slope; // of the pre-activation
  const layers = reading.layers.slice(0, -1).map(({ z_tilde }) => z_tilde.map((value) => {
    if (value > 0 && value < 1) return (2 * value - 1) / reading.slope > least;
    const edge = (2 * value - 1) / reading.slope; // clamped: the pre-activation lies there or beyond
    return value === 1 ? (least < edge ? true : null) : least >= edge ? false : null;
  }));
  const changed = reading.symbols.findIndex((_, t) => layers.some((z, k) => z[t] === null || z[t] !== reading.layers[k].z[t] > 0.5));
  return changed < 0 ? reading.symbols.length : changed;
}

/** The page's reading at what the widget has chosen; what a link says and the page does not hold is as trained. */
function chosenReading(lab) {
  const [own, ...others] = lab.get("readings"), chosen = lab.get("threshold");
  if (!own) return lab.get("reading");
  const found = chosen === null ? own : others.find((each) => Math.abs(each.threshold - chosen) < 1e-6) ?? own;
  if (found === own) lab.set({ threshold: null });
  return found;
}

function render(lab) {
  let trained = lab.get("trained");
  const detects = () => trained.boundary !== "given";
  const threshold = () => lab.get("threshold") ?? trained.threshold;
  let reading = lab.alone ? chosenReading(lab) : lab.get("reading"), exact = Infinity;

  // --- controls

  const two = (value) => value.toFixed(2);
  const steps = lab.alone ? { min: 0.05, max: 0.95, step: 0.05 } : { min: 0.01, max: 0.99, step: 0.01 };
  const moved = slider("Threshold of z", { ...steps, value: threshold() ?? 0.5, format: two }, (value) => move({ threshold: value }));
  const back = button("As trained", () => move({ threshold: null }));
  const rule = make("p", { class: "nl-quiet" });
  const truth = selection("Judge against", ["spaces", "word starts", "word ends", "punctuation"], lab.get("truth"), (value) => { lab.set({ truth: value }); draw(); });
  const within = choices("A boundary may be off by", [["0", "0"], ["±1", "1"], ["or one after", "1 after"]], lab.get("within"), (value) => { lab.set({ within: value }); draw(); });
  const elsewhere = reading.symbols.length > 1 && reading.surprise.every((bits) => bits === null); // it predicts something else
  const shown = { operations: true, norms: true, surprise: !elsewhere };
  const tracks = Object.keys(shown).filter((name) => shown[name]).map((name) => toggle(name, true, (value) => { shown[name] = value; layOut(); draw(); }));

  /** z moves: at once as far as the reading at hand can tell, then as the new reading has it. */
  function move(values) {
    lab.set(values, true, 40);
    if (lab.alone) reading = chosenReading(lab);
    else exact = settledUntil(reading, threshold());
    moved.show(threshold());
    draw();
  }

  // --- the text and its tracks

  const text = textView({
    label: "the text: arrow keys choose a character", hover: (t) => { pointed = t; tell(); },
    select: (t) => { pointed = null; lab.set({ at: t }); tell(); lab.say(spoken()); }, // a resting pointer gives way
  });
  text.node.classList.add("nl-tracks");
  const names = make("div", { class: "nl-track-names", "aria-hidden": "true" });
  const board = make("div", { class: "nl-board" }, names, text.node);
  let pieces = [], pointed = null, rows = [], height = 0;

  /** What the tracks are, from top to bottom. */
  function layOut() {
    const layers = [...reading.layers].reverse();
    const one = (kind, layer) => ({ kind, layer, size: CELL });
    const groups = [
      layers.slice(1).map((layer) => one("z", layer.layer)),
      shown.operations ? layers.map((layer) => one("op", layer.layer)) : [],
      shown.norms ? layers.map((layer) => one("norm", layer.layer)) : [],
      shown.surprise ? [{ kind: "bits", size: BITS }] : [],
    ];
    rows = [];
    height = HEAD;
    for (const group of groups.filter((each) => each.length)) {
      for (const row of group) { rows.push({ ...row, top: height }); height += row.size; }
      height += GAP;
    }
    text.node.style.setProperty("--nl-column", `${height + 4}px`);
    label();
  }

  /** The names of the tracks beside every line of the text. */
  const label = framed(() => {
    const tops = [...new Set(pieces.map((piece) => piece.offsetTop))];
    names.replaceChildren(...tops.flatMap((top) => rows.map((row) =>
      make("span", { style: `top:${top + row.top + row.size / 2}px` }, row.layer ? `${row.kind} ${row.layer}` : "bits"))));
  });

  function show() {
    text.show(reading.symbols);
    pieces = [...text.node.querySelectorAll("[data-step]")];
    layOut();
  }

  // --- what is said of a character, and of all of them

  const facts = make("div", { class: "nl-facts" });
  const table = make("table", { class: "nl-agreement" });
  const doubt = make("p", { class: "nl-quiet" });

  function tell() {
    const t = Math.min(pointed ?? lab.get("at"), reading.symbols.length - 1);
    const bits = reading.surprise[t];
    const head = ["layer", "z\u0303", "z", "operation", "norm of h"].map((name) => make("th", { scope: "col" }, name));
    const lines = [...reading.layers].reverse().map((layer, k) => make("tr", {}, make("th", { scope: "row" }, String(layer.layer)),
      ...(k === 0 && detects() ? ["–", "–"] : [number(layer.z_tilde[t]), number(layer.z[t])]).map((value) => make("td", {}, value)),
      make("td", {}, layer.operation[t]), make("td", {}, number(layer.norm[t]))));
    facts.replaceChildren(
      make("h3", {}, `Character ${t + 1} of ${reading.symbols.length}: “${visible(reading.symbols[t])}”`, bits !== null ? `, surprise ${number(bits)} bits` : t === 0 ? ", the first" : ""),
      make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...lines)));
  }

  function spoken() {
    const t = Math.min(lab.get("at"), reading.symbols.length - 1), bits = reading.surprise[t];
    const layers = reading.layers.map((layer) => `layer ${layer.layer} ${layer.operation[t].toLowerCase()}${layer.z[t] > 0.5 ? ", ends a segment" : ""}`);
    return `${visible(reading.symbols[t])}: ${layers.join("; ")}${bits === null ? "" : `; surprise ${number(bits)} bits`}`;
  }

  const edge = () => (detects() && trained.boundary === "soft" && lab.get("threshold") === null ? trained.threshold : 0.5);
  function judge(isTrue) {
    const far = lab.get("within"), per = (n) => number((100 * n) / reading.symbols.length);
    const head = ["layer", "ends in 100", "moves in 100", "precision", "recall", "F1", "by chance"].map((name) => make("th", { scope: "col" }, name));
    const lines = reading.layers.map((layer, k) => {
      const found = layer.z.map((z) => z > edge());
      const moves = layer.operation.filter((operation) => operation !== "COPY").length;
      const top = k === reading.layers.length - 1;
      const { fired, precision, recall, f1 } = agreementOf(found, isTrue, far);
      const scores = top ? ["–", per(moves), "–", "–", "–", "–"]
        : [per(fired), per(moves), ...[precision, recall, f1, chance(found, isTrue, far)].map((share) => (Number.isNaN(share) ? "–" : percent(share)))];
      return make("tr", {}, make("th", { scope: "row" }, String(layer.layer)), ...scores.map((score) => make("td", {}, score)));
    });
    table.replaceChildren(make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...lines));
  }

  // --- drawing

  const keys = make("div", { class: "nl-legend" });
  const norms = legend("", scale("norms", 1));
  const grey = (z) => `rgb(${Array(3).fill(Math.round(255 * z))})`;

  function draw() {
    const tint = isDark() ? "#a0a0a0" : "#6a6a6a"; // of bits; those of z and of operations are the figures' own
    const largest = Math.max(...reading.layers.map((layer) => Math.max(...layer.norm)));
    const heat = scale("norms", largest);
    const most = Math.max(...reading.surprise.filter((bits) => bits !== null), 1);
    const isTrue = truthsOf(reading.symbols)[lab.get("truth")];
    const band = (colour, top, from, to) => [colour, top + from, top + to];
    const fill = (row, t) => {
      if (row.kind === "bits") return band(tint, row.top, row.size * (1 - (reading.surprise[t] ?? 0) / most), row.size);
      const layer = reading.layers[row.layer - 1];
      if (row.kind === "z") return band(grey(layer.z[t]), row.top, 0.5, row.size - 0.5);
      if (row.kind === "op") return band(LOOKS[layer.operation[t]].colour, row.top, ...MOVES[layer.operation[t]].map((share) => share * (row.size - 1)));
      return band(heat.shade(layer.norm[t]), row.top, 0, row.size - 0.5);
    };
    pieces.forEach((piece, t) => {
      const stops = rows.flatMap((row) => {
        const [colour, from, to] = fill(row, t);
        return [`transparent ${from}px`, `${colour} ${from}px ${to}px`, `transparent ${to}px`];
      });
      piece.style.backgroundImage = `linear-gradient(to bottom, ${stops.join(",")})`;
      const mark = `${isTrue[t] ? "true" : ""}${t >= exact ? " faint" : ""}`.trim();
      if (piece.dataset.mark !== mark) piece.dataset.mark = mark;
    });
    text.select(lab.get("at"));
    tell();
    judge(isTrue);
    const swatch = (name) => make("span", { class: "nl-key" }, make("i", { class: `nl-key-${name}`, style: `background:${LOOKS[name].colour}` }), name);
    const block = (z, name) => make("span", { class: "nl-key" }, make("i", { class: "nl-key-z", style: `background:${grey(z)}` }), name);
    keys.replaceChildren(make("span", {}, "z:"), block(1, "ends a segment"), block(0, "does not"), ...(shown.operations ? [make("span", {}, "op:"), ...Object.keys(MOVES).map(swatch)] : []),
      ...(shown.surprise ? [make("span", {}, `bits: surprise, up to ${number(most)}`)] : []), make("span", { class: "nl-key-true" }, `underlined: ${lab.get("truth")}`));
    norms.show(heat, "norm of h");
    norms.hidden = !shown.norms;
    explain();
  }

  function explain() {
    if (!detects()) { rule.textContent = "The boundaries are given to this network: there is no detector to move."; return; }
    const own = `trained ${trained.boundary === "soft" ? "with soft boundaries" : `at threshold ${number(trained.threshold)}`}, slope ${number(trained.slope)}`;
    const at = (2 * threshold() - 1) / trained.slope;
    rule.textContent = `z = 1 where the detector's pre-activation lies above (2 · threshold − 1) / slope = ${number(Math.abs(at) < 1e-9 ? 0 : at)}. This network was ${own}.`;
    const provisional = exact < reading.symbols.length;
    doubt.textContent = provisional
      ? `z feeds back: from character ${exact} on (faint) the text is being read again.`
      : lab.alone ? "Every setting on this page needs its own pass over the text, since z feeds back into the layers; settings between them, and other texts, need Python."
        : "Every setting needs its own pass over the text, since z feeds back into the layers.";
  }

  const own = make("textarea", { rows: 3, spellcheck: "false" });
  own.value = lab.get("text");
  const another = make("details", { class: "nl-yours" }, make("summary", {}, "Another text"), labelled("What the network reads", own),
    button("Read it", () => lab.set({ text: own.value }, true)));
  const run = lab.get("runs").length > 1 ? [runChoice(lab)] : [];
  lab.hint(`${detects() ? "Move the slider to see where segments would end. " : ""}Point at a character, or walk along the text with the arrow keys, to read its numbers.`);
  lab.body.append(make("div", { class: "nl-controls" }, ...run, moved, back), rule,
    make("div", { class: "nl-controls" }, truth, within, ...tracks),
    board, keys, norms, doubt, make("div", { class: "nl-sides" }, make("div", {}, make("h3", {}, "Do segments end there?"), table), facts), lab.needsPython(another));

  const resized = new ResizeObserver(() => label());
  resized.observe(board);
  lab.ended(() => resized.disconnect());
  const offer = () => [moved, back].forEach((each) => { each.hidden = !detects(); });
  lab.watch(["reading", "trained", "run"], () => {
    trained = lab.get("trained");
    offer();
    run.forEach((each) => each.update());
    if (detects()) moved.show(threshold());
    const before = reading.symbols.join("");
    reading = lab.get("reading");
    exact = Infinity;
    if (reading.symbols.join("") !== before) show();
    draw();
  });
  lab.watch(["at", "truth", "within"], () => { truth.show(lab.get("truth")); within.show(lab.get("within")); draw(); });
  lab.watch(["threshold", "text"], () => { // set from Python, or cancelled: the reading at hand is theirs
    if (lab.alone) reading = chosenReading(lab);
    moved.show(threshold());
    own.value = lab.get("text");
    exact = Infinity;
    draw();
  });
  offer();
  show();
  draw();
  return draw;
}
