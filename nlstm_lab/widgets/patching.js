// PatchLab: a row of squares for each memory, one a character of the texts' common end.

const HARDLY = 0.1; // nats: texts that move the preference by less leave nothing to share out

function render(lab) {
  let found = null, hovered = null;
  const name = (memory) => (/(^| )h$/.test(memory) ? `hidden state ${memory}` : lookOf(memory).label);
  const answer = (label, trait) => {
    const control = make("input", { type: "text", size: 1, maxlength: 1, spellcheck: "false", input: () => lab.set({ [trait]: control.value }, true, TYPING) });
    const node = lab.needsPython(labelled(label, control));
    node.update = () => { if (document.activeElement !== control) control.value = lab.get(trait); };
    node.hint = (chosen) => { control.placeholder = visible(chosen); };
    return node;
  };
  lab.hint("Type two texts that differ in a word and end alike. Each square patches one memory of the first run into the second, just before that character: point at one, or click it, to see what is then predicted.");
  const run = runChoice(lab);
  const texts = [textBox(lab, "Clean text", "clean", 1), textBox(lab, "Corrupted text, into which memories are put", "corrupted", 1)];
  const answers = [answer("prefer", "right"), answer("over", "wrong")];
  const likeliest = lab.needsPython(button("Compare the likeliest", () => {
    const { likely } = found, vocabulary = lab.get("vocabulary"), wide = likely.length / (2 + found.patched.length);
    const right = likely[0], wrong = [...likely.slice(wide, 2 * wide)].find((code) => code !== right);
    lab.set({ right: vocabulary[right], wrong: vocabulary[wrong] }, true);
  }, { title: "prefer what is likeliest after the clean text, over what is likeliest after the corrupted one" }));
  const shown = choices("Colour", [["patched", "patched"], ["attributed", "first order"]], lab.get("kind"), (kind) => { lab.set({ kind }); paint(); });
  const shades = legend("", scale("diverging", 1));
  const map = make("div", { class: "nl-squares" }), readout = make("div", { class: "nl-readout" });
  const sentence = make("p", { class: "nl-sum", "aria-live": "polite" });
  lab.body.append(make("div", { class: "nl-controls" }, run, ...answers, likeliest), ...texts,
    make("div", { class: "nl-controls" }, shown, shades), map, sentence, readout);

  function arrived() {
    const symbols = lab.get("symbols"), values = (each) => numbers(lab.get(each), "f4");
    found = { symbols, memories: lab.get("memories"), patched: values("patched"), attributed: values("attributed"), likely: numbers(lab.get("likely"), "i2"), chances: values("chances") };
    found.rows = found.memories.map((memory, row) => {
      const view = textView({
        label: `the common end, coloured by what the ${name(memory)} restores; arrow keys move along it`,
        hover: framed((step) => { hovered = step === null ? null : [row, step]; look(); }),
        select: (step) => { hovered = null; lab.set({ memory: row, step }); look(); lab.say(sentence.textContent); },
      });
      view.show(symbols);
      return view;
    });
    map.replaceChildren(...found.memories.flatMap((memory, row) => [make("h3", {}, name(memory)), found.rows[row].node]));
    [run, ...texts, ...answers].forEach((each) => each.update());
    lab.get("answers").forEach((symbol, k) => answers[k].hint(symbol));
    hovered = null;
    paint();
  }

  const effect = () => lab.get("preferences")[0] - lab.get("preferences")[1];
  const finite = () => lab.get("preferences").every(Number.isFinite);
  /** NaN where the texts hardly differ. */
  const share = (kind, row, step) => (Math.abs(effect()) < HARDLY ? NaN : found[kind][row * found.symbols.length + step] / effect());

  function paint() {
    const all = found.patched.map((value) => Math.abs(value / effect())).filter(Number.isFinite);
    const colours = scale("diverging", Math.max(1, ...all));
    shades.show(colours, "share of the difference in preference that comes back");
    found.rows.forEach((view, row) => view.paint((step) => ({ shade: colours.shade(share(lab.get("kind"), row, step)) })));
    look();
  }

  function look() {
    const within = (name, all) => Math.min(lab.get(name), all.length - 1); // a link may say anything
    const [row, step] = hovered ?? [within("memory", found.memories), within("step", found.symbols)], [right, wrong] = lab.get("answers");
    found.rows.forEach((view, each) => view.select(each === row ? step : null));
    const wide = found.likely.length / (2 + found.patched.length), vocabulary = lab.get("vocabulary");
    const bars = (title, k) => guesses(title, found.likely.slice(k * wide, (k + 1) * wide), found.chances.slice(k * wide, (k + 1) * wide), vocabulary, right);
    const of = (kind) => (Number.isFinite(share(kind, row, step)) ? `${fixed(100 * share(kind, row, step), 0)}\u00a0%` : "no share");
    const [after, before] = lab.get("preferences"), contrast = `“${visible(right)}” over “${visible(wrong)}”`;
    const nats = `${fixed(after, 1)} nats after the clean text, ${fixed(before, 1)} after the corrupted one`;
    sentence.textContent = !finite() ? `There is no share: the preference of ${contrast} is not finite.`
      : Math.abs(effect()) < HARDLY ? `The two texts hardly differ in their preference of ${contrast} (${fixed(after, 2)} and ${fixed(before, 2)} nats), so there is nothing to restore: choose other characters, or compare the likeliest.`
      : `The ${name(found.memories[row])}, put in before “${visible(found.symbols[step])}” (${step + 1} of ${found.symbols.length}), restores ${of("patched")} of the difference in preferring ${contrast} (${nats}); to first order ${of("attributed")}.`;
    readout.replaceChildren(bars("After the clean text", 0), bars("After the corrupted text", 1), bars("Corrupted, this memory patched", 2 + row * found.symbols.length + step));
  }

  lab.watch(["runs", "titles", "run", "clean", "corrupted", "right", "wrong", "answers", "preferences", "symbols", "memories", "patched", "likely", "chances"], settled(arrived, 0));
  lab.watch(["memory", "step", "kind"], framed(() => { shown.show(lab.get("kind")); paint(); }));
  arrived();
  return paint;
}
