// ConnectivityExplorer: a facet for each network, and one shared character. The matrices lie here; Python is asked for
// a text, a target or a mode that was not computed yet.

const DECADES = 4; // of a logarithmic scale: what is weaker is as good as nothing

/** What position t depends on, up to itself; null where nothing was computed. */
function connectivityRow({ shares, largest, wide }, k, t, length) {
  const row = k * length + t, most = largest[row];
  return Number.isNaN(most) ? null : shares.slice(row * wide, row * wide + t + 1).map((share) => share * most);
}

const largestOf = (values) => (values ? values.reduce((most, value) => Math.max(most, Math.abs(value)), 0) : 0);

/** Shades from -1 to 1: shares of each row's own largest, of the largest of all, or the logarithm of those. */
function shadesOf(rows, kind) {
  const all = Math.max(...rows.map(largestOf));
  return rows.map((values) => {
    const largest = kind === "row" ? largestOf(values) : all;
    return values?.map((value) => {
      let strength = largest > 0 ? Math.abs(value) / largest : 0;
      if (kind === "log") strength = Math.max(1 + Math.log10(Math.max(strength, 10 ** -DECADES)) / DECADES, 0);
      return strength * Math.sign(value);
    });
  });
}

/** The position that a link means: #connectivity-WORD, -OCCURRENCE behind it (1), -LETTER behind that (1). */
function linked(hash, about) {
  const parts = /^#connectivity-(.+?)(?:-(\d+))?(?:-(\d+))?$/.exec(decodeURIComponent(hash ?? ""));
  if (!parts) return null;
  const letter = Number(parts[3] ?? 1);
  const places = about.word.flatMap((word, t) => (word === parts[1] && about.known[t] === letter ? [t] : []));
  return places[Number(parts[2] ?? 1) - 1] ?? null;
}

