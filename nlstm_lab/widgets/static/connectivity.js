// ConnectivityExplorer: a facet for each network with one shared character. The matrices lie here, Python is asked only
// for a target or a mode that was not computed yet.

const FULL = 32767; // the code of a position's largest connectivity
const DECADES = 4; // of a logarithmic scale: what is weaker is as good as nothing
const LEVELS = 64; // shades that are told apart

// --- the numbers -----------------------------------------------------------------------------------------------

/** Where each position's codes start in a network's part of the buffer; the last entry is their number. */
export function offsets(window) {
  const starts = [0];
  window.forEach((first, t) => starts.push(starts[t] + t - first + 1));
  return starts;
}

/** The connectivities of position t to the characters window[t] .. t, or null where nothing was asked for. */
export function row(matrix, k, t, starts, mode) {
  const largest = matrix.networks[k].largest[t];
  if (largest === null) return null;
  const codes = matrix.codes;
  const base = 2 * (k * starts[starts.length - 1] + starts[t]);
  return Float64Array.from({ length: starts[t + 1] - starts[t] }, (_, s) => {
    const share = codes.getInt16(base + 2 * s, true) / FULL;
    const value = share * Math.abs(share) * largest;
    return mode === "as_coded" ? value * value : value; // the sum of squares is the norm's square
  });
}

/** Shades from -1 to 1 of several networks' rows: of each one's own largest, of the largest of all, or its logarithm. */
export function shades(rows, scale) {
  const size = (values) => (values ? values.reduce((most, value) => Math.max(most, Math.abs(value)), 0) : 0);
  const all = Math.max(...rows.map(size));
  return rows.map((values) => {
    const largest = scale === "row" ? size(values) : all;
    return values?.map((value) => {
      let strength = largest > 0 ? Math.abs(value) / largest : 0;
      if (scale === "log") strength = Math.max(1 + Math.log10(Math.max(strength, 10 ** -DECADES)) / DECADES, 0);
      return strength * Math.sign(value);
    });
  });
}

/** The position that a link names: #connectivity-word, its occurrence (1), characters known (1: its first letter). */
export function named(hash, about) {
  const parts = /^#connectivity-(.+?)(?:-(\d+))?(?:-(\d+))?$/.exec(decodeURIComponent(hash));
  if (!parts) return null;
  const [word, occurrence, known] = [parts[1], Number(parts[2] ?? 1), Number(parts[3] ?? 1)];
  const places = about.word.flatMap((name, t) => (name === word && about.known[t] === known ? [t] : []));
  return places[occurrence - 1] ?? null;
}

/** A number that a person reads: three digits, powers of ten only where they must be. */
export function figure(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 1e-4 && size < 1e5 ? String(Number(value.toPrecision(3))) : value.toExponential(2);
}
