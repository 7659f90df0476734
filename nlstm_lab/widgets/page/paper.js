// What a paper takes from a widget: the caption, the citation and the call that draws what is shown, and the picture.

/** A value as Python writes it. */
function literal(value) {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  return typeof value === "object" ? `[${value.map(literal).join(", ")}]` : JSON.stringify(value);
}

/** A folded panel, whose texts are made anew when it is opened and are copied by a click. */
function paperOf(model, alone) {
  const about = model.get("paper") ?? {};
  if (!about.snippet) return null;
  const known = Object.values(about.runs), run = () => about.runs[model.get("run")] ?? (known.length === 1 ? known[0] : undefined);
  const networks = () => (known.length ? `{${Object.entries(about.runs).map(([name, { load }]) => `${literal(name)}: ${load}`).join(", ")}}` : "networks");
  const calls = { load: () => run()?.load ?? "network", networks };
  const filled = (template, write) => template.replace(/\{(\w+)\}/g, (_, name) => calls[name]?.() ?? write(model.get(name)));
  const short = (value) => { const words = Array.isArray(value) ? value.join(", ") : String(value ?? "as trained"); return words.length > 100 ? `${words.slice(0, 99)}…` : words; };
  const caption = () => {
    const commits = run() ? [run().commit] : known.map(({ commit }) => commit);
    const trained = [...new Set(commits)].filter(Boolean);
    return `${filled(about.caption, short)}${trained.length ? ` Trained at commit ${trained.join(", ")}.` : ""} nlstm_lab ${about.version}.`;
  };
  const plain = (words) => words.replace(/[\\{}$&#%_^~]/g, (sign) => ({ "\\": "\\textbackslash{}", "^": "\\^{}", "~": "\\~{}" })[sign] ?? `\\${sign}`);
  const bibtex = () => `@misc{nlstm_lab,\n  author = {{The nlstm\\_lab developers}},\n  title = {${plain(about.title)}},\n  howpublished = {nlstm\\_lab, version ${about.version}},\n  note = {${plain(caption())}},\n  year = {2026}\n}`;
  const texts = { Caption: caption, BibTeX: bibtex, Python: () => `import nlstm_lab as lab\nfigure = ${filled(about.snippet, literal)}` };

  const rows = Object.entries(texts).map(([name, text]) => {
    const box = make("textarea", { readonly: true, spellcheck: "false" });
    const copy = button("Copy", async () => {
      box.select();
      try { await navigator.clipboard.writeText(box.value); } catch { document.execCommand("copy"); } // from a file there is no clipboard
      copy.textContent = "Copied";
    }, { "aria-label": `copy ${name}` });
    const node = labelled(name, box, copy);
    node.classList.add("nl-wide");
    return { node, fill: () => { box.value = text(); box.rows = box.value.split("\n").length > 2 ? 7 : 2; node.hidden = !box.value; copy.textContent = "Copy"; } };
  });
  const picture = make("a", { download: `${about.title.replaceAll(" ", "_")}.png`, hidden: true }, "Picture (PNG) of what was shown last");
  const show = () => {
    const bytes = model.get("picture");
    picture.hidden = !bytes?.byteLength;
    if (bytes?.byteLength) picture.href = URL.createObjectURL(new Blob([bytes], { type: "image/png" }));
  };
  const fill = () => { rows.forEach((row) => row.fill()); show(); };
  const node = make("details", { class: "nl-yours", toggle: () => { if (node.open) { fill(); if (!alone) model.send("picture"); } } },
    make("summary", {}, "Copy for a paper"), ...rows.map((row) => row.node), picture);
  node.caption = caption;
  node.show = show;
  return node;
}
