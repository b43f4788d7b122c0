// Reading without scripts, by keyboard, in another time zone, and on paper.

import { Visitor } from "./visit.mjs";

export async function reading(browser, engine, world, findings) {
  await withoutScripts(browser, engine, world, findings);
  await byKeyboard(browser, engine, world, findings);
  await elsewhere(browser, engine, world, findings);
}

async function withoutScripts(browser, engine, world, findings) {
  const visitor = await (await Visitor.open(browser, engine, findings, "supervisor", { javaScriptEnabled: false })).logIn();
  const { page } = visitor;
  const shown = {
    "/": "Audio from the caller",
    "/calls": "1002",
    "/calls?q=1002": "1002",
    [`/calls/${world.support}`]: "MOS",
    "/live": "Live calls",
    "/phones": "1005",
    "/rooms": "Rooms",
    "/settings/extensions": "1001",
  };
  for (const [path, text] of Object.entries(shown)) {
    await visitor.open(path);
    findings.expect((await page.locator("main").innerText()).includes(text), `supervisor ${path} without scripts: shows ${text}`);
  }
  await visitor.open(`/calls/${world.support}`);
  findings.expect((await page.locator("svg.plot").count()) > 0, "supervisor, a call without scripts: has plots");
  findings.expect((await page.locator("main").innerText()).includes("INVITE"), "supervisor, a call without scripts: has its SIP messages");
  await page.getByRole("button", { name: "Log out" }).click();
  findings.same(visitor.here, "/login", "supervisor without scripts: logs out");
  await visitor.close();
}

async function byKeyboard(browser, engine, world, findings) {
  const visitor = await (await Visitor.open(browser, engine, findings, "supervisor")).logIn();
  const { page } = visitor;
  const focused = (read) => page.evaluate(`(${read})(document.activeElement)`);
  await visitor.open("/calls");
  await page.keyboard.press("Tab");
  findings.same(await focused("(it) => it.className"), "skip", "supervisor /calls: Tab reaches the skip link first");
  await page.keyboard.press("Enter");
  findings.same(await focused("(it) => it.id"), "main", "supervisor /calls: the skip link leads to the content");
  await page.keyboard.press("/");
  findings.same(await focused("(it) => it.name"), "q", "supervisor /calls: / goes to the search");
  await page.keyboard.type("1002");
  findings.same(await page.locator("[name=q]").inputValue(), "1002", "supervisor /calls: keys are entered in the search");
  const found = page.waitForEvent("load");
  await page.keyboard.press("Enter");
  await found;
  findings.same(new URL(page.url()).searchParams.get("q"), "1002", "supervisor /calls: Enter searches, and the address can be shared");
  await page.goto("/calls");
  const links = await page.locator("tr[data-row] a:first-of-type").evaluateAll((links) => links.map((link) => link.getAttribute("href")));
  const calls = links.filter((link) => link.startsWith("/calls/"));
  const here = () => focused("(it) => it.getAttribute('href')");
  await page.keyboard.press("j");
  findings.same(await here(), calls[0], "supervisor /calls: j goes to the first row");
  await page.keyboard.press("j");
  await page.keyboard.press("k");
  findings.same(await here(), calls[0], "supervisor /calls: j and k go back to it");
  const opened = page.waitForEvent("load");
  await page.keyboard.press("Enter");
  await opened;
  findings.same(visitor.here, calls[0], "supervisor /calls: Enter opens the row");
  await visitor.close();
}

async function elsewhere(browser, engine, world, findings) {
  const visitor = await (await Visitor.open(browser, engine, findings, "admin", { timezoneId: "America/New_York" })).logIn();
  const { page } = visitor;
  await visitor.open(`/calls/${world.support}`);
  const time = page.locator("time[datetime]").first();
  const [shown, title, at] = [await time.innerText(), await time.getAttribute("title"), new Date(await time.getAttribute("datetime"))];
  const local = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium", timeZone: "America/New_York" }).format(at);
  findings.same([shown, title], [local, `${at.toISOString().slice(0, 19).replace("T", " ")} UTC`], `admin ${visitor.here}: a time in New York`);
  await page.emulateMedia({ media: "print" });
  const isShown = (selector) => page.locator(selector).first().isVisible();
  findings.same([await isShown("header.top"), await isShown(".sentence")], [false, true], `admin ${visitor.here}: printed without navigation, with the verdict`);
  const pdf = await page.pdf({ format: "A4" });
  findings.expect(pdf.length > 10_000, `admin ${visitor.here}: prints ${pdf.length} bytes`);
  findings.same(await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), true, `admin ${visitor.here}: fits on paper`);
  await visitor.close();
}
