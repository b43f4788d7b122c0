// Times in the viewer's zone; their UTC form stays in the title.

const zoned = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium" });

/** Shows every time below `root` in the viewer's zone. */
export function showZone(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (!Number.isNaN(at.getTime())) time.textContent = zoned.format(at);
  }
}
