// What surrounds every widget: title, controls, a sentence for errors, progress that can be cancelled.

const SOON = 250; // ms after which an answer is waited for visibly
const LONG = 6000; // ms after which one wonders whether Python is there

/**
 * Start a widget in `el`: `render(lab)` fills lab.body and returns redraw, which is called when the theme changes.
 * Returns what ends it.
 *   lab.get(name)            a trait's value
 *   lab.set(values, ask, ms) change traits; with ask, Python computes from them, ms after the last of a burst
 *   lab.waiting()            whether Python owes an answer
 *   lab.send(message)        a word to Python, unless there is none
 *   lab.watch(names, f)      call f when Python changes one of them
 *   lab.alone                whether this is a page without Python
 *   lab.own                  whether it has networks of its own, with which lab.local() computes what Python would
 *   lab.receive(values)      results of that
 *   lab.needsPython(node)    disable a control's inputs where there is no Python
 *   lab.say(sentence)        what a screen reader says
 *   lab.hint(sentence)       what a new user may do
 *   lab.note(node)           below the body
 *   lab.ended(f)             call f when the widget goes
 */
function start(model, el, render) {
  const alone = model.get("_alone") === true, own = alone && Boolean(model.get("networks"));
  const ends = [];
  const error = make("div", { class: "nl-error", role: "alert", hidden: true });
  const notice = make("p", { class: "nl-quiet", role: "status", hidden: true });
  const doing = make("span", {});
  const bar = make("progress", { max: 1, "aria-label": "progress" });
  const progress = make("div", { class: "nl-progress", hidden: true }, bar, doing, button("Cancel", () => model.send("cancel")));
  const heard = make("div", { class: "nl-heard", "aria-live": "polite" });
  const body = make("div", { class: "nl-body" });
  const notes = make("div", { class: "nl-notes" });
  const messages = make("div", { class: "nl-messages" }, error, notice);
  const focused = (event) => {
    // JupyterLab hears keys first, and arrow keys move its cells, unless the element in focus says otherwise
    event.target.setAttribute("data-lm-suppress-shortcuts", "true");
    // what is said of a text stands below the field in which it is typed
    const field = event.target.closest('textarea:not([readonly]), input[type="text"]');
    const place = field?.closest(".nl-controls, .nl-yours") ?? field?.closest(".nl-control");
    if (place && place.nextSibling !== messages) place.after(messages);
  };
  const root = make("section", { class: "nl-widget", focusin: focused }, messages, body, progress, notes, heard);
  el.replaceChildren(root);

  const listen = (name, f) => {
    model.on(`change:${name}`, f);
    ends.push(() => model.off(`change:${name}`, f));
  };

  let waited = null, timer = null, setting = false;
  const waiting = () => !alone && (timer !== null || model.get("asked") !== model.get("answered"));
  const status = () => {
    error.textContent = model.get("error") ?? "";
    error.hidden = !error.textContent;
    root.toggleAttribute("data-failed", !error.hidden); // what is shown is of another question
    notice.textContent = model.get("notice") ? `The text was ${model.get("notice")}.` : "";
    notice.hidden = !notice.textContent || !error.hidden;
    const report = model.get("progress") ?? {};
    if (!waiting()) { waited = null; progress.hidden = true; root.removeAttribute("aria-busy"); return; }
    root.setAttribute("aria-busy", "true");
    if (waited === null) {
      const mine = (waited = {});
      setTimeout(() => { if (waited === mine) progress.hidden = false; }, SOON);
      setTimeout(() => { if (waited === mine && !("share" in (model.get("progress") ?? {}))) doing.textContent = "Waiting for Python: is the kernel running, or busy with a cell?"; }, LONG);
    }
    if ("share" in report) { bar.value = report.share; doing.textContent = report.doing; }
    else { bar.removeAttribute("value"); doing.textContent = "Computing …"; }
  };
  for (const name of ["error", "notice", "progress", "answered", "asked"]) listen(name, status);

  const send = () => { timer = null; model.set("asked", (model.get("asked") ?? 0) + 1); model.save_changes(); status(); };
  const lab = {
    alone, own, root, body, waiting,
    get: (name) => model.get(name),
    set(values, ask = false, delay = 0) {
      setting = true; // who sets knows
      for (const [name, value] of Object.entries(values)) model.set(name, value);
      setting = false;
      if (alone) {
        if (ask && own) { clearTimeout(timer); timer = setTimeout(() => lab.local(), delay); }
        return;
      }
      model.save_changes(); // at once, or the kernel's echo of an older value would be taken for news
      if (!ask) return;
      clearTimeout(timer);
      timer = setTimeout(send, delay);
      status();
    },
    watch: (names, f) => names.forEach((name) => listen(name, () => setting || f())),
    needsPython(node) {
      if (!alone || own) return node;
      for (const control of [node, ...node.querySelectorAll("input, select, textarea, button")]) {
        if ("disabled" in control) control.disabled = true;
      }
      node.title = "This needs Python: open the notebook in JupyterLab.";
      node.classList.add("nl-needs-python");
      if (!notes.dataset.noted) {
        notes.dataset.noted = "yes";
        notes.append(make("p", {}, "This page works without Python. What is greyed out is computed by Python: open the notebook in JupyterLab to change it."));
      }
      return node;
    },
    receive: (values) => Object.entries(values).forEach(([name, value]) => model.set(name, value)),
    send: (message) => alone || model.send(message),
    say: settled((sentence) => { heard.textContent = sentence; }, 150),
    hint: (sentence) => body.append(make("p", { class: "nl-hint" }, sentence)),
    note: (node) => notes.append(node),
    ended: (f) => ends.push(f),
  };
  let redraw = () => {};
  ends.push(followTheme(root, () => redraw()));
  redraw = render(lab) ?? redraw;
  const paper = paperOf(model, alone);
  if (paper) {
    notes.before(paper);
    listen("picture", paper.show);
    const caption = make("p", {}, alone ? paper.caption() : "");
    notes.append(caption);
    for (const name of Object.keys(model.get("_looks") ?? {})) listen(name, () => { caption.textContent = paper.caption(); });
  }
  status();
  return () => ends.splice(0).forEach((end) => end());
}
