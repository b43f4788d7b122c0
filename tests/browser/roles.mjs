// The view and the rights of each role and a foreign tenant, on every page reachable by links.

import { until } from "./engine.mjs";
import { Visitor } from "./visit.mjs";

const READING = ["Home", "Calls", "Live", "Rooms", "Phones", "Settings"];
const ALL = ["Home", "Calls", "Live", "Rooms", "Phones", "Trunks", "Settings"];
const DIRECTORY = ["Extensions", "Numbers", "Teams", "Agents", "Organisations"];
const MANAGED = [...DIRECTORY, "Rooms", "Users", "Keys", "Webhooks", "Prices"];

/** For each role: the sections, the lists of the settings, and the rights that differ. */
const ROLES = {
  // The first, because it sees most.
  operator: { sections: [...ALL, "Nodes"], lists: [...MANAGED, "Carrier prices", "Exchange rates", "AI prices", "Prompts"], controls: true, manages: true, sells: true },
  agent: { sections: READING, lists: DIRECTORY, controls: false, manages: false, team: true },
  supervisor: { sections: READING, lists: DIRECTORY, controls: true, manages: false, team: true },
  admin: { sections: ALL, lists: [...MANAGED, "AI prices", "Prompts"], controls: true, manages: true },
  foreign: { sections: ALL, lists: [...MANAGED, "AI prices", "Prompts"], controls: true, manages: true, elsewhere: true },
};

export async function roles(browser, engine, world, findings) {
  const inspected = new Set();
  for (const [who, role] of Object.entries(ROLES)) {
    const visitor = await (await Visitor.open(browser, engine, findings, who)).logIn();
    await navigation(visitor, role, findings);
    await scope(visitor, role, world, findings);
    await rights(visitor, role, world, findings);
    await everyPage(visitor, inspected);
    await visitor.close();
  }
}

async function navigation(visitor, role, findings) {
  const { page, who } = visitor;
  findings.same(visitor.here, "/", `${who}: the page after the login`);
  const links = (name) => page.getByRole("navigation", { name }).getByRole("link").allInnerTexts();
  findings.same(await links("Sections"), role.sections, `${who}: the sections`);
  await visitor.open("/settings");
  findings.same(await links("Lists"), role.lists, `${who}: the lists of the settings`);
}

/** The calls, rooms and phones that are shown. */
async function scope(visitor, role, world, findings) {
  const { page, who } = visitor;
  const sees = { support: !role.elsewhere, sales: !role.elsewhere && !role.team, refused: !role.elsewhere && !role.team };
  await visitor.open("/calls");
  for (const [call, isSeen] of Object.entries(sees)) {
    findings.same(await page.locator(`a[href="/calls/${world[call]}"]`).count() > 0, isSeen, `${who} /calls: lists the call of ${call}`);
  }
  for (const [call, isSeen] of Object.entries(sees)) {
    const answer = await visitor.open(`/calls/${world[call]}`, isSeen ? 200 : 403);
    findings.same((await answer.text()).includes("Ended by"), isSeen, `${who}: the page of the call of ${call} shows it`);
  }
  await visitor.open("/live");
  findings.same(await page.locator(`a[href="/live/calls/${world.live}"]`).count(), role.elsewhere ? 0 : 1, `${who} /live: lists the live call`);
  findings.same(await page.locator(`a[href="/live/rooms/${world.room}"]`).count(), role.elsewhere ? 0 : 1, `${who} /live: lists the live room`);
  await visitor.open(`/live/calls/${world.live}`, role.elsewhere ? 403 : 200);
  await visitor.open(`/live/rooms/${world.room}`, role.elsewhere ? 403 : 200);
  // Stored rooms belong to the organisation, not to a team.
  await visitor.open(`/rooms/${world.storedRoom}`, role.elsewhere || role.team ? 403 : 200);
  await visitor.open("/phones");
  findings.same(await page.getByRole("link", { name: "1005", exact: true }).count(), role.elsewhere ? 0 : 1, `${who} /phones: lists 1005`);
}

/** Controls and responses for users with and without the right to change something. */
async function rights(visitor, role, world, findings) {
  const { page, who } = visitor;
  await visitor.open("/live");
  const shown = await page.getByText("Hang up", { exact: true }).count();
  findings.same(shown > 0, role.controls && !role.elsewhere, `${who} /live: can end a call`);
  const refused = role.controls ? (role.elsewhere ? 403 : undefined) : 403;
  const csrf = await visitor.token();
  const changes = [`/live/calls/${world.live}/hang-up`, `/live/calls/${world.live}/note`, `/live/rooms/${world.room}/end`, `/live/rooms/${world.room}/mute-all`, `/live/rooms/${world.room}/members/${world.member("1001")}/kick`];
  for (const path of refused ? changes : []) {
    findings.same(await visitor.status(path, { csrf, title: "x", level: "info" }), refused, `${who}: POST ${path}`);
  }
  // Without the token of the session no change is carried out, whatever the role.
  for (const path of changes) findings.same(await visitor.status(path, { csrf: "0".repeat(64) }), 403, `${who}: POST ${path} with a wrong token`);
  const managed = { "/trunks": 200, "/settings/users": 200, "/settings/api-keys": 200, "/settings/webhooks": 200, "/settings/users/new": 200, "/settings/teams/new": 200 };
  for (const path of Object.keys(managed)) findings.same(await visitor.status(path), role.manages ? 200 : 403, `${who} ${path}`);
  for (const path of ["/settings/sell-rates/new", "/settings/cost-rates", "/nodes"]) findings.same(await visitor.status(path), role.sells ? 200 : 403, `${who} ${path}`);
  findings.same(await visitor.status(`/settings/webhooks/${world.webhook}`), role.manages && !role.elsewhere ? 200 : 403, `${who}: the webhook of Acme`);
  if (!role.manages) findings.same(await visitor.status("/settings/teams/new", { csrf, name: "spies" }), 403, `${who}: POST /settings/teams/new`);
  findings.same(await visitor.status("/settings/nothing"), 404, `${who} /settings/nothing`);
  findings.same(await visitor.status(`/calls/00000000-0000-0000-0000-000000000009`), 404, `${who}: a call that does not exist`);
}

/** Follows links from the start page, each kind of page twice; no link leads to an error. */
async function everyPage(visitor, inspected) {
  const { page, findings, who, engine } = visitor;
  const [open, seen, kinds] = [["/"], new Set(), new Map()];
  while (open.length > 0) {
    const path = open.shift();
    const kind = kindOf(path);
    if (seen.has(path) || (kinds.get(kind) ?? 0) >= 2) continue;
    seen.add(path);
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    const answer = await page.goto(path);
    if (!findings.expect(answer.status() === 200, `${who} ${path}: a link leads to status ${answer.status()}`)) continue;
    // The first user who sees a kind of page sees most of it.
    if (!inspected.has(kind)) await visitor.inspect({ name: kind });
    inspected.add(kind);
    const links = await page.locator("a[href]:not([download])").evaluateAll((links) => links.map((link) => link.href));
    for (const link of links) {
      const url = new URL(link);
      const isFile = /\/(export|signalling|trace|recording|sound|report)$/.test(url.pathname) || url.pathname.startsWith("/api/");
      if (url.origin === engine.origin && !isFile) open.push(url.pathname + url.search);
    }
  }
  findings.expect(kinds.size >= 12, `${who}: only ${kinds.size} kinds of pages were found`);
}

/** The address of a page without the parts that differ between pages of its kind. */
function kindOf(path) {
  return path.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, ":id").replace(/\?.*/, "?");
}
