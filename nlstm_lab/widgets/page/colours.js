// Colour scales of light and dark pages, their legends, and numbers.

/** Whether the page around a widget is dark: JupyterLab says so, another page follows the system. */
function isDark() {
  const light = document.body.dataset.jpThemeLight;
  return light === undefined ? matchMedia("(prefers-color-scheme: dark)").matches : light === "false";
}

/** Keep `root` in the page's theme and call `redraw` when that changes; returns what ends it. */
function followTheme(root, redraw) {
  const apply = () => { root.dataset.theme = isDark() ? "dark" : "light"; };
  const later = settled(redraw, 300); // JupyterLab takes its time to load the other theme's style
  const changed = () => { apply(); redraw(); later(); };
  const observer = new MutationObserver(changed);
  observer.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light"] });
  const media = matchMedia("(prefers-color-scheme: dark)");
  media.addEventListener("change", changed);
  apply();
  return () => { observer.disconnect(); media.removeEventListener("change", changed); };
}

const INK = new Map(); // whether black or white is read better on a shade

function ink(shade) {
  if (!INK.has(shade)) {
    const [r, g, b] = [1, 3, 5].map((k) => (parseInt(shade.slice(k, k + 2), 16) / 255) ** 2.2);
    INK.set(shade, 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.18 ? "#000000" : "#ffffff");
  }
  return INK.get(shade);
}

/** Shades for values: "diverging" from -limit to limit with 0 in the middle, "strength" from 0 to limit. */
function scale(kind, limit) {
  const low = kind === "diverging" ? -limit : 0, dark = isDark(), shades = MAPS[kind][dark ? "dark" : "light"];
  return {
    kind, low, high: limit,
    shade(value) {
      if (!Number.isFinite(value)) return dark ? "#3a3a3a" : "#d9d9d9";
      const share = (value - low) / (limit - low || 1);
      return shades[Math.max(0, Math.min(shades.length - 1, Math.round(share * (shades.length - 1))))];
    },
  };
}

/** A bar of a scale's shades with its ends (and middle) named; `show(scale, title)` changes it. */
function legend(title, colours) {
  const words = make("span", { class: "nl-legend-title" });
  const bar = make("span", { class: "nl-legend-bar", "aria-hidden": "true" });
  const ends = make("span", { class: "nl-legend-ends" });
  const node = make("div", { class: "nl-legend" }, words, make("span", { class: "nl-legend-scale" }, bar, ends));
  node.show = (what, description) => {
    words.textContent = description;
    const steps = Array.from({ length: 33 }, (_, k) => what.shade(what.low + ((what.high - what.low) * k) / 32));
    bar.style.background = `linear-gradient(to right, ${steps.join(",")})`;
    const named = what.kind === "diverging" ? [what.low, 0, what.high] : [what.low, what.high];
    ends.replaceChildren(...named.map((value) => make("span", {}, number(value))));
  };
  node.show(colours, title);
  return node;
}

/** A number with a true minus sign and so many significant digits. */
function number(value, digits = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  const digitsShown = size !== 0 && (size < 1e-3 || size >= 1e5) ? value.toExponential(digits - 1) : String(Number(value.toPrecision(digits)));
  return digitsShown.replaceAll("-", "−");
}

/** A number with so many decimals, for columns of a table. */
const fixed = (value, decimals = 3) => {
  if (!Number.isFinite(value)) return "not finite";
  if (Math.abs(value) >= 100) return number(value, decimals + 1);
  const digits = value.toFixed(decimals);
  return Number(digits) === 0 ? digits.replace("-", "") : digits.replace("-", "−");
};

/** The colour of a line: on a dark page its lightness is turned round, so that two blues stay two. */
function line(colour) {
  if (!isDark()) return colour;
  const [r, g, b] = [1, 3, 5].map((k) => parseInt(colour.slice(k, k + 2), 16) / 255);
  const high = Math.max(r, g, b), low = Math.min(r, g, b), light = (high + low) / 2, spread = high - low;
  const hue = !spread ? 0 : high === r ? ((g - b) / spread) % 6 : high === g ? (b - r) / spread + 2 : (r - g) / spread + 4;
  const saturation = spread ? spread / (1 - Math.abs(2 * light - 1)) : 0;
  return `hsl(${(60 * hue + 360) % 360} ${100 * saturation}% ${100 * (1 - 0.75 * light)}%)`;
}

/** The label and the line's colour of a memory or model, whatever its name. */
const lookOf = (name) => ({ label: LOOKS[name]?.label ?? name, colour: line(LOOKS[name]?.colour ?? "#808080") });

/** A probability in per cent. */
const percent = (p) => (!Number.isFinite(p) ? "not finite" : p >= 0.9995 ? "100 %" : p >= 0.0995 ? `${(100 * p).toFixed(0)} %` : `${(100 * p).toFixed(1)} %`);

/** What a character is called where it stands alone: white space has no shape. */
const visible = (symbol) => ({ " ": "␣", "\n": "¶", "\t": "⇥" })[symbol] ?? symbol;

/** Numbers from bytes as Python sent them: "f2" (half precision), "f4", "u1", "i1", "i2" or "i4", little-endian. */
function numbers(view, type) {
  if (!(view instanceof DataView)) return view; // computed here
  const buffer = view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength);
  if (type !== "f2") return new { f4: Float32Array, u1: Uint8Array, i1: Int8Array, i2: Int16Array, i4: Int32Array }[type](buffer);
  return Float32Array.from(new Uint16Array(buffer), half);
}

const HALVES = new Float32Array(65536).map((_, bits) => {
  const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024));
});
const half = (bits) => HALVES[bits];
