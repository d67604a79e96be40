// Tables are sorted by a click on a head; without this script they stay as they were measured.
"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...table.tBodies[0].rows];
      table.tBodies[0].append(...rows.sort((one, two) => compare(one, two, column, down ? -1 : 1)));
    });
  });
}
function compare(one, two, column, sign) {
  const [a, b] = [one.cells[column], two.cells[column]];
  const [x, y] = [a.dataset.order, b.dataset.order];
  if (x !== undefined && y !== undefined) return sign * (x - y);
  if (x !== undefined || y !== undefined) return x === undefined ? 1 : -1; // what has no number is last
  return sign * a.textContent.trim().localeCompare(b.textContent.trim(), "en", { numeric: true });
}
