// TrainingExplorer: the innermost memory along one sentence, after each of the first updates, initialization beside initialization.

const PACE = 450; // ms an update is shown for while it plays
const DEATHS = { saturated: ["l", null], constant: ["s", "4 3"] };

function render(lab) {
  const updates = lab.get("updates"), symbols = lab.get("symbols"), labels = lab.get("labels"), lives = lab.get("lives"), bits = lab.get("bits");
  const cells = numbers(lab.get("cells"), "i1"), steps = symbols.length, units = cells.length / (labels.length * updates.length * steps);
  const memories = Object.keys(lives[0]).reverse(), innermost = memories[0], name = (memory) => lookOf(memory).label;
  let hovered = null, timer = null;
  const at = () => Math.max(0, updates.indexOf(lab.get("update")));
  const unitNow = () => Math.min(lab.get("unit"), units - 1), stepNow = () => Math.min(hovered ?? lab.get("step"), steps - 1);
  const value = (start, k, unit, t) => cells[((start * updates.length + k) * units + unit) * steps + t] / lab.get("levels");
  const letter = (start, k, unit) => lives[start][innermost][k][unit];
  const share = (start, memory, k, sign) => [...lives[start][memory][k]].filter((each) => each === sign).length / lives[start][memory][k].length;
  const life = (start, k, unit) => ({ l: "saturated", s: "constant" })[letter(start, k, unit)] ?? "alive";

  /** Units in the order in which they die: by the last update after which they are alive. */
  const orders = labels.map((_, start) => {
    const last = Array.from({ length: units }, (__, unit) => updates.findLastIndex((___, k) => letter(start, k, unit) === "a"));
    const end = (unit) => value(start, updates.length - 1, unit, steps - 1);
    return [...last.keys()].sort((a, b) => last[a] - last[b] || end(a) - end(b));
  });

  const go = (k) => { lab.set({ update: updates[Math.max(0, Math.min(updates.length - 1, k))] }); draw(); };
  const stop = () => { clearInterval(timer); timer = null; play.textContent = "Play"; };
  const slide = slider("after this many updates", { min: 0, max: updates.length - 1, value: at(), format: (k) => updates[k].toLocaleString("en") }, (k) => { stop(); go(k); });
  const play = button("Play", () => {
    if (timer) return stop();
    if (at() === updates.length - 1) go(0);
    play.textContent = "Pause";
    timer = setInterval(() => { go(at() + 1); if (at() === updates.length - 1) stop(); }, PACE);
  });
  lab.ended(stop);
  const which = slider("Unit", { min: 0, max: units - 1, value: unitNow() }, (unit) => { lab.set({ unit }); draw(); });
  const shown = choices("Text coloured by", [["unit", "this unit"], ["surprisal", "surprisal"]], lab.get("colouring"), (colouring) => { lab.set({ colouring }); draw(); });
  const shades = legend("", scale("diverging", 1));
  const sentence = make("p", { class: "nl-sum", "aria-live": "polite" });
  const columns = make("div", { class: "nl-columns" });

  const look = framed((step) => { hovered = step; moment(); });
  const panels = labels.map((label, start) => {
    const facts = make("p", {});
    const view = textView({ label: `the text, ${label}; arrow keys move along it`, hover: look, select: (step) => { hovered = null; lab.set({ step }); moment(); } });
    view.show(symbols);
    const map = heatMap(`every cell of the ${name(innermost)}, ${label}, in the order in which they die: a row a cell, a column a character; arrow keys choose`, steps, units,
      (row, step) => { lab.set({ unit: orders[start][row], step }); draw(); lab.say(sentence.textContent); });
    const course = chart({ height: 180, label: `shares of dead cells, ${label}`, press: (x) => { stop(); go(Math.round(x)); } });
    lab.ended(course.end);
    columns.append(make("div", {}, make("h3", {}, label), facts, view.node, map.node, make("h3", {}, "Dead cells on validation text"), course.node));
    return { start, facts, view, map, course };
  });

  lab.hint("Move the slider, or press Play: each map has a row for every cell of the memory and a column for every character. Cells that die become stripes. Click one to follow its unit.");
  lab.body.append(make("div", { class: "nl-controls" }, slide, play, which, shown, shades), sentence, columns);

  const whole = (x) => `${Math.round(100 * x)}\u00a0%`;

  function draw() {
    const k = at(), unit = unitNow(), surprised = lab.get("colouring") === "surprisal";
    slide.show(k);
    which.show(unit);
    shown.show(lab.get("colouring"));
    const diverging = scale("diverging", 1), strength = scale("strength", 8);
    shades.show(surprised ? strength : diverging, surprised ? "text: bits of surprisal" : "tanh c");
    for (const { start, facts, view, map, course } of panels) {
      const mean = bits[start][k].reduce((sum, each) => sum + each, 0) / bits[start][k].length;
      facts.textContent = `${memories.map((memory) => `${name(memory)}: ${whole(share(start, memory, k, "l"))} saturated, ${whole(share(start, memory, k, "s"))} constant`).join("; ")}. ${number(mean)} bits a character here.`;
      view.paint((t) => ({ shade: surprised ? (t ? strength.shade(bits[start][k][t - 1]) : "") : diverging.shade(value(start, k, unit, t)) }));
      map.show((row, t) => diverging.shade(value(start, k, orders[start][row], t)));
      const points = (memory, sign) => updates.map((_, each) => [each, 100 * share(start, memory, each, sign)]);
      course.show({
        x: { label: "updates", low: 0, high: updates.length - 1, ticks: [...updates.keys()].filter((each) => each % 3 === 0), name: (each) => updates[each].toLocaleString("en") },
        y: { label: "% of the cells", low: 0, high: 100, ticks: [0, 50, 100] }, cursor: k,
        series: memories.flatMap((memory) => Object.entries(DEATHS).map(([word, [sign, dash]]) => ({ label: `${name(memory)}, ${word}`, colour: lookOf(memory).colour, dash, points: points(memory, sign) }))),
      });
    }
    moment();
  }

  function moment() {
    const k = at(), unit = unitNow(), t = stepNow();
    for (const { start, view, map } of panels) { view.select(t); map.mark(orders[start].indexOf(unit), t); }
    sentence.textContent = `Unit ${unit} at “${visible(symbols[t])}”, character ${t + 1} of ${steps}, after ${updates[k].toLocaleString("en")} updates: ${labels.map((label, start) =>
      `${label} ${fixed(value(start, k, unit, t), 2)} (${life(start, k, unit)})`).join("; ")}.`;
  }

  lab.watch(["update", "unit", "step", "colouring"], framed(draw));
  draw();
  return draw;
}

