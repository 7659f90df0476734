// The page of a unit: all that is recorded of it on a long text, with the passages where it is highest and lowest.

const STILL = 0.01; // a range of values that counts as none

/** A panel for the unit that is open; `go(run, unit)` shows another one. */
function unitPage(lab, go) {
  const node = make("section", { class: "nl-unit", "aria-label": "the unit's page", tabindex: "-1" });
  node.hidden = true;

  node.show = (trace, m, unit) => {
    const all = lab.get("pages"), row = m * trace.units + unit;
    node.hidden = m < 0 || m >= trace.memories.length || !all.places;
    if (node.hidden) return node.replaceChildren();
    const of = (column) => all[column][row];
    const label = lookOf(trace.memories[m]).label, memory = label.startsWith("layer") ? label : `the ${label}`;
    const moves = of("high") - of("low") > STILL, quoted = all.text || all.passages?.[of("places").split(" ")[0]];
    const facts = [
      [trace.timescale(m, unit, "tanh")?.time === undefined ? "State" : "Timescale", time(trace, m, unit, of)],
      ["Follows", follows(of)],
      ["A resample ablation costs", cost(all, trace, m, row)],
      ["Counterparts", counterparts(of("counterparts"), m)],
    ];
    node.replaceChildren(
      make("div", { class: "nl-unit-top" }, make("h3", {}, `Unit ${unit} of ${memory}, on ${all.on}`),
        button("Close", () => { lab.set({ page: -1 }); node.hidden = true; }, { "aria-label": "close the unit's page" })),
      make("div", { class: "nl-columns" },
        make("dl", { class: "nl-facts-list" }, ...facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, ...[value].flat())])),
        histogram(of)),
      moves && quoted ? make("div", { class: "nl-columns" }, passages("Where it is highest", all, of, 0), passages("Where it is lowest", all, of, 1)) : "",
      ...(!moves || quoted ? [] : free(trace.memories[m], unit)),
    );
  };

  /** The passages of a text that is shipped: the corpus of the records may not be. */
  function free(memory, unit) {
    const { unit: of, on, found } = lab.get("passages") ?? {}, rows = of === unit ? found[memory] : undefined;
    if (!rows) {
      if (of !== unit) lab.send("passages");
      return [make("p", { class: "nl-quiet" }, lab.alone || of === unit ? "This page has passages for one unit only." : "Looking for passages …")];
    }
    const line = ({ before, symbol, after, place, value, ties }) => make("li", {}, make("code", {}, before, make("span", { class: "nl-peak" }, symbol), after),
      make("span", { class: "nl-quiet" }, ` ${fixed(value, 2)} at ${place.toLocaleString("en")}${ties > 1 ? `, one of ${ties.toLocaleString("en")} places alike` : ""}`));
    const list = (extreme) => make("div", {}, make("h3", {}, `Where it is ${extreme}`), make("ol", { class: "nl-passages" }, ...rows.filter((row) => row.extreme === extreme).map(line)));
    return [make("div", { class: "nl-columns" }, list("highest"), list("lowest")), make("p", { class: "nl-quiet" }, `In ${on}: the corpus of these records may not be published.`)];
  }

  function time(trace, m, unit, of) {
    const known = trace.timescale(m, unit, "tanh");
    if (known?.time !== undefined) return `${number(known.time)} characters (95 %: ${number(known.low)} to ${number(known.high)}), of tanh c`;
    return `${known?.reason || "no timescale is recorded"}; last moved at character ${of("still_since").toLocaleString("en")}`;
  }

  const follows = (of) => (of("high") - of("low") <= STILL ? "nothing: it stands still" : `${of("label")}: ${number(Math.abs(of("effect")), 2)} standard deviations ${of("effect") > 0 ? "higher" : "lower"} there. `
    + `95 % of the units of an untrained network stay below ${number(of("untrained"), 2)}; on shuffled characters it is ${number(of("shuffled"), 2)}.`);

  function cost(all, trace, m, row) {
    if (!all.kl) return "not measured";
    const others = all.kl.slice(m * trace.units, (m + 1) * trace.units);
    const place = 1 + others.filter((each) => each > all.kl[row]).length;
    return `${number(all.kl[row], 2)} nats of divergence a prediction, ${number(all.loss_increase[row], 2)} of loss; number ${place} of ${trace.units}`;
  }

  const counterparts = (found, m) => (!found.length ? "none is recorded" : found.map(([run, unit, r]) => {
    const label = lab.get("titles")[run]?.label ?? run, words = `${label.split(", ").find((part) => part.startsWith("seed")) ?? label}: unit ${unit} (r = ${number(r, 2)})`;
    return lab.alone || !lab.get("runs").includes(run) ? make("div", {}, words) : button(words, () => go(run, unit, m));
  }));

  function histogram(of) {
    const bars = [...of("histogram")].map((letter) => make("i", { style: `height:${4 + 5 * (letter.charCodeAt(0) - 97)}px` }));
    const ends = make("div", { class: "nl-legend-ends" }, make("span", {}, number(of("low"))), make("span", {}, number(of("high"))));
    return make("div", { class: "nl-histogram", role: "img", "aria-label": `histogram of its values from ${number(of("low"))} to ${number(of("high"))}` }, make("div", {}, ...bars), ends);
  }

  /** Ten passages, coloured by its value at each character; the bold one is where it is highest or lowest. */
  function passages(title, all, of, half) {
    const places = of("places").split(" ").map(Number), courses = of("courses").split(" "), many = places.length / 2;
    const shades = scale("diverging", Math.max(Math.abs(of("low")), Math.abs(of("high")), 1e-6));
    const lines = places.slice(half * many, (half + 1) * many).map((at, k) => {
      const course = courses[half * many + k];
      const text = all.text ? all.text.slice(at - all.before, at - all.before + course.length) : all.passages?.[at];
      const letters = [...course].map((digit, j) => {
        const shade = shades.shade(of("low") + ((of("high") - of("low")) * parseInt(digit, 36)) / 35), letter = text?.[j] ?? " ";
        return make("span", { class: j === all.before ? "nl-peak" : null, style: `background:${shade};color:${ink(shade)}` }, letter === "\n" ? "¶" : letter);
      });
      return make("li", {}, make("code", { "aria-label": text ?? "" }, ...letters), make("span", { class: "nl-quiet" }, ` at ${at.toLocaleString("en")}`));
    });
    return make("div", {}, make("h3", {}, title), make("ol", { class: "nl-passages" }, ...lines));
  }
  return node;
}
