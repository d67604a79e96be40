// Sorts tables at a click on a head, searches long tables, copies commands, and shows the tooltip of a
// mark below its plot. Without this script, the page has the same contents.
"use strict";

function make(name, text, properties) {
  return Object.assign(document.createElement(name), { textContent: text, ...properties });
}

function keyOf(row, column) {
  const cell = row.cells[column];
  const order = cell.dataset.order;
  return { row, number: order === undefined ? null : Number(order), text: cell.textContent.trim() };
}

const words = new Intl.Collator("en", { numeric: true });

function compare(a, b, sign) {
  if (a.number !== null && b.number !== null) return sign * (a.number - b.number);
  if (a.number !== null || b.number !== null) return a.number === null ? 1 : -1; // cells without a number come last
  return sign * words.compare(a.text, b.text);
}

function makeSortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = make("button", head.textContent, { type: "button" });
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const keys = [...table.tBodies[0].rows].map((row) => keyOf(row, column));
      keys.sort((one, two) => compare(one, two, down ? -1 : 1));
      table.tBodies[0].append(...keys.map((key) => key.row));
    });
  });
}

function makeSearchable(box) {
  const rows = [...box.querySelectorAll("tbody tr")];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const input = make("input", "", { type: "search", placeholder: "opencl, 1000, failed" });
  const shown = make("span", `${rows.length} rows`);
  const label = make("label", "Rows with ", { className: "search" });
  label.append(input, " ", shown);
  box.before(label);
  input.addEventListener("input", () => {
    const searched = input.value.toLowerCase().split(/[\s,]+/).filter(Boolean);
    let count = 0;
    rows.forEach((row, index) => {
      row.hidden = !searched.every((word) => texts[index].includes(word));
      count += row.hidden ? 0 : 1;
    });
    shown.textContent = searched.length ? `${count} of ${rows.length} rows` : `${rows.length} rows`;
  });
}

function makeCopyable(block) {
  const button = make("button", "Copy", { type: "button", className: "copy" });
  block.before(button);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(block.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(block); // the clipboard is not allowed: select the text
      button.textContent = "Selected";
    }
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
}

function showTooltips(figure) {
  const shown = figure.querySelector(".tooltip");
  const show = (event) => {
    const mark = event.target.closest(".mark");
    if (mark) shown.textContent = mark.querySelector("title").textContent;
  };
  figure.addEventListener("pointerover", show);
  figure.addEventListener("click", show);
}

document.querySelectorAll("table.sortable").forEach(makeSortable);
document.querySelectorAll(".scroll.long").forEach(makeSearchable);
document.querySelectorAll("pre.command").forEach(makeCopyable);
document.querySelectorAll("figure").forEach(showTooltips);
const wide = matchMedia("(min-width: 75rem)");
const contents = document.querySelector(".contents");
const unfold = () => (contents.open = wide.matches);
wide.addEventListener("change", unfold);
unfold();
