// A text, one piece a character that the network read, coloured, walked through with pointer and keys.

/**
 * A text of `symbols` (one string a step). Options: label (what a screen reader calls it), hover(step or null),
 * select(step), lock(step): a click, Enter or the space bar; span(first, last): dragged over, or Shift and arrow keys.
 * Methods: show(symbols); paint(step => {shade, mark}); select(step) moves the frame; node.
 */
function textView({ label, hover = () => {}, select = () => {}, lock = () => {}, span = null }) {
  const node = make("div", {
    class: "nl-text", role: "listbox", tabindex: "0", "aria-label": label, dir: "auto",
    pointerover: (event) => { const at = stepOf(event.target); if (at !== null) { hover(at); if (event.buttons === 1) extend(at); } },
    pointerdown: (event) => { anchor = stepOf(event.target); dragged = false; if (span && event.pointerType === "mouse") event.preventDefault(); node.focus({ preventScroll: true }); },
    pointerleave: () => hover(null),
    click: (event) => { const at = stepOf(event.target); if (at !== null && !dragged) { choose(at); lock(at); } },
    keydown: key,
  });
  let pieces = [], symbols = [], selected = null, anchor = null, dragged = false;

  function extend(at) {
    if (!span || anchor === null || at === anchor) return;
    dragged = true;
    span(Math.min(anchor, at), Math.max(anchor, at));
  }

  function stepOf(target) {
    const piece = target.closest?.("[data-step]");
    return piece && node.contains(piece) ? Number(piece.dataset.step) : null;
  }

  function choose(at) {
    mark(at);
    pieces[selected]?.scrollIntoView({ block: "nearest" });
    select(at);
  }

  function mark(at) {
    if (selected !== null && pieces[selected]) pieces[selected].setAttribute("aria-selected", "false");
    selected = at === null || !pieces.length ? null : Math.max(0, Math.min(pieces.length - 1, at));
    if (selected === null) { node.removeAttribute("aria-activedescendant"); return; }
    pieces[selected].setAttribute("aria-selected", "true");
    node.setAttribute("aria-activedescendant", pieces[selected].id);
  }

  function word(from, way) {
    const space = (k) => /\s/u.test(symbols[k] ?? " ");
    let at = from + way;
    while (at > 0 && at < symbols.length && !(space(at - 1) && !space(at))) at += way;
    return at;
  }

  function line(from, way) {
    const here = pieces[from].getBoundingClientRect();
    let best = from, nearest = Infinity, row = null;
    for (let at = from + way; at >= 0 && at < pieces.length; at += way) {
      const there = pieces[at].getBoundingClientRect();
      if (Math.abs(there.top - here.top) < here.height / 2) continue;
      row ??= there.top;
      if (Math.abs(there.top - row) > here.height / 2) break;
      const distance = Math.abs(there.left - here.left);
      if (distance < nearest) { nearest = distance; best = at; }
    }
    return best;
  }

  function key(event) {
    if (!pieces.length || event.altKey || event.metaKey) return;
    const from = selected ?? 0;
    const rightToLeft = getComputedStyle(node).direction === "rtl" ? -1 : 1;
    const moves = {
      ArrowRight: () => (event.ctrlKey ? word(from, rightToLeft) : selected === null ? 0 : from + rightToLeft),
      ArrowLeft: () => (event.ctrlKey ? word(from, -rightToLeft) : from - rightToLeft),
      ArrowDown: () => line(from, 1),
      ArrowUp: () => line(from, -1),
      Home: () => 0,
      End: () => pieces.length - 1,
    };
    if (!event.shiftKey) anchor = null;
    else anchor ??= from;
    if (event.key in moves) {
      choose(Math.max(0, Math.min(pieces.length - 1, moves[event.key]())));
      if (event.shiftKey) extend(selected);
    }
    else if (event.key === "Enter" || event.key === " ") lock(from);
    else return;
    event.preventDefault();
    event.stopPropagation(); // JupyterLab would move between cells
  }

  return {
    node,
    show(shown) {
      symbols = shown;
      const stem = unique("step");
      pieces = symbols.map((symbol, step) =>
        make("span", { id: `${stem}-${step}`, role: "option", "data-step": step, "aria-selected": "false",
          "aria-label": symbol === " " ? "space" : symbol === "\n" ? "line end" : null }, symbol === "\n" ? "¶" : symbol));
      const laid = pieces.flatMap((piece, step) => (symbols[step] === "\n" ? [piece, make("br")] : [piece]));
      node.replaceChildren(...laid);
      mark(selected);
    },
    paint(look) {
      pieces.forEach((piece, step) => {
        const { shade = "", mark: marked = "" } = look(step);
        piece.style.backgroundColor = shade;
        piece.style.color = shade ? ink(shade) : "";
        if (piece.dataset.mark !== marked) piece.dataset.mark = marked;
      });
    },
    select: mark,
    mark(first, last) { pieces.forEach((piece, step) => piece.toggleAttribute("data-span", step >= first && step <= last)); },
  };
}
