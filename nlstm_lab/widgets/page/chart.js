// Small line charts in SVG, as wide as the window lets them.

/** Round numbers from low to high, about `count` of them. */
function ticks(low, high, count) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((each) => each >= rough);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(Number((k * step).toPrecision(12)));
  return found;
}

/**
 * A chart. `show({series, x, y, cursor, marks})`: series are {label, colour, dash, points: [[x, y], ...]}, of
 * which a y that is not finite breaks the line, and dots mark the points; x and y are {label, low, high, log, ticks}, x also name(tick); cursor an x that is marked;
 * marks [{x, label}]. Options: height, label, hover(x or null), press(x).
 */
function chart({ height = 150, label, hover = null, press = null }) {
  const node = make("div", { class: "nl-chart" });
  const edge = { left: 46, right: 16, top: 8, bottom: 34 }; // px; more at the top where marks are named
  let plot = null, place = null;
  const observer = new ResizeObserver(framed(() => plot && draw()));
  observer.observe(node);

  function at(event) {
    const box = node.firstChild.getBoundingClientRect();
    const share = (event.clientX - box.left - edge.left) / (place.width - edge.left - edge.right);
    const { low, high } = plot.x;
    return low + Math.max(0, Math.min(1, share)) * (high - low);
  }

  function draw() {
    const width = Math.max(220, node.clientWidth);
    place = { width };
    edge.top = plot.marks?.length ? 20 : 8;
    const side = ({ low, high, log }, start, end) => {
      const turn = log ? Math.log : (value) => value;
      const [a, b] = [turn(low), turn(high)];
      return (value) => start + ((turn(value) - a) / (b - a || 1)) * (end - start);
    };
    const x = side(plot.x, edge.left, width - edge.right);
    const y = side(plot.y, height - edge.bottom, edge.top);
    const parts = [];
    const marks = (axis, count) => (axis.ticks ?? (axis.log ? decades(axis) : ticks(axis.low, axis.high, count)));
    for (const value of marks(plot.y, Math.max(2, height / 45))) {
      parts.push(make("line", { class: "nl-grid", x1: edge.left, x2: width - edge.right, y1: y(value), y2: y(value) }));
      parts.push(make("text", { class: "nl-tick", x: edge.left - 5, y: y(value) + 4, "text-anchor": "end" }, number(value)));
    }
    for (const value of marks(plot.x, Math.max(2, width / 90))) {
      parts.push(make("text", { class: "nl-tick", x: x(value), y: height - edge.bottom + 14, "text-anchor": "middle" }, plot.x.name?.(value) ?? number(value, 4)));
    }
    parts.push(make("line", { class: "nl-axis", x1: edge.left, x2: width - edge.right, y1: height - edge.bottom, y2: height - edge.bottom }));
    parts.push(make("text", { class: "nl-tick", x: (edge.left + width - edge.right) / 2, y: height - 5, "text-anchor": "middle" }, plot.x.label));
    parts.push(make("text", { class: "nl-tick", transform: `translate(11 ${(edge.top + height - edge.bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, plot.y.label));
    for (const { colour, dash, faint, points, dots } of plot.series) {
      const marked = dots || points.length === 1 ? points.filter((point) => point.every(Number.isFinite)) : [];
      for (const [px, py] of marked) parts.push(make("circle", { cx: x(px), cy: y(py), r: 2.6, fill: colour, class: "nl-dot" }));
      parts.push(make("path", { d: path(points, x, y), class: faint ? "nl-line nl-faint" : "nl-line", stroke: colour, "stroke-dasharray": dash }));
    }
    if (plot.cursor !== null && plot.cursor !== undefined) {
      parts.push(make("line", { class: "nl-cursor", x1: x(plot.cursor), x2: x(plot.cursor), y1: edge.top, y2: height - edge.bottom }));
    }
    for (const { x: value, label: name } of plot.marks ?? []) {
      parts.push(make("line", { class: "nl-mark", x1: x(value), x2: x(value), y1: edge.top, y2: height - edge.bottom }));
      // above the lines, and inside the picture
      const anchor = x(value) > width * 0.8 ? "end" : x(value) < width * 0.2 ? "start" : "middle";
      parts.push(make("text", { class: "nl-tick", x: x(value), y: edge.top - 5, "text-anchor": anchor }, name));
    }
    const picture = make("svg", {
      width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label,
      style: press ? "cursor: pointer" : null,
      pointermove: hover && ((event) => hover(at(event))), pointerleave: hover && (() => hover(null)),
      click: press && ((event) => press(at(event))),
    }, ...parts);
    node.replaceChildren(picture, names());
  }

  function names() {
    const shown = plot.series.filter((each) => each.label);
    return make("div", { class: "nl-names" }, ...shown.map(({ label: name, colour, dash }) =>
      make("span", {}, make("svg", { width: 22, height: 8, "aria-hidden": "true" },
        make("line", { x1: 0, x2: 22, y1: 4, y2: 4, class: "nl-line", stroke: colour, "stroke-dasharray": dash })), name)));
  }

  return { node, show(what) { plot = what; draw(); }, end: () => observer.disconnect() };
}

function decades({ low, high }) {
  const found = [];
  for (let power = Math.ceil(Math.log10(low) - 1e-9); 10 ** power <= high * (1 + 1e-9); power++) found.push(10 ** power);
  return found;
}

function path(points, x, y) {
  let drawn = "", down = false;
  for (const [px, py] of points) {
    if (Number.isFinite(py)) drawn += `${down ? "L" : "M"}${x(px).toFixed(1)} ${y(py).toFixed(1)}`;
    down = Number.isFinite(py);
  }
  return drawn;
}
