"use strict";
// Everything can be read without this script; it sorts, filters and opens what a link leads to.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const section = table.closest("section");
  const key = (row, column) => row.cells[column].textContent;
  const number = (text) => (text === "" || text === "–" ? -1 : Number(text.replaceAll(",", "")));
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const numeric = head.classList.contains("n");
    const sort = () => {
      const before = head.getAttribute("aria-sort");
      const down = numeric ? before !== "descending" : before === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...body.rows].sort((a, b) =>
        numeric
          ? number(key(a, column)) - number(key(b, column))
          : key(a, column).localeCompare(key(b, column)));
      body.append(...(down ? rows.reverse() : rows));
    };
    head.tabIndex = 0;
    head.addEventListener("click", sort);
    head.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        sort();
      }
    });
  });
  if (body.rows.length < 2) continue;
  const tools = document.createElement("div");
  const input = document.createElement("input");
  tools.className = "tools";
  input.type = "search";
  input.placeholder = "Filter by number, address, codec…";
  input.setAttribute("aria-label", "Filter rows");
  tools.append(input);
  table.parentElement.before(tools);
  let verdict = null;
  const filter = () => {
    const words = input.value.toLowerCase();
    for (const row of body.rows) {
      const shown = (verdict === null || row.dataset.v === verdict) && row.textContent.toLowerCase().includes(words);
      row.hidden = !shown;
      const link = row.querySelector("a");
      const target = link && document.getElementById(link.hash.slice(1));
      if (target && target.tagName !== "H2") (target.closest("details.call") || target).hidden = !shown;
    }
  };
  input.addEventListener("input", filter);
  const chips = [...section.querySelector(".tally").querySelectorAll(".chip")];
  const buttons = chips.map((chip) => {
    const button = document.createElement("button");
    button.setAttribute("aria-pressed", "false");
    chip.replaceWith(button);
    button.append(chip);
    button.addEventListener("click", () => {
      verdict = verdict === chip.textContent ? null : chip.textContent;
      buttons.forEach((other) => other.setAttribute("aria-pressed", String(verdict !== null && other === button)));
      filter();
    });
    return button;
  });
}
// On paper everything that is said of a call is there; rules and figures stay closed as they are.
let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details.call:not([open]),details.way:not([open])")];
  for (const one of opened) one.open = true;
});
addEventListener("afterprint", () => {
  for (const one of opened) one.open = false;
  opened = [];
});
const open = () => {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  for (let up = target; up; up = up.parentElement) if (up.tagName === "DETAILS") up.open = true;
  if (target) target.scrollIntoView();
};
addEventListener("hashchange", open);
open();
