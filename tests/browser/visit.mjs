// A user's browser, and the checks on every page that it shows.

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";

import { PASSWORD, USERS } from "./directory.mjs";

/** The widths at which pages are checked: a phone, a laptop, a 4K screen. */
export const WIDTHS = [360, 1200, 3840];

/** The failures, one line each; suites add them, and the end of the run prints them. */
export class Findings {
  lines = [];
  checks = 0;

  /** Records `what` unless `holds`. */
  expect(holds, what) {
    this.checks += 1;
    if (!holds && !this.lines.includes(what)) this.lines.push(what);
    return holds;
  }

  /** Records a difference between the found and the expected value. */
  same(found, expected, what) {
    const [one, other] = [JSON.stringify(found), JSON.stringify(expected)];
    return this.expect(one === other, `${what}: expected ${other}, found ${one}`);
  }
}

/** A browser with its own session. */
export class Visitor {
  /** Opens it; `options` are those of a Playwright context. */
  static async open(browser, engine, findings, who, options = {}) {
    const visitor = new Visitor();
    Object.assign(visitor, { engine, findings, who });
    visitor.context = await browser.newContext({ baseURL: engine.origin, viewport: { width: 1200, height: 900 }, reducedMotion: "reduce", ...options });
    visitor.context.setDefaultTimeout(30_000);
    await visitor.context.addInitScript(WATCH);
    await visitor.context.exposeBinding("sidetoneReport", ({ page }, what) => visitor.#note(page, what));
    visitor.context.on("request", (request) => {
      const { origin, protocol } = new URL(request.url());
      const isOwn = origin === engine.origin || ["data:", "about:", "blob:"].includes(protocol);
      if (!isOwn && !visitor.isReport) findings.expect(false, `${who} ${visitor.here}: a request left the origin: ${request.url()}`);
    });
    visitor.page = await visitor.newPage();
    return visitor;
  }

  /** Another tab of the same session. */
  async newPage() {
    const page = await this.context.newPage();
    page.on("console", (message) => {
      // The status of a page is checked where the page is opened.
      const isStatus = message.text().startsWith("Failed to load resource: the server responded with a status of 4");
      if (["error", "warning"].includes(message.type()) && !isStatus) this.#note(page, `console ${message.type()}: ${message.text()}`);
    });
    page.on("pageerror", (error) => this.#note(page, `script failed: ${error}`));
    page.on("dialog", (dialog) => {
      this.#note(page, `a dialog opened: ${dialog.message()}`);
      dialog.dismiss().catch(() => {});
    });
    return page;
  }

  /** The path of the current page. */
  get here() {
    return decodeURI(this.page?.url().replace(this.engine.origin, "") ?? "");
  }

  #note(page, what) {
    this.findings.expect(false, `${this.who} ${decodeURI(page.url().replace(this.engine.origin, ""))}: ${what}`);
  }

  /** Logs in through the form, and waits for the page after it. */
  async logIn(password = PASSWORD, path = "/login") {
    await this.page.goto(path);
    await this.page.getByLabel("Email").fill(USERS[this.who]);
    await this.page.getByLabel("Password").fill(password);
    await this.press("Log in");
    return this;
  }

  /** Presses a button that sends a form of the page, and waits for the page that follows. */
  async press(name, within = this.page) {
    const answered = this.page.waitForEvent("load");
    await within.getByRole("button", { name, exact: true }).click();
    await answered;
  }

  /** Opens a page and checks its status. */
  async open(path, status = 200) {
    const answer = await this.page.goto(path);
    this.findings.same(answer.status(), status, `${this.who} ${path}: status`);
    return answer;
  }

  /** The status of a request that a script of the page sends: a form when there are fields. */
  async status(path, fields) {
    return this.page.evaluate(
      async ([path, fields]) => (await fetch(path, { method: fields ? "POST" : "GET", redirect: "manual", body: fields && new URLSearchParams(fields) })).status,
      [path, fields],
    );
  }

  /** The token of the session's forms. */
  async token() {
    return this.page.locator("input[name=csrf]").first().inputValue();
  }

  /** Checks the current page, in light and dark mode, at every width. */
  async inspect({ name = this.here } = {}) {
    const { page, findings, who, here } = this;
    findings.same(await page.locator("h1").count() > 0, true, `${who} ${here}: has a heading`);
    findings.expect(/\S+ · Sidetone$/.test(await page.title()), `${who} ${here}: title ${await page.title()}`);
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 900 });
      const wide = await page.evaluate(WIDER);
      findings.expect(wide.length === 0, `${who} ${here}: wider than ${width} px: ${wide.join(", ")}`);
    }
    for (const [colorScheme, width, rules] of [["light", 1200, null], ["dark", 360, LOOKS]]) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 900 });
      await this.#axe(`${colorScheme}, ${width} px`, rules);
      const file = `${name.replaceAll(/[^a-z0-9]+/g, "-")}${colorScheme}-${width}.png`;
      if (this.engine.screenshots) await page.screenshot({ path: join(this.engine.screenshots, file), fullPage: true });
    }
    await page.emulateMedia({ colorScheme: "light" });
    await page.setViewportSize({ width: 1200, height: 900 });
  }

  async #axe(how, rules) {
    const { page, findings, who, here } = this;
    if (!(await page.evaluate("typeof axe === 'object'"))) await page.evaluate(await AXE);
    const found = await page.evaluate(async (rules) => {
      const { violations } = await axe.run(document, { resultTypes: ["violations"], preload: false, ...(rules && { runOnly: rules }) });
      return violations.map(({ id, impact, help, nodes }) => ({ id, impact, help, where: nodes.slice(0, 3).map((node) => node.target.join(" ")), count: nodes.length }));
    }, rules);
    const serious = found.filter(({ impact }) => ["serious", "critical"].includes(impact));
    findings.checks += 1;
    for (const { id, help, where, count } of serious) findings.expect(false, `${who} ${here} (${how}): axe ${id}: ${help}; ${count} times, such as ${where.join(" and ")}`);
  }

  async close() {
    await this.context.close();
  }
}

/** Runs before the scripts of a page: reports violations of the policy, and scripts that should not run. */
const WATCH = `
  addEventListener("securitypolicyviolation", (event) => sidetoneReport("policy violated: " + event.violatedDirective + " " + event.blockedURI + " " + event.sample));
  for (const name of ["alert", "confirm", "prompt"]) window[name] = (text) => sidetoneReport("a text of the API was executed: " + name + " " + text);
`;
/** The elements that make the page wider than its window. */
const WIDER = `(() => {
  const wide = document.documentElement.scrollWidth > innerWidth;
  if (!wide) return [];
  const beyond = [...document.querySelectorAll("body *")].filter((element) => element.getBoundingClientRect().right > innerWidth + 1 && !element.closest(".scroll"));
  return beyond.slice(0, 3).map((element) => element.tagName.toLowerCase() + "." + element.className);
})()`;
/** The rules whose result depends on colours and width. */
const LOOKS = ["color-contrast", "link-in-text-block", "scrollable-region-focusable", "target-size"];
const AXE = readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
