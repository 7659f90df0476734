// What the widgets share that read texts with one of several runs.

const TYPING = 40; // ms of silence after which a text that is being typed is read

/** The choice of a run by its label, and a button that shows the same network with the other initialization. */
function runChoice(lab) {
  const ask = (run) => lab.set({ run }, true);
  const run = selection("Run", [], null, ask);
  const twin = () => lab.get("titles")[lab.get("run")]?.twin;
  const other = button("", () => ask(twin()));
  const node = lab.needsPython(make("div", { class: "nl-run" }, run, other));
  node.update = () => {
    const titles = lab.get("titles");
    run.offer(lab.get("runs").map((name) => [name, titles[name]?.label ?? name]), lab.get("run"));
    other.hidden = !twin();
    other.textContent = twin() ? `show ${titles[twin()].label.split(", ")[1]}` : "";
  };
  node.update();
  return node;
}

/** A box for a text that Python reads. */
function textBox(lab, label, trait, rows = 2) {
  const box = make("textarea", { rows, spellcheck: "false", input: () => lab.set({ [trait]: box.value }, true, TYPING) });
  const node = labelled(label, box);
  node.classList.add("nl-wide");
  node.update = () => { if (document.activeElement !== box || lab.get(trait) !== box.value) box.value = lab.get(trait); };
  node.update();
  return lab.needsPython(node);
}
