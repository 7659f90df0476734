// The forward pass of small networks in a page: LSTM layers and Nested LSTMs of two memories, equations 1 to 15 of
// Nested LSTMs, over one-hot characters. What a text is read as, and the labels of its characters, follow the library's
// `mapped_to`, `labels`, `liveness` and `contrast`.

const LIKELIEST = 5, LONGEST = 1000;
const sigmoid = (x) => 1 / (1 + Math.exp(-x));

/** The text as it is read, and what was changed for that. */
function leniently(text, symbols) {
  const known = new Set(symbols), first = [...text.normalize("NFC")].slice(0, LONGEST);
  const nearest = (character) => {
    const base = [...character.normalize("NFKD")][0];
    const found = [character, character.toLowerCase(), base, base.toLowerCase(), " "].find((each) => known.has(each));
    if (found === undefined) throw new Error(`the network does not know ${JSON.stringify(character)}`);
    return found;
  };
  if (!first.length) throw new Error("the text is empty: a probe needs at least one character");
  const read = first.map(nearest), words = read.join("");
  const said = words === [...text].slice(0, LONGEST).join("") ? [] : [`read as “${words.length > 80 ? `${words.slice(0, 79)}…` : words}”`];
  return [read, [...said, ...([...text].length > LONGEST ? [`shortened to ${LONGEST.toLocaleString("en")} characters`] : [])].join("; ")];
}

/** A network from {units, layers, nested, tanh, symbols, data}: data holds all matrices, row by row, in half precision. */
function networkOf({ units, layers, nested, tanh, symbols, data }) {
  const all = numbers(data, "f2"), codes = new Map(symbols.map((symbol, code) => [symbol, code]));
  let at = 0;
  const take = (size) => all.subarray(at, (at += size));
  const cell = (inputs) => ({ inputs, w: take(4 * units * inputs), u: take(4 * units * units), b: take(4 * units) });
  const cells = Array.from({ length: layers }, (_, k) => ({ outer: cell(k ? units : symbols.length), inner: nested ? cell(units) : null }));
  const readout = { w: take(symbols.length * units), b: take(symbols.length) };

  /** Adds a matrix [rows, size] times x to the sums; a number stands for a one-hot x. */
  function add(sums, matrix, size, x) {
    for (let row = 0; row < sums.length; row++) {
      if (typeof x === "number") { sums[row] += matrix[row * size + x]; continue; }
      let sum = 0;
      for (let k = 0, from = row * size; k < size; k++) sum += matrix[from + k] * x[k];
      sums[row] += sum;
    }
  }

  function gatesOf({ w, u, b, inputs }, x, h, curved) {
    const sums = Float32Array.from(b);
    add(sums, w, inputs, x);
    add(sums, u, units, h);
    const part = (k, f) => sums.subarray(k * units, (k + 1) * units).map(f);
    return { i: part(0, sigmoid), f: part(1, sigmoid), g: curved ? part(2, Math.tanh) : part(2, (x) => x), o: part(3, sigmoid) };
  }

  const zeros = () => new Float32Array(units);
  const blend = ({ i, f, g }, c) => c.map((value, k) => f[k] * value + i[k] * g[k]);
  const opened = ({ o }, c) => c.map((value, k) => o[k] * Math.tanh(value));

  /** Reads symbols; returns memories (innermost or highest first) of {c, i, f, g, o} a step, and log p a step. */
  return function read(text) {
    const state = cells.map(() => ({ h: zeros(), c: zeros(), deep: zeros() }));
    const steps = text.map((symbol) => {
      let x = codes.get(symbol);
      const records = cells.flatMap(({ outer, inner }, k) => {
        const own = state[k], gates = gatesOf(outer, x, own.h, !nested || tanh), found = [];
        if (nested) {
          const kept = own.c.map((value, j) => gates.f[j] * value); // equations 7 and 8
          const given = gates.i.map((value, j) => value * gates.g[j]);
          const inside = gatesOf(inner, given, kept, true);
          own.deep = blend(inside, own.deep);
          own.c = opened(inside, own.deep);
          found.push({ ...inside, c: own.deep });
        } else own.c = blend(gates, own.c);
        own.h = x = opened(gates, own.c);
        return [{ ...gates, c: own.c }, ...found];
      });
      const logits = Float32Array.from(readout.b);
      add(logits, readout.w, units, x);
      const most = Math.max(...logits), total = most + Math.log(logits.reduce((sum, value) => sum + Math.exp(value - most), 0));
      return { records: records.reverse(), logP: logits.map((value) => value - total) };
    });
    return { steps, codes };
  };
}

/** Whether each cell is alive (0), constant (1) or saturated (2) along a text, from its values [time]. */
function lifeOf({ c, i, f, g }) {
  const half = Math.floor(c.length / 2), late = Array.from({ length: c.length - half }, (_, k) => half + k);
  const seen = late.map((t) => Math.tanh(c[t])), mean = seen.reduce((sum, value) => sum + value, 0) / seen.length, sign = Math.sign(mean);
  const pinned = late.filter((t, k) => sign * seen[k] >= 0.99 && f[t] >= 0.9 && sign * i[t] * g[t] >= 0.1).length / late.length;
  const drift = (sign * (c[c.length - 1] - c[half])) / Math.max(c.length - 1 - half, 1);
  if (pinned >= 0.95 && drift >= 0.1) return 2;
  return Math.sqrt(seen.reduce((sum, value) => sum + (value - mean) ** 2, 0) / seen.length) < 0.001 ? 1 : 0;
}

