// Every text that a phone, a carrier, a contact, a program or a webhook chooses is an attack; no page executes one.
//
// The Content Security Policy is switched off in this browser, so that a text that became markup would execute.

import { readFileSync } from "node:fs";

import { PASSWORD } from "./directory.mjs";
import { until } from "./engine.mjs";
import { reports } from "./reports.mjs";
import { SipPhone } from "./sip_phone.mjs";
import { Visitor } from "./visit.mjs";

/** The same corpus as the tests of the panel's HTML: panel/tests/pages/safe_texts.rs. */
export const ATTACKS = JSON.parse(readFileSync(new URL("attacks.json", import.meta.url), "utf8"));
/** On one line, as in a SIP header. */
const LINES = ATTACKS.map((attack) => attack.replaceAll(/[\r\n]+/g, " "));

export async function hostile(browser, engine, world, findings, { carrier, hooks }) {
  await control(browser, engine, findings);
  const made = await prepare(engine, world, carrier, hooks);
  const visitor = await (await Visitor.open(browser, engine, findings, "reader", { bypassCSP: true })).logIn();
  await whileLive(visitor, made);
  for (const { phone, call, line } of made.calls) await phone.hangUp(call, [["Reason", `SIP;cause=200;text="${quoted(line)}"`]]);
  for (const [place, one] of made.live.entries()) await made.calls[place].phone.hangUp(one);
  await afterwards(visitor, made, world, engine, findings);
  await files(visitor, made, findings);
  await visitor.close();
  for (const { phone } of made.calls) phone.close();
  made.fay.close();
  await reports(browser, engine, LINES, findings);
}

/** A control: the attacks do execute where they are not escaped, so this test can fail. */
async function control(browser, engine, findings) {
  const seen = { expect: (holds, what) => holds || seen.lines.push(what), same: () => true, lines: [] };
  const visitor = await Visitor.open(browser, engine, seen, "control", { bypassCSP: true });
  await visitor.context.route((url) => url.hostname.endsWith(".invalid"), (route) => route.abort());
  for (const attack of LINES) {
    const page = await visitor.newPage();
    await page.goto("/login");
    // An attack may lead the page elsewhere.
    const elsewhere = () => {};
    await page.setContent(`<title>${attack}</title><p>${attack}</p><input value="${attack}"><textarea>${attack}</textarea>`, { waitUntil: "domcontentloaded" }).catch(elsewhere);
    await page.evaluate("document.body.getBoundingClientRect()").catch(elsewhere);
  }
  await until("attacks on an unsafe page execute", () => seen.lines.filter((line) => line.includes("was executed")).length >= 5);
  await until("attacks on an unsafe page leave the origin", () => seen.lines.filter((line) => line.includes("left the origin")).length >= 3);
  findings.expect(true, "the control");
  await visitor.close();
}

const quoted = (text) => text.replaceAll("\\", "\\\\").replaceAll('"', '\\"');

/** A phone, a live call, a room and everything else for each attack. */
async function prepare(engine, world, carrier, hooks) {
  hooks.answer.body = ATTACKS.join("\n");
  const fay = await SipPhone.open(engine, "1006", { name: LINES[0], agent: LINES[0], answer: { status: 200, phrase: "OK", headers: [["Subject", LINES[0]]] } });
  await fay.register();
  const team = (await engine.api("GET", "/teams")).items.find(({ name }) => name === "support").id;
  const made = { fay, calls: [], rooms: [], rejected: [] };
  for (const [place, line] of LINES.entries()) {
    const name = line.slice(0, 100);
    const number = String(2000 + place);
    const { id } = await engine.api("POST", "/extensions", { number, name, password: PASSWORD, team_id: team });
    await engine.api("POST", "/teams", { name });
    await engine.api("POST", "/agents", { name, kind: "human", extension_id: id });
    await engine.api("POST", "/users", { email: `attack${place}@acme.test`, name, role: "agent", password: PASSWORD });
    const room = await engine.api("POST", "/conference-rooms", { name, number: String(500 + place), participant_pin: "" });
    made.calls.push({ line, number });
    made.rooms.push(room.id);
  }
  for (const [place, one] of made.calls.entries()) {
    const { line, number } = one;
    const phone = await SipPhone.open(engine, number, { name: line, agent: line });
    // The switch reads a new extension after a moment.
    await until(`phone ${number} registers`, () => phone.register().catch(() => false));
    const headers = [["Subject", line], ["X-Attack", line]];
    const call = await phone.call("1006", { callId: callIdOf(line, place), headers, tone: true });
    if (call.status !== 200) throw new Error(`a call named ${line}: ${call.status}`);
    Object.assign(one, { phone, call });
  }
  const { items } = await engine.api("GET", "/calls?limit=100");
  for (const call of items) {
    const one = made.calls.find(({ number }) => number === call.caller);
    if (!one) continue;
    one.uuid = call.uuid;
    await engine.api("POST", `/calls/${call.uuid}/info`, { title: one.line, body: one.line, level: "alert", ack: true, extra: { [one.line]: one.line } });
    await engine.api("PUT", `/conversations/${call.uuid}`, conversation(call, one.line));
  }
  await refusals(engine, made, carrier, fay);
  // Two rooms are live; the rest are stored.
  made.live = [];
  for (const place of [0, 1]) {
    const one = await made.calls[place].phone.call(String(500 + place));
    if (one.status !== 200) throw new Error(`a room: ${one.status}`);
    made.live.push(one);
  }
  return made;
}

