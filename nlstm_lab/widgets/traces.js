// A trace in the browser: every state and gate of a text, and what is computed from them.

const LIVES = ["", "constant", "saturated", "not finite"];
const RULES = [
  ["", "by number"],
  ["slow", "slowest first"],
  ["moving", "moves most"],
  ["in_quotation", "follows quotations"],
  ["in_bracket", "follows brackets"],
  ["position_in_word", "follows position in word"],
  ["since_space", "follows distance from last space"],
  ["surprise", "follows surprise"],
  ["time", "follows position from the start"],
  ["characters", "follows these characters"],
  ["alike", "moves like this unit"],
];
const OF_TEXT = ["in_quotation", "in_bracket", "position_in_word", "since_space", "surprise", "characters"];
const LAGS = 40;

/** The trace as numbers, with what is asked of it. */
function traceOf(lab) {
  const units = lab.get("units"), symbols = lab.get("symbols"), memories = lab.get("memories");
  const length = symbols.length, likely = numbers(lab.get("likely"), "i2"), chances = numbers(lab.get("chances"), "f4");
  const states = numbers(lab.get("states"), "f2"), labels = numbers(lab.get("labels"), "f4");
  const lives = numbers(lab.get("lives"), "u1"), surprises = numbers(lab.get("surprises"), "f4");
  const known = numbers(lab.get("known"), "f4"), squashed = lab.get("squashed");
  const cells = lab.get("gates").byteLength > 0, followed = lab.get("followed");
  const inputs = followed.filter((name) => name.startsWith("input ")); // the coordinates of vectors
  let gates = null; // four times as much as the states, and asked for one at a time
  const at = (m, unit) => (m * units + unit) * length;
  const through = (m, values) => cells && (values === "tanh" || (values === "printed" && squashed[m]));
  return {
    units, symbols, memories, length, surprises, cells, through,
    value(m, unit, step, values) {
      const raw = states[at(m, unit) + step];
      return through(m, values) ? Math.tanh(raw) : raw;
    },
    row: (m, unit, values) => {
      const raw = states.subarray(at(m, unit), at(m, unit) + length);
      return through(m, values) ? raw.map(Math.tanh) : raw;
    },
    gate(name, m, unit, step) {
      gates ??= numbers(lab.get("gates"), "f2");
      return gates["ifgo".indexOf(name) * memories.length * units * length + at(m, unit) + step];
    },
    /**
     * What was written at each step up to this one, i·g, and is left there after the forget gates of all later steps: the
     * parts sum to c. Null of a memory that does not leak by a gate of its own, such as the outer one of a Nested LSTM.
     */
    left(m, unit, step) {
      if (!cells || !squashed[m]) return null;
      const parts = new Float32Array(step + 1);
      let kept = 1, sum = 0;
      for (let t = step; t >= 0; t--) {
        parts[t] = kept * this.gate("i", m, unit, t) * this.gate("g", m, unit, t);
        kept *= this.gate("f", m, unit, t);
        sum += parts[t];
      }
      const c = states[at(m, unit) + step];
      return Math.abs(sum - c) <= 0.02 + 0.05 * Math.abs(c) ? parts : null; // gates are known to three digits
    },
    label: (name) => labels.subarray(followed.indexOf(name) * length, (followed.indexOf(name) + 1) * length),
    followed, inputs,
    rules: [...RULES.filter(([name]) => !OF_TEXT.includes(name) || followed.includes(name === "characters" ? "since_space" : name)),
      ...inputs.map((name) => [name, `follows ${name}`])],
    saturated: (m) => lives.subarray(m * units, (m + 1) * units).filter((life) => life === 2).length,
    life: (m, unit) => LIVES[lives[m * units + unit]],
    /** {time, low, high}, {reason}, or null where none was recorded. */
    timescale(m, unit, values) {
      if (!known.length) return null;
      const kind = through(m, values) ? 1 : 0, size = memories.length * units, place = m * units + unit;
      const [time, low, high] = [0, 1, 2].map((k) => known[(kind * 3 + k) * size + place]);
      return Number.isNaN(time) ? { reason: lab.get("reasons")[kind][place] } : { time, low, high };
    },
    /** Codes and probabilities of the likeliest next characters. */
    next: (step) => [likely, chances].map((each) => each.subarray((step * each.length) / length, ((step + 1) * each.length) / length)),
  };
}

/** Correlation over steps at which both are numbers; 0 where one does not move. */
function correlation(x, y) {
  let n = 0, sx = 0, sy = 0, sxx = 0, syy = 0, sxy = 0;
  for (let t = 0; t < x.length; t++) {
    if (!Number.isFinite(x[t]) || !Number.isFinite(y[t])) continue;
    n++; sx += x[t]; sy += y[t]; sxx += x[t] * x[t]; syy += y[t] * y[t]; sxy += x[t] * y[t];
  }
  const spread = (sxx - (sx * sx) / n) * (syy - (sy * sy) / n);
  return spread > 1e-12 ? (sxy - (sx * sy) / n) / Math.sqrt(spread) : 0;
}

/** rho_0 ... rho_lags of a series; empty where it does not move. */
function autocorrelation(x, lags) {
  const mean = x.reduce((sum, value) => sum + value, 0) / x.length;
  const at = (lag) => {
    let sum = 0;
    for (let t = lag; t < x.length; t++) sum += (x[t] - mean) * (x[t - lag] - mean);
    return sum / (x.length - lag);
  };
  const variance = at(0);
  if (!(variance > 1e-9)) return [];
  return Array.from({ length: Math.min(lags, x.length - 2) + 1 }, (_, lag) => at(lag) / variance);
}

/** Units of one memory by a rule, best first: [unit, score] each; dead units have none. */
function ranking(trace, m, rule, values, characters, unit) {
  const length = trace.length;
  const target = {
    time: () => Float32Array.from({ length }, (_, t) => t),
    characters: () => Float32Array.from(trace.symbols, (symbol) => (characters.includes(symbol) ? 1 : 0)),
    alike: () => trace.row(m, unit, values),
  }[rule]?.() ?? (trace.followed.includes(rule) ? trace.label(rule) : null);
  const score = (each, row) => {
    if (rule === "slow") {
      const estimate = trace.timescale(m, each, values);
      if (estimate) return estimate.time ?? NaN;
      const rho = autocorrelation(row, length / 4);
      const fallen = rho.findIndex((value) => value < 1 / Math.E);
      return fallen > 0 ? fallen : rho.length || NaN;
    }
    if (rule === "moving") return row.reduce((sum, value, t) => (t ? sum + Math.abs(value - row[t - 1]) : 0), 0) / (length - 1);
    return correlation(row, target);
  };
  const found = [];
  for (let each = 0; each < trace.units; each++) {
    if (trace.life(m, each) || (rule === "alike" && each === unit)) continue;
    const scored = score(each, trace.row(m, each, values));
    if (Number.isFinite(scored) && scored !== 0) found.push([each, scored]);
  }
  return found.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
}
