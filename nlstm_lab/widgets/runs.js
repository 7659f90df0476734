// RunBrowser: a table of runs, the curves of those that are picked, the provenance of one.

const LABELS = { bpc: "bits per character", perplexity: "perplexity", nll_nats: "nats", top1_accuracy_pct: "accuracy, %", log_likelihood_nats: "log-likelihood, nats" };
const DASHES = ["", "6 2", "2 2", "8 2 2 2", "1 2"];
const duration = (seconds) => (seconds < 90 ? `${Math.round(seconds)} s` : seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`);

function render(lab) {
  const rows = lab.get("rows");
  const value = (row, split) => row.metrics[lab.get("metric")]?.[split] ?? NaN;
  const picked = (row) => lab.get("picked").includes(row.name);
  const columns = [
    ["pick", (row) => (picked(row) ? 0 : 1), null],
    ["run", (row) => row.name, (row) => row.name],
    ["unit", (row) => lookOf(row.unit).label, (row) => lookOf(row.unit).label],
    ["size", (row) => row.parameters, (row) => row.layers],
    ["parameters", (row) => row.parameters, (row) => row.parameters.toLocaleString("en")],
    ["valid", (row) => value(row, "valid"), (row) => (Number.isNaN(value(row, "valid")) ? "–" : fixed(value(row, "valid")))],
    ["test", (row) => value(row, "test"), (row) => (Number.isNaN(value(row, "test")) ? "–" : fixed(value(row, "test")))],
    ["epochs", (row) => row.epochs, (row) => (row.state === "done" ? String(row.epochs) : row.state.replace(" epochs", ""))],
    ["time", (row) => row.seconds, (row) => duration(row.seconds)],
    ["weights", (row) => (row.weights ? 0 : 1), (row) => (row.weights ? "kept" : "–")],
  ];
  let sorted = { column: 1, way: 1 };

  lab.hint(`Tick runs to see how they learned${lab.alone ? "" : ", and to offer them to other widgets"}; click a name to see where a run comes from. A column's heading sorts.`);
  const metrics = [...new Set(rows.flatMap((row) => Object.keys(row.metrics)))];
  const metric = selection("Metric", metrics.map((each) => [each, LABELS[each] ?? each]), lab.get("metric"), (each) => { lab.set({ metric: each }); all(); });
  const search = labelled("Find runs", make("input", { type: "search", placeholder: "nlstm seed0", input: () => list() }));
  const training = toggle("training loss, too", true, () => curves());
  const count = make("span", { class: "nl-quiet", "aria-live": "polite" });
  const table = make("table", {});
  const held = make("div", { class: "nl-scroll", tabindex: "0", role: "region", "aria-label": "recorded runs", keydown: walk }, table);
  const key = make("span", { class: "nl-quiet" });
  const course = chart({ height: 230, label: "learning curves of the picked runs" });
  const about = make("div", { class: "nl-about" });
  lab.ended(course.end);
  lab.body.append(
    make("div", { class: "nl-controls" }, search, metric, training, button("Pick none", () => { lab.set({ picked: [] }); all(); }), count), held,
    make("div", { class: "nl-columns" }, make("div", {}, make("h3", {}, "How they learned ", key), course.node), about),
  );

  const matching = () => {
    const words = search.querySelector("input").value.toLowerCase().split(/\s+/).filter(Boolean);
    return rows.filter((row) => words.every((word) => `${row.name} ${lookOf(row.unit).label}`.toLowerCase().includes(word)));
  };

  function list() {
    const [, order] = columns[sorted.column];
    const shown = matching().sort((a, b) => {
      const [x, y] = [order(a), order(b)];
      if (typeof x === "string") return sorted.way * x.localeCompare(y, "en", { numeric: true });
      return Number.isNaN(x) ? 1 : Number.isNaN(y) ? -1 : sorted.way * (x - y);
    });
    count.textContent = `${shown.length} of ${rows.length} runs, ${lab.get("picked").length} picked`;
    const head = columns.map(([title], k) => make("th", { scope: "col", "aria-sort": sorted.column !== k ? "none" : sorted.way > 0 ? "ascending" : "descending" },
      button(title + (sorted.column !== k ? "" : sorted.way > 0 ? " ▲" : " ▼"), () => { sorted = { column: k, way: sorted.column === k ? -sorted.way : 1 }; list(); }, { class: "nl-plain" })));
    const body = shown.map((row) => {
      const box = make("input", { type: "checkbox", "aria-label": `pick ${row.name}`, change: () => pick(row.name, box.checked) });
      box.checked = picked(row);
      const cells = columns.slice(2).map(([, , text]) => make("td", {}, text(row)));
      return make("tr", { class: row.name === lab.get("run") ? "nl-chosen" : null }, make("td", {}, box),
        make("td", {}, button("", () => { lab.set({ run: row.name }); list(); tell(); }, { class: "nl-plain nl-name" })), ...cells);
    });
    body.forEach((each, k) => each.querySelector(".nl-name").append(...broken(shown[k].name)));
    table.replaceChildren(make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body));
  }

  /** A name that may go on in the next line after each of its parts. */
  const broken = (name) => name.split(/(?<=[/_])/u).flatMap((part) => [part, make("wbr")]);

  function pick(name, on) {
    const now = rows.filter((row) => (row.name === name ? on : picked(row)));
    lab.set({ picked: now.map((row) => row.name), run: name });
    count.textContent = `${matching().length} of ${rows.length} runs, ${now.length} picked`;
    table.querySelectorAll("tbody tr").forEach((line) => line.classList.toggle("nl-chosen", line.querySelector(".nl-name").textContent === name));
    curves();
    tell();
  }

  function walk(event) {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    const boxes = [...table.querySelectorAll("input")];
    boxes[Math.max(0, Math.min(boxes.length - 1, boxes.indexOf(document.activeElement) + by))]?.focus();
  }

  /** A name without the flags that all of these have. */
  function shortened(names) {
    const parts = (name) => name.slice(0, name.lastIndexOf("/")).split("+");
    return (name) => parts(name).filter((part, k) => k === 0 || !names.every((other) => parts(other).includes(part))).join("+") + name.slice(name.lastIndexOf("/"));
  }

  function curves() {
    const name = lab.get("metric"), shown = rows.filter((row) => picked(row) && row.curves[name]);
    const withTraining = training.querySelector("input").checked;
    key.textContent = `dots: validation${withTraining ? "; thin lines: training" : ""}`;
    const seen = {}, series = [], short = shortened(shown.map((row) => row.name));
    for (const row of shown) {
      const alike = (seen[row.unit] = (seen[row.unit] ?? -1) + 1);
      const colour = lookOf(row.unit).colour, dash = DASHES[alike % DASHES.length];
      if (withTraining) series.push({ colour, dash, faint: true, points: row.curves[name].training });
      series.push({ label: short(row.name), colour, dash, points: row.curves[name].valid, dots: true });
    }
    const points = series.flatMap((each) => each.points);
    const values = points.map(([, value]) => value).filter(Number.isFinite), updates = points.map(([update]) => update).filter((update) => update > 0);
    const [least, most] = [Math.min(...values), Math.max(...values)], room = 0.05 * (most - least) || 0.5; // for the dots
    course.show({
      x: { label: "updates", low: updates.length ? Math.min(...updates) : 1, high: updates.length ? Math.max(...updates) : 10, log: withTraining },
      y: { label: LABELS[name] ?? name, ...(values.length ? { low: least - room, high: most + room } : { low: 0, high: 1 }) },
      series, marks: shown.length ? [] : [{ x: 3, label: "no run with this metric is picked" }],
    });
  }

  function tell() {
    const row = rows.find((each) => each.name === lab.get("run"));
    if (!row) return about.replaceChildren();
    const facts = {
      size: `${row.layers}, ${row.parameters.toLocaleString("en")} parameters`,
      time: `${Math.round(row.seconds).toLocaleString("en")} s for ${row.epochs} epochs`,
      ...(row.state === "done" ? {} : { state: row.state }), ...row.provenance,
    };
    const lines = Object.entries(facts).flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, String(value))]);
    about.replaceChildren(make("h3", {}, `Where ${row.name} comes from`), make("dl", {}, ...lines));
  }

  function all() { metric.show(lab.get("metric")); list(); curves(); tell(); }
  lab.watch(["picked", "run", "metric"], all);
  all();
  requestAnimationFrame(() => { // the list scrolls to the run that was announced
    const line = table.querySelector(".nl-chosen");
    if (line) held.scrollTop = line.offsetTop - held.clientHeight / 2;
  });
  return all;
}