/** A Call-ID allows no space, and fewer characters than a display name (RFC 3261 §25.1, `word`). */
const callIdOf = (line, place) => `${line.replaceAll(/[^-\w.!%*+`'~()<>:\\"/[\]?{}]/g, "")}${place}@a.invalid`;

const conversation = (call, line) => ({
  call_uuid: call.uuid,
  direction: "inbound",
  started_at: call.started_at,
  agent_kind: "human",
  contact_e164: "+442071230000",
  summary: line,
  turns: [{ seq: 1, at: call.started_at, role: "caller", speaker: line, text: line }, { seq: 2, at: call.started_at, role: "tool", speaker: "", text: "", tool_name: line, tool_args: {}, tool_result: {} }],
});

/** Phones and the carrier refuse with attacks as reason phrases and in Reason and Warning. */
async function refusals(engine, made, carrier, fay) {
  const dan = await SipPhone.open(engine, "1004");
  await dan.register();
  for (const { phone, line } of made.calls) {
    const headers = [["Reason", `Q.850;cause=17;text="${quoted(line)}"`], ["Warning", `399 a.invalid "${quoted(line)}"`], ["Server", line]];
    dan.answer = { status: 486, phrase: line, headers };
    await phone.call("1004");
    carrier.answer = { status: 404, phrase: line, headers };
    await phone.call("02079460123");
  }
  dan.close();
  carrier.answer = { status: 503, phrase: "No circuits" };
}

const textOf = async (page) => (await page.evaluate("document.querySelector('main').textContent")).replaceAll(/\s+/g, " ");

/** The number of occurrences of a line in the current page. */
const countOf = async ({ page }, line) => (await textOf(page)).split(line.replaceAll(/\s+/g, " ")).length - 1;

/** The current page has no markup of an attack, and shows at least `least` attacks as text, `line` at least `times` times. */
async function harmless(visitor, least, line = "", times = 0) {
  const { page, findings, here } = visitor;
  await page.evaluate(`document.querySelectorAll("details").forEach((one) => (one.open = true))`);
  const strange = await page.evaluate(STRANGE);
  findings.same(strange, [], `reader ${here}: elements and attributes that are not the panel's`);
  const text = await textOf(page);
  const shown = LINES.filter((line) => text.includes(line.replaceAll(/\s+/g, " ")) || text.includes(JSON.stringify(line).slice(1, -1)));
  if (line !== "") {
    const count = await countOf(visitor, line);
    findings.expect(count >= times, `reader ${here}: shows ${line} ${count} times, not ${times}`);
  }
  findings.expect(shown.length >= least, `reader ${here}: shows ${shown.length} of the attacks, not ${least}`);
}

/** Elements and attributes that no page of the panel has. */
const STRANGE = `[...document.querySelectorAll("*")].flatMap((element) => {
  const tag = element.tagName.toLowerCase();
  const found = /^(iframe|object|embed|base|style|img|foreignobject|animate|set|marquee)$/.test(tag) ? [tag] : [];
  if (tag === "script" && !new URL(element.src).pathname.startsWith("/panel/")) found.push("script");
  if (tag === "meta" && element.httpEquiv !== "") found.push("meta " + element.httpEquiv);
  for (const { name, value } of element.attributes) {
    if (name.startsWith("on") || name === "style" || name === "srcdoc") found.push(tag + " " + name);
    if (/^(href|src|action|formaction|xlink:href)$/.test(name) && !/^([/?#]|$)/.test(value)) found.push(tag + " " + name + "=" + value);
    if (/^(href|src|action|formaction)$/.test(name) && value.startsWith("//")) found.push(tag + " " + name + "=" + value);
  }
  return found;
})`;

