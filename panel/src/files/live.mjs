// Keeps the parts of a page marked `data-live` up to date: after an event it fetches the page again.

import { showZone } from "./zone.mjs";

/** The first event causes an immediate fetch, later ones keep this distance; pages of one room or call are smaller. */
const PAUSE_MS = { list: 1000, one: 250 };
const AT_ONCE_MS = 50;
const AT_LEAST_EVERY_MS = 5000;
const parts = () => [...document.querySelectorAll("[data-live]")];
let due = null;
let last = 0;
let reading = false;
let again = false;

/** Whether the user is about to act on a part, which must not change under the pointer. */
function isInUse(part) {
  return part.matches(":active") || part.querySelector("details[open]") !== null || /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName ?? "");
}

/** The action of a control, by which the same control is found after an update. */
function place(control) {
  return control.closest("form")?.getAttribute("action") ?? control.getAttribute("href");
}

async function read() {
  due = null;
  last = Date.now();
  if (reading) {
    again = true;
    return;
  }
  reading = true;
  try {
    const answer = await fetch(location.href, { credentials: "same-origin" });
    // The session expired, or the room or the call has ended. A record that is not stored yet is requested again.
    if (answer.redirected ? answer.ok : answer.status === 404) {
      location.reload();
      return;
    }
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of parts()) {
      const other = fresh.getElementById(part.id);
      if (other && !isInUse(part)) {
        showZone(other);
        if (other.innerHTML === part.innerHTML) continue;
        const here = part.contains(document.activeElement) ? place(document.activeElement) : null;
        part.replaceChildren(...other.childNodes);
        if (here) [...part.querySelectorAll("a, button")].find((found) => place(found) === here)?.focus();
      }
    }
  } catch {
    // The next event or the timer fetches again.
  } finally {
    reading = false;
    if (again) {
      again = false;
      readSoon();
    }
  }
}

function readSoon() {
  const pause = location.pathname === "/live" ? PAUSE_MS.list : PAUSE_MS.one;
  due ??= setTimeout(read, Math.max(AT_ONCE_MS, last + pause - Date.now()));
}

const first = parts()[0];
if (first) {
  // The stream begins with the events since the page was requested, so none is missed while the page loads.
  const { live, since } = first.dataset;
  const source = new EventSource(`/panel/events?events=${encodeURIComponent(live)}&since=${encodeURIComponent(since)}`);
  for (const kind of first.dataset.kinds.split(" ")) source.addEventListener(kind, readSoon);
  setInterval(readSoon, AT_LEAST_EVERY_MS);
}