function render(lab) {
  let about, matrix, cursor = lab.get("at");
  const key = (target, mode, asked) => [target, target === "given" ? asked : "", mode].join(" ");
  const known = (...choice) => key(...choice) in lab.get("matrices");

  // --- what can be chosen

  const targetNames = Object.entries(lab.get("about").targets).filter(([name]) => !lab.alone || name !== "given" || name === lab.get("target"));
  const target = selection("Asked for", targetNames, lab.get("target"), (value) => ask({ target: value }));
  const word = entered(make("input", { type: "text", size: 12 }), (value) => ask({ target: "given", word: value.trim() }));
  const which = labelled("Which word", word);
  if (lab.alone) word.disabled = true;
  const mode = selection("Shown", Object.entries(lab.get("about").modes), lab.get("mode"), (value) => ask({ mode: value }));
  const shares = [["row", "of each one's largest"], ["figure", "of the largest of all"], ["log", "its logarithm"]];
  const kind = choices("Shades: share", shares, lab.get("scale"), (value) => { lab.set({ scale: value }); draw(); });
  const lock = toggle("Lock", lab.get("locked"), (value) => hold(value));
  const bar = legend("", scale("strength", 1));
  const hint = make("p", { class: "nl-quiet" });
  const own = make("textarea", { rows: 2, spellcheck: "false" });
  const read = button("Read it", () => ask({ text: own.value }));
  const yours = make("details", { class: "nl-yours" }, make("summary", {}, "Another text"), labelled("What the networks read", own), read);

  /** Choices that Python computes from: what was computed before is shown at once. */
  function ask(values) {
    const next = { target: lab.get("target"), mode: lab.get("mode"), ...values };
    which.hidden = next.target !== "given";
    const given = "word" in values ? values.word : lab.get("word");
    if (next.target === "given" && !given) { word.focus(); return; } // asked when it is typed
    lab.set(values, "text" in values || !known(next.target, next.mode, given));
    if (known(next.target, next.mode, given)) refresh();
  }

  // --- one facet a network

  const facets = lab.get("about").networks.map((network, k) => {
    const head = make("div", { class: "nl-facet-head" });
    const number = make("div", { class: "nl-facet-number" });
    const text = textView({
      label: `${network.label}: arrow keys choose a character, Enter locks it`,
      hover: (t) => point(t === null && lab.get("locked") ? lab.get("at") : t, false),
      select: (t) => point(t, true),
      lock: (t) => hold(!(lab.get("locked") && t === lab.get("at")), t),
    });
    const swatch = make("span", { class: "nl-swatch", style: `background:${network.colour}` });
    const name = make("h3", {}, swatch, network.label);
    return { k, head, number, text, node: make("div", { class: "nl-facet" }, make("div", { class: "nl-facet-top" }, name, head), text.node, number) };
  });
  const columns = make("div", { class: "nl-facets" }, ...facets.map((facet) => facet.node));
  lab.body.append(make("div", { class: "nl-controls" }, target, which, mode, kind, lock), hint, bar, columns, lab.needsPython(yours));

  // --- the shared character, and the one whose number is read

  function point(t, aloud) {
    if (t === null) return;
    if (lab.get("locked")) cursor = t;
    else if (t === lab.get("at") && t === cursor) return;
    else { cursor = t; lab.set({ at: t }); }
    draw();
    if (aloud) lab.say(spoken());
  }

  function hold(locked, t = lab.get("at")) {
    cursor = t;
    lab.set({ locked, at: t });
    lock.show(locked);
    draw();
    lab.say(`${locked ? "Locked" : "Unlocked"}. ${spoken()}`);
  }

  const nameOf = (t) => (about.symbols[t] === " " ? "the space" : `“${visible(about.symbols[t])}”`);
  const back = (t) => (t === lab.get("at") ? "itself" : `${lab.get("at") - t} back`);

  /** What is asked at the shared character, in words. */
  function asked(k) {
    const at = lab.get("at"), name = matrix.targets[k][at], p = matrix.p[k * about.symbols.length + at];
    if (name) return `target: ${name}, ${percent(p)}`;
    return about.word[at] && lab.get("target") === "true" ? `“${about.word[at]}” is not in its vocabulary: ask for the likeliest` : "nothing to ask for here";
  }

  function spoken() {
    const networks = about.networks.map(({ label, predictions }, k) => `${label}: ${asked(k)}; likeliest ${predictions[lab.get("at")][0]}; ${sentenceOf(k)}`);
    return `${nameOf(cursor)}${about.word[cursor] ? `, in ${about.word[cursor]}` : ""}. ${networks.join(". ")}`;
  }

  let rows = [];
  /** The number at the cursor; where that is the shared character itself, the strongest one. */
  function sentenceOf(k) {
    const values = rows[k];
    if (!values) return "";
    const largest = largestOf(values);
    if (largest === 0) return "depends on nothing";
    const reading = lab.get("locked") && cursor !== lab.get("at");
    const place = reading ? cursor : values.findIndex((value) => Math.abs(value) === largest);
    if (reading && place > lab.get("at")) return `${nameOf(place)} comes after it: 0`;
    const share = percent(Math.abs(values[place]) / largest);
    const what = `${nameOf(place)}, ${back(place)}: ${number(values[place])}`;
    return reading ? `${what}, ${share} of its largest` : `strongest: ${what}`;
  }

  // --- drawing

  function refresh() {
    about = lab.get("about");
    const shown = lab.get("matrices")[key(lab.get("target"), lab.get("mode"), lab.get("word"))];
    if (!shown) return;
    const [p, largest] = [shown.p, shown.largest].map((each) => numbers(each, "f4")), shares = numbers(shown.shares, "f2");
    matrix = { targets: shown.targets, p, largest, shares, wide: shares.length / largest.length };
    if (lab.get("at") >= about.symbols.length) lab.set({ at: about.symbols.length - 1 });
    cursor = lab.get("at");
    for (const { text } of facets) text.show(about.symbols);
    target.show(lab.get("target"));
    mode.show(lab.get("mode"));
    word.value = lab.get("word");
    own.value = lab.get("text");
    which.hidden = lab.get("target") !== "given";
    draw();
  }

  const titles = {
    row: "share of each network's own largest", figure: "share of the largest of all networks",
    log: `share of the largest of all, logarithmic: 0 is 1 in ${10 ** DECADES} or less`,
  };
  const hints = {
    free: "Point at a character, or walk with the arrow keys: every network's text shows what its prediction there depends on. A click or Enter locks the character.",
    held: "Locked: point at other characters, or walk with the arrow keys, to read their numbers. A click or Enter on the locked one frees it; a click on another locks that.",
  };

  function draw() {
    if (!matrix) return;
    const at = lab.get("at"), held = lab.get("locked");
    rows = facets.map(({ k }) => connectivityRow(matrix, k, at, about.symbols.length));
    const shades = shadesOf(rows, lab.get("scale"));
    const signed = rows.some((values) => values?.some((value) => value < 0));
    const colours = scale(signed ? "diverging" : "strength", 1);
    for (const { k, head, number: line, text } of facets) {
      text.paint((t) => ({
        shade: shades[k] && t <= at ? colours.shade(shades[k][t]) : "",
        mark: t === at ? "at" : t > at ? "beyond" : "",
      }));
      text.select(cursor);
      const { predictions, probabilities } = about.networks[k];
      const words = predictions[at].map((name, r) => make("li", {}, make("b", {}, visible(name)), ` ${percent(probabilities[at][r])}`));
      head.replaceChildren(make("ol", { class: "nl-words", "aria-label": "likeliest" }, ...words), make("span", { class: "nl-quiet" }, asked(k)));
      line.textContent = sentenceOf(k);
    }
    bar.show(colours, titles[lab.get("scale")]);
    hint.textContent = held ? hints.held : hints.free;
  }

  // --- links in the text around

  function follow(hash) {
    const t = linked(hash, about);
    if (t === null) return false;
    hold(true, t);
    columns.classList.remove("nl-flash");
    void columns.offsetWidth; // so that the animation starts anew
    columns.classList.add("nl-flash");
    const box = columns.getBoundingClientRect();
    if (box.top < 0 || box.bottom > innerHeight) columns.scrollIntoView({ block: "nearest" });
    return true;
  }
  const clicked = (event) => {
    const link = event.target.closest?.('a[href*="#connectivity-"]');
    if (link && follow(new URL(link.href).hash)) event.preventDefault();
  };
  document.addEventListener("click", clicked, true);
  lab.ended(() => document.removeEventListener("click", clicked, true));

  lab.watch(["matrices", "text", "target", "word", "mode"], settled(refresh, 0)); // several change together
  lab.watch(["at", "scale", "locked"], () => { kind.show(lab.get("scale")); lock.show(lab.get("locked")); draw(); });
  refresh();
  if (lab.alone) follow(location.hash);
  return draw;
}
