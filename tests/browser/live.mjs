// Live calls and rooms are controlled on their pages; the phones and another user's page show the effect.

import { setTimeout as pass } from "node:timers/promises";

import { until } from "./engine.mjs";
import { SipPhone } from "./sip_phone.mjs";
import { Visitor } from "./visit.mjs";

/** The limit on a busy machine; an idle one is within 300 ms. The figures are printed. */
const SHOWN_WITHIN_MS = 5_000;
const REPEATS = 5;

export async function live(browser, engine, world, findings) {
  const supervisor = await (await Visitor.open(browser, engine, findings, "supervisor")).logIn();
  const admin = await (await Visitor.open(browser, engine, findings, "admin")).logIn();
  await supervisor.open(`/live/rooms/${world.room}`);
  await admin.open(`/live/rooms/${world.room}`);
  await muting(supervisor, admin, world, findings);
  await wholeRoom(supervisor, admin, engine, world, findings);
  await dial(supervisor, admin, world, findings);
  await kick(supervisor, admin, world, findings);
  await note(supervisor, world, findings);
  await hangUp(supervisor, world, findings);
  await endRoom(supervisor, engine, world, findings);
  await supervisor.close();
  await admin.close();
}

const row = (visitor, name) => visitor.page.locator("#live-room tbody tr").filter({ hasText: name });

/** The time at which the page first shows a member in this state, by the clock of this host. */
function sees(visitor, name, state, isShown) {
  return visitor.page.evaluate(
    ([name, state, isShown, limit]) =>
      new Promise((resolve) => {
        const end = Date.now() + limit;
        const look = () => {
          const row = [...document.querySelectorAll("#live-room tbody tr")].find((row) => row.textContent.includes(name));
          const found = [...(row?.querySelectorAll(".chip") ?? [])].some((chip) => chip.textContent === state);
          if (found === isShown || Date.now() > end) {
            observer.disconnect();
            clearInterval(timer);
            resolve(found === isShown ? Date.now() : null);
          }
        };
        const observer = new MutationObserver(look);
        observer.observe(document.body, { childList: true, subtree: true });
        const timer = setInterval(look, 200);
        look();
      }),
    [name, state, isShown, SHOWN_WITHIN_MS],
  );
}

/** Mutes and unmutes Ada, whose tone the listening phone hears. */
async function muting(supervisor, admin, world, findings) {
  const { listening } = world;
  const [atPhone, atPage] = [[], []];
  await until("the listening phone hears Ada", () => listening.audio.isLoud());
  findings.expect((await sees(admin, "Ada", "talking", true)) !== null, "admin, the live room: shows that Ada talks");
  for (let repeat = 0; repeat < REPEATS; repeat += 1) {
    const shown = sees(admin, "Ada", "muted", true);
    const at = Date.now();
    await supervisor.press("Mute", row(supervisor, "Ada"));
    const quiet = await until("the listening phone no longer hears Ada", () => listening.audio.quietSince(at));
    atPhone.push(quiet - at);
    const seen = await shown;
    if (findings.expect(seen !== null, `admin, the live room: shows within ${SHOWN_WITHIN_MS} ms that Ada is muted`)) atPage.push(seen - at);
    findings.same(await row(supervisor, "Ada").locator(".chip", { hasText: "muted" }).count(), 1, "supervisor, the live room: Ada is muted");
    const again = sees(admin, "Ada", "muted", false);
    await supervisor.press("Unmute", row(supervisor, "Ada"));
    const heardAgain = Date.now();
    await until("the listening phone hears Ada again", () => listening.audio.isLoud(heardAgain));
    findings.expect((await again) !== null, `admin, the live room: shows that Ada is no longer muted`);
  }
  for (const [where, took] of [["the phone", atPhone], ["another user's page", atPage]]) {
    const sorted = [...took].sort((one, other) => one - other);
    console.log(`  a click on Mute, until ${where} shows it: ${sorted[Math.floor(sorted.length / 2)]} ms in the middle, ${sorted.at(-1)} ms at most`);
    findings.expect(sorted.at(-1) <= SHOWN_WITHIN_MS, `${where} shows a mute only after ${sorted.at(-1)} ms`);
  }
}

/** Mute all, lock and record: checked on the other page, on the phones and in the stored session. */
async function wholeRoom(supervisor, admin, engine, world, findings) {
  const { listening } = world;
  const states = () => admin.page.locator("#live-room > p .chip").allInnerTexts();
  const shows = (state) => until(`admin, the live room: shows ${state}`, async () => (await states()).includes(state));
  const at = Date.now();
  await supervisor.press("Mute all");
  await until("the listening phone hears no member", () => listening.audio.quietSince(at));
  await shows("all muted");
  await supervisor.press("Unmute all");
  await supervisor.press("Lock");
  await shows("locked");
  const late = await (await SipPhone.open(engine, "1008")).register();
  const refused = await late.call("300");
  if (refused.status === 200) await until("a locked room ends a new call", () => !late.calls.has(refused.callId));
  else findings.expect(refused.status >= 400, `a locked room answers ${refused.status}`);
  await supervisor.press("Unlock");
  await supervisor.press("Record");
  await shows("recording");
  await pass(1_000);
  await supervisor.press("Stop recording");
  await until("admin, the live room: shows no state", async () => (await states()).length === 0);
  await supervisor.inspect();
  late.close();
}

