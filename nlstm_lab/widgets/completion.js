// AutocompleteDemo: every key is sent to Python, the newest alone is answered; a click on a word takes it.

function render(lab) {
  const networks = lab.get("compared");
  const alone = lab.alone;
  let sent = null; // when the key was pressed whose answer is waited for

  // --- the text

  const typed = make("textarea", {
    rows: 3, spellcheck: "false", autocomplete: "off", dir: "auto",
    input: moved, keyup: moved, click: moved,
    keydown: (event) => event.stopPropagation(), // the notebook has keys of its own
  });
  typed.value = lab.get("text");
  const walked = textView({ label: "the text: arrow keys walk along it", hover: () => {}, select: (t) => go(t + 1), lock: () => {} });

  function moved() {
    const text = typed.value, at = [...text.slice(0, typed.selectionStart)].length; // characters, as Python counts
    if (text === lab.get("text") && at === lab.get("at")) return;
    sent = performance.now();
    lab.set({ text, at }, true);
    notice();
  }

  function go(at) {
    lab.set({ at });
    draw();
  }

  /** Put a word in the place of the one that is being typed. */
  function take(word, whole) {
    const before = typed.value.slice(0, typed.selectionStart), after = typed.value.slice(typed.selectionStart);
    const begun = whole ? /\S*$/u.exec(before)[0].length : 0;
    const taken = before.slice(0, before.length - begun) + word + (whole && !/^\s/u.test(after) ? " " : "");
    typed.value = taken + after;
    typed.focus();
    typed.setSelectionRange(taken.length, taken.length);
    moved();
  }

  // --- the words

  const columns = networks.map(({ label, colour, whole }, k) => {
    const list = make("ol", { class: "nl-completions", keydown: (event) => walk(event, k) });
    const read = make("p", { class: "nl-quiet" });
    const head = make("h3", {}, make("span", { class: "nl-swatch", style: `background:${colour}` }), label);
    list.setAttribute("aria-label", `likeliest for ${label}`);
    return { list, read, colour, label, whole, node: make("div", { class: "nl-column" }, head, list, read) };
  });

  /** Arrow keys move among the words, Escape goes back to the text. */
  function walk(event, k) {
    const place = columns[k].buttons.indexOf(document.activeElement);
    const to = { ArrowDown: [k, place + 1], ArrowUp: [k, place - 1], ArrowRight: [k + 1, place], ArrowLeft: [k - 1, place] }[event.key];
    if (event.key === "Escape") typed.focus();
    else if (to) columns[Math.max(0, Math.min(columns.length - 1, to[0]))].buttons[to[1]]?.focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  const status = make("p", { class: "nl-quiet" });
  const hint = make("p", { class: "nl-quiet" }, alone
    ? "Typing needs Python: open the notebook in JupyterLab. This page holds one text; click a character, or walk with the arrow keys, to see what was likeliest up to there."
    : "Type: every network completes the word before the caret. Click a word, or reach it with Tab and the arrow keys, to take it; Escape returns to the text.");
  const field = labelled("Your text", typed);
  field.classList.add("nl-wide");
  lab.body.append(hint, alone ? walked.node : field, make("div", { class: "nl-columns nl-lists" }, ...columns.map(({ node }) => node)),
    make("p", { class: "nl-quiet" }, "The bar is the probability among all that the network can predict: a full bar is 100 %."), status);
  if (alone) walked.show([...lab.get("text")]);

  function draw() {
    const at = alone ? Math.min(lab.get("at"), lab.get("prefixes").length - 1) : lab.get("at"); // a link may say anything
    const found = alone ? lab.get("prefixes")[at] : lab.get("suggestions");
    if (alone) {
      walked.paint((t) => ({ mark: t >= at ? "beyond" : "" }));
      walked.select(at ? at - 1 : null);
    }
    const focus = columns.findIndex(({ list }) => list.contains(document.activeElement));
    const place = focus < 0 ? -1 : columns[focus].buttons.indexOf(document.activeElement);
    found.forEach(({ read, words }, k) => {
      const column = columns[k];
      column.buttons = words.map(([word, p], r) => button("", () => take(word, column.whole), {
        class: "nl-completion", tabindex: r === 0 ? "0" : "-1", "aria-label": `${visible(word)}, ${percent(p)}`, disabled: alone,
      }));
      words.forEach(([word, p], r) => column.buttons[r].append(
        make("span", { class: "nl-completion-bar", style: `width:${100 * p}%;background:${line(column.colour)}` }),
        make("span", { class: "nl-completion-word" }, visible(word)), make("span", {}, percent(p))));
      column.list.replaceChildren(...column.buttons.map((each) => make("li", {}, each)));
      const given = [...lab.get("text")].slice(0, at).join("");
      column.read.textContent = read === given ? "" : `read as “${read}”`;
    });
    if (focus >= 0) columns[focus].buttons[place]?.focus();
    lab.say(found.map(({ words }, k) => `${networks[k].label}: ${words.slice(0, 3).map(([word, p]) => `${visible(word)} ${percent(p)}`).join(", ")}`).join(". "));
  }

  function notice() {
    const long = [...lab.get("text")].length > lab.get("longest");
    status.textContent = long ? `Of a long text the networks read only the last words, up to ${lab.get("longest")} characters.` : "";
  }

  function found() {
    if (typed.value !== lab.get("text")) typed.value = lab.get("text"); // set from Python
    draw();
    notice();
  }

  /** The last key is answered, also where its words are those of the key before. */
  function answered() {
    if (sent === null || lab.waiting()) return;
    notice();
    status.textContent += ` Answered in ${Math.round(performance.now() - sent)} ms.`;
    sent = null;
  }

  lab.watch(["suggestions", "text", ...(alone ? ["at"] : [])], found);
  lab.watch(["answered"], () => setTimeout(answered)); // when all of the answer has arrived
  draw();
  notice();
  return draw;
}
