// InterventionLab: an ablation at a moment of a text, and what it does to every prediction that follows.

const KINDS = [["zero", "set to zero"], ["freeze", "frozen from there on"], ["resample", "resampled from another text"]];

function render(lab) {
  let effect = null, hovered = null;
  const ask = (values, delay = 0) => lab.set(values, true, delay);
  const name = (memory) => (/(^| )h$/.test(memory) ? `hidden state ${memory}` : lookOf(memory).label);
  const words = (memory) => (memory === "cell" ? "the cells" : /^layer \d+$/.test(memory) ? name(memory) : `the ${name(memory)}`);

  lab.hint(`${lab.alone ? "" : "Click a character, or move the slider: the memory is ablated just before it is read. "}Point at a character after the ablation to see both predictions.`);
  const run = runChoice(lab);
  const memory = lab.needsPython(selection("Memory", [], null, (each) => ask({ memory: each })));
  const kind = lab.needsPython(choices("is", KINDS, lab.get("kind"), (each) => { ask({ kind: each }); arrange(); }));
  const moment = lab.needsPython(slider("after this many characters", { min: 1, max: 2, value: 1 }, (each) => ask({ moment: each, step: -1 }, 80)));
  const which = lab.needsPython(choices("of it", [[false, "all units"], [true, "one unit"]], lab.get("unit") >= 0, (one) => { ask({ unit: one ? 0 : -1 }); arrange(); }));
  const unit = lab.needsPython(slider("unit", { min: 0, max: 1, value: Math.max(0, lab.get("unit")) }, (each) => ask({ unit: each }, 80)));
  const text = textBox(lab, "Text: type or paste your own", "text");
  const other = textBox(lab, "The other text, whose memory after as many characters is put in", "other");
  const shown = choices("Colour", [["loss", "change of the loss"], ["divergence", "divergence of the prediction"]], lab.get("colouring"), (each) => { lab.set({ colouring: each }); paint(); });
  const shades = legend("", scale("diverging", 1));
  const view = textView({
    label: "the text, coloured by what the ablation does to the prediction after each character; arrow keys move along it, Enter ablates there",
    hover: framed((step) => { hovered = step; look(); }),
    select: (step) => { hovered = null; lab.set({ step }); look(); lab.say(spoken()); },
    lock: (step) => { if (!lab.alone && step > 0) ask({ moment: step, step: -1 }); },
  });
  const rank = lab.needsPython(toggle("Ablate every unit alone", lab.get("ranking"), (on) => ask({ ranking: on })));
  const units = unitMap("all units of the memory, by what ablating each alone costs; arrow keys choose one", (each) => ask({ unit: each }));
  lab.ended(units.end);
  const ranked = make("div", {});
  const sentence = make("p", { class: "nl-sum", "aria-live": "polite" });
  const readout = make("div", { class: "nl-readout" });
  const onChart = (x) => (x === null ? null : Math.round(x));
  const losses = chart({ height: 170, label: "surprise along the text, intact and ablated", hover: (x) => { hovered = onChart(x); look(); } });
  const divergences = chart({ height: 170, label: "divergence of the prediction since the ablation", hover: (x) => { hovered = onChart(x); look(); } });
  lab.ended(losses.end);
  lab.ended(divergences.end);
  lab.body.append(
    make("div", { class: "nl-controls" }, run, memory, kind, moment, which, unit), text, other,
    make("div", { class: "nl-controls" }, shown, shades), view.node, sentence, readout,
    make("div", { class: "nl-controls" }, rank), ranked,
    make("div", { class: "nl-columns" }, make("div", {}, make("h3", {}, "Surprisal"), losses.node), make("div", {}, make("h3", {}, "How far the prediction departs"), divergences.node)),
  );

  function arrived() {
    const bits = numbers(lab.get("surprises"), "f4"), ablated = numbers(lab.get("ablated_surprises"), "f4");
    effect = {
      symbols: lab.get("symbols"), bits, ablated, moment: lab.get("ablated_at"), kl: numbers(lab.get("divergences"), "f4"),
      likely: numbers(lab.get("likely"), "i2"), chances: numbers(lab.get("chances"), "f4"),
      ablatedLikely: numbers(lab.get("ablated_likely"), "i2"), ablatedChances: numbers(lab.get("ablated_chances"), "f4"),
    };
    effect.end = effect.moment + ablated.length;
    [run, text, other].forEach((each) => each.update());
    memory.offer(lab.get("memories").map((each) => [each, name(each)]), lab.get("memory"));
    kind.show(lab.get("kind"));
    which.show(lab.get("unit") >= 0);
    rank.show(lab.get("ranking"));
    moment.show(lab.get("moment"), effect.symbols.length - 1);
    unit.show(Math.max(0, lab.get("unit")), lab.get("units") - 1);
    if (shownText !== effect.symbols.join("\u0000")) { shownText = effect.symbols.join("\u0000"); view.show(effect.symbols); }
    hovered = null;
    arrange();
    paint();
    rankings();
  }

  /** The units whose ablation costs most, and a map of all. */
  function rankings() {
    const costs = numbers(lab.get("costs"), "f4");
    ranked.hidden = !costs.length;
    if (!costs.length) return;
    const order = [...costs.keys()].sort((a, b) => costs[b] - costs[a]), shades = scale("strength", costs[order[0]] || 1);
    const best = order.slice(0, 8).map((each) => lab.needsPython(button(`${each}: ${number(costs[each], 2)}`, () => ask({ unit: each }), { "aria-label": `ablate unit ${each} alone` })));
    ranked.replaceChildren(make("h3", {}, `Units of ${words(lab.get("memory"))} by what ablating each alone costs, nats a prediction`), make("div", { class: "nl-buttons" }, ...best), units);
    units.show(costs.length, Math.max(0, lab.get("unit")), (each) => shades.shade(costs[each]), () => false, `all ${costs.length} units, the darker the costlier`);
  }

  let shownText = null;

  function arrange() {
    other.hidden = lab.get("kind") !== "resample";
    unit.hidden = lab.get("unit") < 0;
  }

  const inside = (step) => step >= effect.moment && step < effect.end;
  const change = (step) => (inside(step) ? effect.bits[step] - effect.ablated[step - effect.moment] : NaN); // below 0: it became less likely

  /** All that depends on the ablation. */
  function paint() {
    const steps = Array.from({ length: effect.end - effect.moment }, (_, k) => effect.moment + k);
    const changes = steps.map(change).filter(Number.isFinite);
    const loss = lab.get("colouring") === "loss";
    const most = Math.max(0.1, ...(loss ? changes.map(Math.abs) : effect.kl));
    const colours = loss ? scale("diverging", most) : scale("strength", most);
    shades.show(colours, loss ? "the next character became less likely (red) or likelier (blue), bits" : "divergence, nats");
    view.paint((step) => ({
      shade: inside(step) && Number.isFinite(change(step)) ? colours.shade(loss ? change(step) : effect.kl[step - effect.moment]) : "",
      mark: step === effect.moment ? "ablation" : inside(step) ? "" : step < effect.moment ? "" : "far",
    }));
    const sum = changes.reduce((total, value) => total - value, 0), kl = effect.kl.reduce((total, value) => total + value, 0);
    const worst = steps.reduce((best, step) => (change(step) < (change(best) || 0) ? step : best), effect.moment);
    const where = change(worst) < -0.05 ? ` It costs most, ${number(-change(worst), 2)} bits, where “${visible(effect.symbols[worst + 1])}” comes after “${effect.symbols.slice(Math.max(0, worst - 9), worst + 1).join("")}”.` : "";
    const which = lab.get("unit") < 0 ? words(lab.get("memory")) : `unit ${lab.get("unit")} of ${words(lab.get("memory"))}`;
    const done = { zero: "set to zero", freeze: "frozen", resample: "resampled" }[lab.get("kind")];
    sentence.textContent = !changes.length ? "Nothing follows the ablation in this text." : `With ${which} ${done} after ${effect.moment} character${effect.moment === 1 ? "" : "s"}, the ${changes.length === 1 ? "one that follows costs" : `${changes.length} that follow cost`} ${Math.abs(sum) < 0.05 ? "as many bits as before" : `${fixed(Math.abs(sum), 1)} bits ${sum < 0 ? "less" : "more"}`}; the prediction departs by ${fixed(kl, 2)} nats in all.${where}`;
    look();
  }

  /** What is looked at: hovered, chosen, or the first prediction after the ablation. */
  const now = () => Math.min(hovered ?? (lab.get("step") >= 0 ? lab.get("step") : effect.moment), effect.symbols.length - 1);

  function look() {
    const step = now(), wide = effect.likely.length / effect.symbols.length, vocabulary = lab.get("vocabulary"), next = effect.symbols[step + 1];
    view.select(step);
    const from = Math.max(0, effect.moment - 12);
    const x = { label: "character", low: from, high: Math.max(from + 1, effect.end - 1) };
    const span = (values, first) => Array.from(values, (value, k) => [first + k, value]);
    const cursor = step >= x.low && step <= x.high ? step : null;
    const high = Math.max(1, ...[...effect.bits.slice(from, effect.end), ...effect.ablated].filter(Number.isFinite));
    const marks = [{ x: effect.moment - 0.5, label: "ablation" }];
    losses.show({ x, y: { label: "bits", low: 0, high }, cursor, marks, series: [
      { label: "intact", colour: line("#4d4d4d"), points: span(effect.bits.slice(from, effect.end), from) },
      { label: "ablated", colour: line("#b2182b"), dash: "5 2", points: span(effect.ablated, effect.moment) }] });
    divergences.show({ x, y: { label: "nats", low: 0, high: Math.max(0.05, ...effect.kl) }, cursor, marks, series: [
      { label: "D(intact | ablated)", colour: line("#b2182b"), points: span(effect.kl, effect.moment) }] });
    const intact = guesses("Intact, what may come next", effect.likely.slice(step * wide, (step + 1) * wide), effect.chances.slice(step * wide, (step + 1) * wide), vocabulary, next);
    const k = step - effect.moment;
    const after = inside(step) ? guesses("After the ablation", effect.ablatedLikely.slice(k * wide, (k + 1) * wide), effect.ablatedChances.slice(k * wide, (k + 1) * wide), vocabulary, next)
      : make("div", { class: "nl-next" }, make("h3", {}, "After the ablation"), make("p", { class: "nl-quiet" }, step < effect.moment ? "The ablation comes later." : `Only ${effect.ablated.length} characters are read after an ablation.`));
    const came = next === undefined ? "the text ends here" : `“${visible(next)}” comes: ${fixed(effect.bits[step], 1)} bits` + (inside(step) ? ` intact, ${fixed(effect.ablated[k], 1)} ablated` : "");
    readout.replaceChildren(make("div", {}, make("h3", {}, `Character ${step + 1} of ${effect.symbols.length}: “${visible(effect.symbols[step])}”`), make("p", { class: "nl-quiet" }, came)), intact, after);
  }

  const spoken = () => readout.firstChild.textContent;

  lab.watch(["step", "colouring"], framed(() => { hovered = null; shown.show(lab.get("colouring")); paint(); }));
  lab.watch(["runs", "titles", "ablated_surprises", "divergences", "symbols", "ablated_at", "run", "text", "other", "memory", "moment", "kind", "unit", "costs"], settled(arrived, 0));
  arrived();
  return paint;
}
