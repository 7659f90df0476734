// A phrase of the text, and the units that are on in it and off elsewhere, beside what chance would give.

const SHOWN = 8; // units
const NEAR = 8; // characters within which units are on together

/** A panel for the phrase that is selected; `go(m, unit)` looks at a unit. */
function spanPanel(lab, go) {
  const node = make("section", { class: "nl-unit", "aria-label": "units of the phrase" });
  node.show = (trace) => {
    const [from, to] = lab.get("span"), found = numbers(lab.get("contrasts"), "f4"), size = trace.memories.length * trace.units;
    node.hidden = from === undefined || found.length !== 3 * size;
    if (node.hidden) return;
    const ranked = [0, 1, 2].map((k) => {
      const all = found.subarray(k * size, (k + 1) * size);
      return [...all.keys()].sort((a, b) => Math.abs(all[b]) - Math.abs(all[a])).slice(0, SHOWN).map((row) => ({ m: Math.floor(row / trace.units), unit: row % trace.units, effect: all[row] }));
    });
    const called = ({ m, unit }) => `${lookOf(trace.memories[m]).label}, ${unit}`;
    const head = ["", "this network", "untrained", "shuffled"].map((title) => make("th", { scope: "col" }, title));
    const rows = ranked[0].map((best, k) => make("tr", {}, make("th", { scope: "row" }, String(k + 1)),
      make("td", {}, button(called(best), () => go(best.m, best.unit)), ` ${fixed(best.effect, 1)}`),
      ...[1, 2].map((other) => make("td", {}, fixed(ranked[other][k].effect, 1)))));
    const table = make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows));
    const clear = button("Clear", () => lab.set({ span: [] }, true), { "aria-label": "clear the phrase" });
    const phrase = lab.get("sequences").length ? `steps ${from} to ${to}` : `“${trace.symbols.slice(from, to + 1).join("")}”`;
    node.replaceChildren(make("div", { class: "nl-unit-top" }, make("h3", {}, `Units by how much they differ in ${phrase} from the rest`), clear),
      make("p", { class: "nl-quiet" }, "Differences of the means in standard deviations. Beside each rank: the unit of that rank in an untrained network, and in this one on shuffled text: what chance reaches."),
      make("div", { class: "nl-columns" }, make("div", {}, table), elsewhere(trace, ranked[0])));
  };

  /** Passages of the recorded text where several of these units are at their highest (or lowest, as in the phrase). */
  function elsewhere(trace, best) {
    const all = lab.get("pages");
    if (!all.places) return make("p", { class: "nl-quiet" }, "Nothing is recorded of these units on a longer text.");
    const peaks = best.flatMap(({ m, unit, effect }, k) => {
      const places = all.places[m * trace.units + unit].split(" ").map(Number), many = places.length / 2;
      return (effect > 0 ? places.slice(0, many) : places.slice(many)).map((at) => ({ at, k }));
    }).sort((a, b) => a.at - b.at);
    const groups = peaks.map(({ at }) => ({ at, units: new Set(peaks.filter((other) => Math.abs(other.at - at) <= NEAR).map(({ k }) => k)) }))
      .filter(({ units }) => units.size > 1).sort((a, b) => b.units.size - a.units.size || a.at - b.at);
    const apart = groups.filter(({ at }, k) => !groups.slice(0, k).some((other) => Math.abs(other.at - at) <= 2 * NEAR)).slice(0, 10);
    const lines = apart.map(({ at, units }) => make("li", {}, all.text ? make("code", {}, all.text.slice(at - all.before, at + NEAR).replaceAll("\n", "¶")) : null,
      make("span", { class: "nl-quiet" }, ` at ${at.toLocaleString("en")}: ranks ${[...units].map((k) => k + 1).join(", ")}`)));
    return make("div", {}, make("h3", {}, `Where else in ${all.on} several of them peak together`), apart.length ? make("ol", { class: "nl-passages" }, ...lines) : make("p", {}, "Nowhere."),
      all.text || !apart.length ? null : make("p", { class: "nl-quiet" }, "The passages themselves are shown in JupyterLab, where the corpus is."));
  }
  return node;
}
