"use strict";

// Sorting: each header of a sortable table becomes a button; one click sorts upwards, the next downwards.
// Cells that hold no value stay at the end either way. Without this script the tables read as they are.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  if (body.rows.length < 2) continue;
  const headers = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  const original = [...body.rows];

  const sort = (header) => {
    const column = headers.indexOf(header);
    const upwards = header.getAttribute("aria-sort") !== "ascending";
    const numeric = header.dataset.sort === "number";
    const key = (row) => {
      const text = row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
      return numeric ? (text === "" ? NaN : Number(text)) : text;
    };
    const empty = (value) => (numeric ? Number.isNaN(value) : value === "");
    const order = (a, b) => (numeric ? a - b : a.localeCompare(b, "en", { numeric: true }));
    const rows = original.map((row) => [key(row), row]);
    rows.sort(([a], [b]) =>
      empty(a) || empty(b) ? Number(empty(a)) - Number(empty(b)) : upwards ? order(a, b) : order(b, a));
    for (const other of headers.filter((other) => other.dataset.sort)) other.setAttribute("aria-sort", "none");
    header.setAttribute("aria-sort", upwards ? "ascending" : "descending");
    body.append(...rows.map(([, row]) => row));
  };

  for (const header of headers.filter((header) => header.dataset.sort)) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    button.addEventListener("click", () => sort(header));
    header.append(button);
    header.setAttribute("aria-sort", "none");
  }
}

// Paper cannot be unfolded: print what is collapsed, and fold it again afterwards.
const folded = [];
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details:not([open])")) {
    details.open = true;
    folded.push(details);
  }
});
addEventListener("afterprint", () => {
  for (const details of folded.splice(0)) details.open = false;
});
