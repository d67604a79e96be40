// Sorts a table at a click on a head. Without this script, the page has the same contents.
"use strict";

const words = new Intl.Collator("en", { numeric: true });

function compare(a, b, sign) {
  const [one, two] = [a.dataset.order, b.dataset.order];
  if (one !== undefined && two !== undefined) return sign * (one - two);
  if (one !== two) return one === undefined ? 1 : -1; // cells without a number come last
  return sign * words.compare(a.textContent, b.textContent);
}

for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: head.textContent });
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.ariaSort === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...table.tBodies[0].rows];
      rows.sort((one, two) => compare(one.cells[column], two.cells[column], down ? -1 : 1));
      table.tBodies[0].append(...rows);
    });
  });
}