/** A party is called into the room: by the admin, and by the supervisor of a team with members in it. */
async function dial(supervisor, admin, world, findings) {
  const { cleo } = world.phones;
  const call = async (visitor, target) => {
    await visitor.page.getByText("Call a party", { exact: true }).click();
    await visitor.page.getByLabel("Extension, or number").fill(target);
    await visitor.press("Call");
  };
  for (const visitor of [admin, supervisor]) {
    const at = Date.now();
    await call(visitor, "1003");
    const answered = await until(`${visitor.who}: the phone that is called answers`, () => [...cleo.calls.values()][0]);
    for (const seen of [admin, supervisor]) await until(`${seen.who}, the live room: shows the called party`, async () => (await row(seen, "1003").count()) === 1);
    console.log(`  a click on Call, until the phone has answered and both pages show it: ${Date.now() - at} ms`);
    findings.same(await row(visitor, "1003").locator("td").nth(1).innerText(), "participant", `${visitor.who}, the live room: the role of the called party`);
    await until(`${visitor.who}: the phone that was called hears the room`, () => answered.audio.isLoud(at));
    await cleo.hangUp(answered);
    for (const seen of [admin, supervisor]) await until(`${seen.who}, the live room: the called party is gone`, async () => (await row(seen, "1003").count()) === 0);
  }
  await call(admin, "1999");
  findings.expect((await admin.page.locator("main").innerText()).includes("no extension 1999"), "admin, the live room: says that there is no such extension");
  await admin.open(`/live/rooms/${world.room}`);
}

async function kick(supervisor, admin, world, findings) {
  const at = Date.now();
  await row(supervisor, "Ada").getByText("Remove", { exact: true }).click();
  await supervisor.press("Remove now", row(supervisor, "Ada"));
  await until("Ada's phone is removed", () => world.phones.ada.events().filter(({ event }) => event === "ended").length === 2, world.phones.ada);
  console.log(`  a click on Remove, until the announcement is over and the phone's call has ended: ${Date.now() - at} ms`);
  const ended = world.phones.ada.events().findLast(({ event }) => event === "ended");
  findings.same(ended.by_peer, true, "Ada's call was ended by the room");
  await until("admin, the live room: Ada is gone", async () => (await row(admin, "Ada").count()) === 0);
}

/** A note sent from the page appears on both phones of the call. */
async function note(supervisor, world, findings) {
  const { page } = supervisor;
  await supervisor.open("/live");
  const call = page.locator("tr", { has: page.locator(`a[href="/live/calls/${world.live}"]`) });
  await call.getByText("Note", { exact: true }).click();
  await call.getByLabel("Title").fill("The desk calls back at five");
  await call.getByLabel("Level").selectOption("warning");
  const at = Date.now();
  await supervisor.press("Send", call);
  for (const phone of [world.phones.eli, world.phones.fay]) {
    const note = await until(`the note on phone ${phone.number}`, () => phone.notes.map((text) => JSON.parse(text)).find(({ title }) => title === "The desk calls back at five"));
    findings.same(note.level, "warning", `phone ${phone.number}: the level of the note`);
  }
  console.log(`  a click on Send, until both phones have the note: ${Date.now() - at} ms`);
}

async function hangUp(supervisor, world, findings) {
  const { page } = supervisor;
  const call = page.locator("tr", { has: page.locator(`a[href="/live/calls/${world.live}"]`) });
  await call.getByText("Hang up", { exact: true }).click();
  const at = Date.now();
  await supervisor.press("Hang up now", call);
  await until("both phones have no call", () => world.phones.eli.calls.size === 0 && world.phones.fay.calls.size === 0);
  console.log(`  a click on Hang up, until both phones have no call: ${Date.now() - at} ms`);
  await until("the list has no such call", async () => (await page.locator(`a[href="/live/calls/${world.live}"]`).count()) === 0);
  // The page of an ended call redirects to its record, as soon as it is stored.
  await until("the record of the call", async () => (await page.goto(`/live/calls/${world.live}`)).status() === 200);
  findings.same(supervisor.here, `/calls/${world.live}`, "supervisor: the page of a live call that is over");
  findings.expect((await page.locator("main").innerText()).includes("The desk calls back at five"), `supervisor ${supervisor.here}: shows the note`);
}

async function endRoom(supervisor, engine, world, findings) {
  const { page } = supervisor;
  await supervisor.open(`/live/rooms/${world.room}`);
  await page.getByText("End the room", { exact: true }).click();
  await supervisor.press("End it now");
  await until("the listening phone has no call", () => world.phones.gus.calls.size === 0);
  await until("the list has no room", async () => (await page.locator(`a[href="/live/rooms/${world.room}"]`).count()) === 0);
  // Its session and its recording, for users who may read stored rooms.
  const admin = await (await Visitor.open(page.context().browser(), engine, findings, "admin")).logIn();
  await until("the recording of the session", async () => {
    await admin.open(`/rooms/${world.storedRoom}`);
    return (await admin.page.locator("audio").count()) > 0;
  });
  const sound = await admin.page.locator("audio").first().getAttribute("src");
  const answer = await admin.page.request.get(sound);
  findings.same([answer.status(), (await answer.body()).subarray(0, 4).toString()], [200, "RIFF"], `admin ${sound}: the recording`);
  await admin.inspect();
  await admin.close();
}
