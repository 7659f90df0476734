// A notebook's tables: numbers and intervals stay on one line, sentences have room. The verdicts' tables: click a column's
// head to sort by it, type or choose a verdict to filter.
for (const cell of document.querySelectorAll(".cell_output td"))
  cell.classList.toggle("nl-sentence", cell.textContent.length > 60);
const WORDS = [["nl-holds", /holds?|match/], ["nl-fails", /fails?|differs?/], ["nl-between", /inconclusive|close/]];
for (const cell of document.querySelectorAll(".nl-sortable td:last-child, .nl-listed td:last-child"))
  cell.replaceChildren(...cell.textContent.split(/(, | \/ )/).map((part) => {
    const word = document.createElement("span");
    word.textContent = part;
    word.className = WORDS.find(([, pattern]) => pattern.test(part))?.[0] ?? "";
    return word;
  }));
for (const table of document.querySelectorAll(".nl-stacked table")) { // on a narrow screen every cell is a line with its label
  const labels = [...table.tHead.rows[0].cells].map((head) => head.textContent);
  for (const row of table.tBodies[0].rows)
    [...row.cells].forEach((cell, k) => {
      if (cell.querySelector("img") || cell.textContent.trim()) cell.dataset.label = labels[k];
    });
}
for (const part of document.querySelectorAll(".nl-sortable")) {
  const rows = () => [...part.querySelectorAll("tbody tr")];
  const box = document.createElement("div");
  box.className = "nl-filter";
  box.innerHTML = `<label>Find <input type="search"></label>
    <label>Verdict <select><option value="">all</option></select></label>`;
  part.prepend(box);
  for (const row of rows()) { // a row that goes on with the one above says so once the two may be parted
    const above = row.previousElementSibling;
    for (const k of above && !row.cells[0].textContent.trim() ? [0, 1, 2] : []) {
      if (row.cells[k].textContent.trim()) continue;
      const again = document.createElement("span");
      again.className = "nl-again";
      again.append(...[...above.cells[k].childNodes].map((node) => node.cloneNode(true)));
      row.cells[k].append(again);
    }
  }
  const [find, choose] = [box.querySelector("input"), box.querySelector("select")];
  const verdict = (row) => row.lastElementChild.textContent.trim();
  const words = new Set(rows().flatMap((row) => verdict(row).replace(/\(.*?\)|\d+/g, "").split(",")));
  for (const word of [...words].map((word) => word.trim()).filter(Boolean).sort())
    if (![...choose.options].some((option) => option.text === word)) choose.add(new Option(word));
  const filter = () => {
    part.classList.add("nl-parted");
    for (const row of rows()) {
      const found = row.textContent.toLowerCase().includes(find.value.toLowerCase());
      row.hidden = !found || !verdict(row).includes(choose.value);
    }
  };
  find.addEventListener("input", filter);
  choose.addEventListener("change", filter);
  for (const table of part.querySelectorAll("table"))
    table.querySelectorAll("thead th").forEach((head, column) => {
      const button = document.createElement("button");
      button.append(...head.childNodes);
      head.append(button);
      let down = false;
      button.addEventListener("click", () => {
        down = !down;
        part.classList.add("nl-parted");
        head.ariaSort = down ? "ascending" : "descending";
        const text = (row) => row.cells[column].textContent.trim();
        const body = table.tBodies[0];
        const sorted = [...body.rows].sort((a, b) => text(a).localeCompare(text(b), "en", { numeric: true }));
        body.append(...(down ? sorted : sorted.reverse()));
      });
    });
}

// The gallery: a button copies each text that a paper may take.
for (const text of document.querySelectorAll(".nl-copied pre")) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.setAttribute("aria-label", `copy ${text.previousElementSibling.textContent}`);
  button.addEventListener("click", async () => {
    getSelection().selectAllChildren(text);
    try { await navigator.clipboard.writeText(text.textContent); } catch { document.execCommand("copy"); } // from a folder
    button.textContent = "Copied";
  });
  text.previousElementSibling.append(" ", button);
}
