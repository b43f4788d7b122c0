// Logging in and out, and sessions that end: by the browser, by the user, and by an administrator.

import { PASSWORD, USERS } from "./directory.mjs";
import { until } from "./engine.mjs";
import { Visitor } from "./visit.mjs";

export async function sessions(browser, engine, world, findings) {
  await wrongPassword(browser, engine, findings);
  const visitor = await (await Visitor.open(browser, engine, findings, "leaver")).logIn();
  await cookie(visitor, findings);
  await returns(visitor, world, findings);
  await loggedOut(visitor, world, findings);
  await changedPassword(visitor, engine, findings);
  await disabled(browser, engine, visitor, findings);
  await visitor.close();
}

/** The response does not reveal whether the user exists. */
async function wrongPassword(browser, engine, findings) {
  const visitor = await Visitor.open(browser, engine, findings, "leaver");
  const texts = [];
  for (const email of [USERS.leaver, "unknown@acme.test"]) {
    await visitor.open("/login");
    await visitor.page.getByLabel("Email").fill(email);
    await visitor.page.getByLabel("Password").fill("wrong password");
    await visitor.press("Log in");
    findings.same(await visitor.page.getByLabel("Email").inputValue(), email, "/login: the email stays");
    texts.push(await visitor.page.getByRole("alert").innerText());
  }
  findings.same(texts[0], texts[1], "/login: the same answer for a wrong password and an unknown user");
  await visitor.inspect();
  await visitor.close();
}

async function cookie(visitor, findings) {
  const cookies = await visitor.context.cookies();
  const session = cookies.find(({ name }) => name === "sidetone_session");
  findings.same([session.httpOnly, session.sameSite, session.path], [true, "Strict", "/"], "the session cookie");
  const hours = (session.expires - Date.now() / 1000) / 3600;
  findings.expect(hours > 11.9 && hours < 12.1, `the session cookie expires in ${hours} hours`);
  findings.expect(!(await visitor.page.evaluate("document.cookie")).includes("sidetone_session"), "scripts cannot read the session cookie");
}

/** A browser that has dropped its cookie, as after 12 hours, returns to the page after the login. */
async function returns(visitor, world, findings) {
  await visitor.context.clearCookies();
  const path = `/calls/${world.support}`;
  await visitor.logIn(PASSWORD, path);
  findings.same(visitor.here, path, "leaver: the page after a login that a page asked for");
  // Another site cannot be the target.
  await visitor.context.clearCookies();
  await visitor.logIn(PASSWORD, "/login?next=%2F%2Fevil.example%2F");
  findings.same(visitor.here, "/", "leaver: the page after a login with a foreign address");
}

async function loggedOut(visitor, world, findings) {
  const { page } = visitor;
  await visitor.open("/calls");
  await visitor.press("Log out");
  findings.same(visitor.here, "/login", "leaver: logs out");
  await page.goBack();
  findings.same(new URL(page.url()).pathname, "/login", "leaver: the page before is not shown again");
  findings.same(await page.getByLabel("Password").count(), 1, "leaver: the page before asks for the login");
}

/** A new password ends the sessions of the old one. */
async function changedPassword(visitor, engine, findings) {
  await visitor.logIn();
  const login = await fetch(`${engine.origin}/api/v1/auth/login`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ email: USERS.leaver, password: PASSWORD }) });
  const { token } = await login.json();
  await engine.api("POST", "/auth/password", { old_password: PASSWORD, new_password: "another password" }, token);
  await visitor.page.goto("/calls");
  findings.same(visitor.here, "/login?next=%2Fcalls", "leaver: a new password ends the session");
  await visitor.logIn();
  findings.same(await visitor.page.getByRole("alert").count(), 1, "leaver: the old password is refused");
  await visitor.logIn("another password");
  findings.same(visitor.here, "/", "leaver: the new password is accepted");
}

/** An administrator disables the user, whose open page leads to the login by itself. */
async function disabled(browser, engine, visitor, findings) {
  await visitor.open("/live");
  const admin = await (await Visitor.open(browser, engine, findings, "admin")).logIn();
  await admin.open("/settings/users");
  await admin.page.getByRole("link", { name: USERS.leaver }).click();
  await admin.page.getByLabel("Cannot log in").check();
  await admin.press("Save");
  findings.same(admin.here, "/settings/users", "admin: disables a user");
  await until("the page of a disabled user leads to the login", () => new URL(visitor.page.url()).pathname === "/login");
  await visitor.logIn("another password");
  findings.same([visitor.here, await visitor.page.getByRole("alert").count()], ["/login", 1], "leaver: cannot log in");
  await admin.close();
}