async function whileLive(visitor, made) {
  const { page } = visitor;
  await visitor.open("/live");
  await harmless(visitor, LINES.length);
  // The script of the page inserts new rows.
  const [gone, ...others] = [...made.calls].reverse();
  await gone.phone.hangUp(gone.call);
  made.calls.splice(made.calls.indexOf(gone), 1);
  gone.phone.close();
  await page.evaluate(`document.querySelectorAll("details").forEach((one) => (one.open = false))`);
  await until("the live page shows that a call is over", async () => (await page.locator(`a[href="/live/calls/${gone.uuid}"]`).count()) === 0);
  await harmless(visitor, others.length);
  for (const { uuid } of others) {
    await visitor.open(`/live/calls/${uuid}`);
    await harmless(visitor, 1);
  }
  for (const room of made.rooms.slice(0, 2)) {
    await visitor.open(`/live/rooms/svc-room-${room}`);
    await harmless(visitor, 1);
  }
  await visitor.open("/phones");
  await harmless(visitor, LINES.length - 1);
  await visitor.open("/trunks");
  await harmless(visitor, 5);
}

async function afterwards(visitor, made, world, engine, findings) {
  for (const { uuid, line } of made.calls) {
    await until("the record of a call", async () => (await visitor.page.goto(`/calls/${uuid}`)).status() === 200);
    // Messages, the note and its body, the conversation.
    await harmless(visitor, 1, line, 9);
  }
  const { items } = await engine.api("GET", "/cdrs?limit=200");
  const refused = items.filter((call) => call.destination_number === "1004" && call.caller_number?.startsWith("20"));
  findings.same(refused.length, LINES.length, "calls that were refused with attacks");
  for (const { call_uuid: uuid, caller_number: number } of refused) {
    const line = LINES[Number(number) - 2000];
    await visitor.open(`/calls/${uuid}`);
    // The messages of a call are stored after its record.
    await until("the messages of a refused call", async () => {
      await visitor.page.reload();
      return (await countOf(visitor, line)) >= 5;
    });
    await harmless(visitor, 1, line, 5);
  }
  for (const room of made.rooms.slice(0, 4)) {
    await visitor.open(`/rooms/${room}`);
    await harmless(visitor, 1);
  }
  const pages = { "/": 0, "/?days=7": 0, "/calls?limit=100": 0, "/calls?more=1": LINES.length - 1, "/live": 0, "/rooms": LINES.length - 1, "/settings/users": LINES.length };
  for (const list of ["extensions", "teams", "agents", "conference-rooms"]) pages[`/settings/${list}`] = LINES.length;
  for (const list of ["extensions", "agents", "users", "numbers"]) pages[`/settings/${list}/new`] = list === "numbers" ? 0 : LINES.length;
  for (const [path, least] of Object.entries(pages)) {
    await visitor.open(path);
    await harmless(visitor, least);
  }
  await visitor.open("/settings/teams");
  await visitor.page.locator("tbody tr", { hasText: "onerror" }).first().getByRole("link").click();
  await harmless(visitor, 0);
  await visitor.open(`/settings/webhooks/${world.webhook}/deliveries`);
  await harmless(visitor, 0);
  const delivery = await visitor.page.locator("tbody a").last().getAttribute("href");
  await visitor.open(delivery);
  await visitor.press("Send again");
  await until("the answer of the webhook", async () => {
    await visitor.open(delivery);
    return (await visitor.page.content()).includes("evil.invalid");
  });
  await harmless(visitor, 5);
  // Query parameters are shown in forms.
  for (const attack of ATTACKS) {
    await visitor.page.goto(`/calls?q=${encodeURIComponent(attack)}&hangup_cause=${encodeURIComponent(attack)}&sort=${encodeURIComponent(attack)}`);
    await harmless(visitor, 0);
  }
}

/** Files with such texts are not served as HTML. */
async function files(visitor, made, findings) {
  const { uuid } = made.calls[0];
  for (const [path, type] of [[`/calls/${uuid}/signalling`, "text/plain"], ["/calls/export", "text/csv"]]) {
    const answer = await visitor.page.request.get(path);
    const headers = answer.headers();
    findings.same([answer.status(), headers["content-type"]?.split(";")[0], headers["x-content-type-options"]], [200, type, "nosniff"], `reader ${path}: the kind of file`);
  }
}

