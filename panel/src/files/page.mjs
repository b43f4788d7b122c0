// Times in the viewer's zone, and keys of lists. Pages work without it.

import { showZone } from "./zone.mjs";

function isTyping(target) {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName));
}

function move(step) {
  const links = [...document.querySelectorAll("tr[data-row] a:first-of-type")];
  if (links.length === 0) return;
  const here = links.findIndex((link) => link.closest("tr").contains(document.activeElement));
  const next = here < 0 ? (step > 0 ? 0 : links.length - 1) : here + step;
  links[Math.max(0, Math.min(links.length - 1, next))].focus();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  if (event.key === "j") move(1);
  else if (event.key === "k") move(-1);
  else if (event.key === "/") {
    const search = document.querySelector("input[type=search]");
    if (!search) return;
    event.preventDefault();
    search.focus();
    search.select();
  }
});

showZone(document);
