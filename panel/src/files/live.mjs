// Keeps the parts of a page marked `data-live` as the server has them: an event is a nudge to read the page again.

import { showZone } from "./zone.mjs";

const PAUSE_MS = 250;
const AT_LEAST_EVERY_MS = 5000;
const parts = () => [...document.querySelectorAll("[data-live]")];
let due = null;
let reading = false;
let again = false;

/** Whether the user is about to act on a part, which must not change under the pointer. */
function isInUse(part) {
  return part.querySelector("details[open]") !== null || /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName ?? "");
}

async function read() {
  due = null;
  if (reading) {
    again = true;
    return;
  }
  reading = true;
  try {
    const answer = await fetch(location.href, { credentials: "same-origin" });
    if (answer.redirected) {
      location.reload();
      return;
    }
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of parts()) {
      const other = fresh.getElementById(part.id);
      if (other && !isInUse(part)) {
        showZone(other);
        if (other.innerHTML !== part.innerHTML) part.replaceChildren(...other.childNodes);
      }
    }
  } catch {
    // The next event or the timer reads again.
  } finally {
    reading = false;
    if (again) {
      again = false;
      nudge();
    }
  }
}

function nudge() {
  due ??= setTimeout(read, PAUSE_MS);
}

const first = parts()[0];
if (first) {
  const source = new EventSource(`/panel/events?events=${encodeURIComponent(first.dataset.live)}`);
  for (const kind of first.dataset.kinds.split(" ")) source.addEventListener(kind, nudge);
  setInterval(nudge, AT_LEAST_EVERY_MS);
}