/** A map of rows times columns: `choose(row, column)` by pointer or arrow keys, `show(shade(row, column))`, `mark(row, column)`. */
function heatMap(label, wide, high, choose) {
  const canvas = make("canvas", { tabindex: "0", role: "img", "aria-label": label, width: wide, height: high, click: press, keydown: key });
  const frame = make("i", { class: "nl-crosshair", "aria-hidden": "true" }), node = make("div", { class: "nl-heat" }, canvas, frame);
  let chosen = [0, 0];
  function press(event) {
    const box = canvas.getBoundingClientRect(), within = (share, count) => Math.max(0, Math.min(count - 1, Math.floor(share * count)));
    choose(within((event.clientY - box.top) / box.height, high), within((event.clientX - box.left) / box.width, wide));
  }
  function key(event) {
    const [down, right] = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key] ?? [];
    if (down === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    choose(Math.max(0, Math.min(high - 1, chosen[0] + down)), Math.max(0, Math.min(wide - 1, chosen[1] + right)));
  }
  return {
    node,
    mark(row, column) {
      chosen = [row, column];
      frame.style.cssText = `top:${(100 * row) / high}%;height:${100 / high}%;left:0;width:100%;--at:${(100 * (column + 0.5)) / wide}%`;
    },
    show(shade) {
      const pen = canvas.getContext("2d");
      for (let row = 0; row < high; row++) for (let column = 0; column < wide; column++) {
        pen.fillStyle = shade(row, column);
        pen.fillRect(column, row, 1, 1);
      }
    },
  };
}
