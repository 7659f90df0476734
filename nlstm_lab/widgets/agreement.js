// Boundaries against a truth, as `lab.probes` judges them: each counts once, within a window of steps.

const WINDOWS = { 0: [0, 0], "±1": [1, 1], "or one after": [0, 1] };
const DRAWS = 20; // of detectors that fire as often, at random places
const MARKS = new Set("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~");

/** Where in a text there are spaces (line ends are), first and last characters of words, punctuation marks. */
function truthsOf(symbols) {
  const space = symbols.map((symbol) => /^\s$/u.test(symbol));
  return {
    spaces: space,
    "word starts": space.map((is, t) => !is && (t === 0 || space[t - 1])),
    "word ends": space.map((is, t) => !is && (t === space.length - 1 || space[t + 1])),
    punctuation: symbols.map((symbol) => MARKS.has(symbol)),
  };
}

/** The largest number of pairs of a boundary and a true one within the window, none used twice. */
function matched(found, truth, [before, after]) {
  const places = (flags) => flags.flatMap((is, t) => (is ? [t] : []));
  const here = places(found), there = places(truth);
  let hits = 0, i = 0, j = 0;
  while (i < here.length && j < there.length) {
    const late = here[i] - there[j];
    if (-before <= late && late <= after) { hits++; i++; j++; }
    else if (late < 0) i++;
    else j++;
  }
  return hits;
}

const count = (flags) => flags.reduce((sum, is) => sum + (is ? 1 : 0), 0);

/** Precision, recall and F1; NaN where nothing was found, or nothing is true. */
function agreementOf(found, truth, within) {
  const hits = matched(found, truth, WINDOWS[within]), fired = count(found), there = count(truth);
  return { fired, precision: hits / fired, recall: hits / there, f1: (2 * hits) / (fired + there) };
}

/** The mean F1 of detectors that fire as often at random places; the same ones at every call. */
function chance(found, truth, within) {
  let state = 1;
  const random = () => (state = (state * 48271) % 2147483647) / 2147483647;
  let sum = 0;
  for (let draw = 0; draw < DRAWS; draw++) {
    const drawn = [...found];
    for (let k = drawn.length - 1; k > 0; k--) {
      const other = Math.floor(random() * (k + 1));
      [drawn[k], drawn[other]] = [drawn[other], drawn[k]];
    }
    sum += agreementOf(drawn, truth, within).f1;
  }
  return sum / DRAWS;
}