/** What a reader knows of each character: position in its word, distance from the last space, in a quotation, in a bracket. */
function labelsOf(text) {
  let letter = -1, space = -1, depth = 0;
  const quoted = new Set();
  let start = 0;
  for (const line of text.join("").split(/(?<=\n)/)) {
    const marks = [...line.matchAll(/"|``|''/g)];
    for (let k = 0; k + 1 < marks.length; k += 2) for (let t = marks[k].index + marks[k][0].length; t < marks[k + 1].index; t++) quoted.add(start + t);
    start += line.length;
  }
  const found = text.map((symbol, t) => {
    if (!/[\p{L}\p{N}]/u.test(symbol)) letter = t;
    if (/\s/u.test(symbol)) space = t;
    depth = Math.max(0, depth + "([{<".includes(symbol) - ")]}>".includes(symbol));
    return [t - letter, t - space, Number(quoted.has(t)), Number(depth > 0)];
  });
  return found[0].map((_, k) => found.map((each) => each[k]));
}

/** By how many standard deviations the mean of each unit's tanh c is higher in the span than elsewhere [memory * unit]. */
function contrastOf(steps, [first, last]) {
  return steps[0].records.flatMap((_, m) => Array.from(steps[0].records[m].c, (__, unit) => {
    const sums = [[0, 0, 0], [0, 0, 0]]; // count, sum and sum of squares, outside and inside
    steps.forEach(({ records }, t) => {
      const x = Math.tanh(records[m].c[unit]), side = sums[Number(t >= first && t <= last)];
      side[0] += 1; side[1] += x; side[2] += x * x;
    });
    const variance = sums.reduce((total, [n, sum, squares]) => total + Math.max(0, squares - (sum * sum) / n), 0) / steps.length;
    return (sums[1][1] / sums[1][0] - sums[0][1] / sums[0][0]) / Math.max(Math.sqrt(variance), 0.001);
  }));
}

/** The same symbols in an order without meaning, the same one each time. */
function shuffledHere(symbols) {
  const found = [...symbols];
  let state = 1;
  for (let k = found.length - 1; k > 0; k--) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const other = Math.floor((state / 2 ** 32) * (k + 1));
    [found[k], found[other]] = [found[other], found[k]];
  }
  return found;
}

/** The span's contrasts: of this network, of an untrained one, and of this one on shuffled symbols. */
function spanHere(about, symbols, steps, span) {
  const [first, last] = span;
  if (span.length !== 2 || !(first >= 0 && first <= last && last < symbols.length && last - first + 1 < symbols.length)) return { span: [], contrasts: new Float32Array(0) };
  about.untrained ??= networkOf({ ...about, data: about.fresh });
  const found = [steps, about.untrained(symbols).steps, about.read(shuffledHere(symbols)).steps].map((each) => contrastOf(each, span));
  return { contrasts: Float32Array.from(found.flat()) };
}

/** CellExplorer's results for a text that one of the networks reads here, and for a span of it. */
function readHere(about, text, span = []) {
  const [symbols, notice] = leniently(text, about.symbols);
  const { steps, codes } = (about.read ??= networkOf(about))(symbols), length = symbols.length, { units } = about;
  const named = about.nested ? ["inner", "outer"] : about.layers > 1 ? Array.from({ length: about.layers }, (_, k) => `layer ${about.layers - k}`) : ["cell"];
  const memories = named.length, series = (name, m, unit) => steps.map(({ records }) => records[m][name][unit]);
  const spread = (name) => { // [memory, unit, time]
    const values = new Float32Array(memories * units * length);
    steps.forEach(({ records }, t) => records.forEach((record, m) => record[name].forEach((value, unit) => { values[(m * units + unit) * length + t] = value; })));
    return values;
  };
  const lives = Uint8Array.from({ length: memories * units }, (_, k) => {
    const cell = (name) => series(name, Math.floor(k / units), k % units);
    return lifeOf({ c: cell("c"), i: cell("i"), f: cell("f"), g: cell("g") });
  });
  const gates = new Float32Array(4 * memories * units * length);
  ["i", "f", "g", "o"].forEach((name, k) => gates.set(spread(name), k * memories * units * length));
  const best = steps.map(({ logP }) => [...logP.keys()].sort((a, b) => logP[b] - logP[a]).slice(0, LIKELIEST));
  const surprises = Float32Array.from(steps, ({ logP }, t) => (t + 1 < length ? -logP[codes.get(symbols[t + 1])] / Math.LN2 : NaN));
  return {
    ...spanHere(about, symbols, steps, span),
    symbols, notice, units, states: spread("c"), gates, lives, surprises, vocabulary: about.symbols, memories: named, squashed: named.map((name) => name !== "outer"),
    labels: Float32Array.from([...labelsOf(symbols), [...surprises]].flat()), likely: Int16Array.from(best.flat()),
    chances: Float32Array.from(best.flatMap((found, t) => found.map((code) => Math.exp(steps[t].logP[code])))),
  };
}
