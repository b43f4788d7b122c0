// The panel in Chromium, in front of a real engine: `node main.mjs PROGRAM [--screenshots FOLDER] [SUITE…]`.
//
// Each suite records failures and continues; the end lists them all. The exit code is 1 when there was a failure.

import { existsSync } from "node:fs";
import { parseArgs } from "node:util";

import { chromium } from "playwright-core";

import { Engine } from "./engine.mjs";
import { forms } from "./forms.mjs";
import { hostile } from "./hostile.mjs";
import { live } from "./live.mjs";
import { reading } from "./reading.mjs";
import { roles } from "./roles.mjs";
import { sessions } from "./sessions.mjs";
import { SipPhone } from "./sip_phone.mjs";
import { Findings } from "./visit.mjs";
import { happen, receiver } from "./world.mjs";

const SUITES = { roles, reading, forms, sessions, live, hostile };
/** The sequential suites, and one that runs in parallel: the hostile texts use separate users and phones. */
const STAGES = [[["roles", "reading", "live"]], [["forms", "sessions"], ["hostile"]]];

const { values, positionals } = parseArgs({ options: { screenshots: { type: "string" } }, allowPositionals: true });
const [program, ...chosen] = positionals;
if (!program || !existsSync(program) || chosen.some((name) => !(name in SUITES))) {
  console.error(`usage: node main.mjs PROGRAM [--screenshots FOLDER] [${Object.keys(SUITES).join("|")}]…`);
  process.exit(2);
}

const began = Date.now();
const seconds = (since) => ((Date.now() - since) / 1000).toFixed(1);
const findings = new Findings();
const carrier = await SipPhone.open(undefined, "carrier", { answer: { status: 503, phrase: "No circuits" } });
const engine = Object.assign(await Engine.of(program), { screenshots: values.screenshots });
const answer = { body: "the desk is closed" };
const hooks = Object.assign(await receiver(engine.dir, 500, answer), { answer });
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-dev-shm-usage"] });
try {
  await engine.start({ carrier: carrier.port, receiver: hooks.address().port });
  const world = await happen(engine, carrier, hooks);
  console.log(`the engine and its calls: ${seconds(began)} s`);
  const run = async (names) => {
    for (const name of names.filter((name) => chosen.length === 0 || chosen.includes(name))) {
      const start = Date.now();
      await SUITES[name](browser, engine, world, findings, { carrier, hooks });
      console.log(`${name}: ${seconds(start)} s`);
    }
  };
  for (const beside of STAGES) {
    const ended = await Promise.allSettled(beside.map(run));
    for (const { reason } of ended) if (reason) findings.expect(false, `a suite ended: ${reason.stack}`);
  }
} catch (error) {
  findings.expect(false, `the walk ended: ${error.stack}`);
} finally {
  await browser.close();
  await engine.stop();
  carrier.close();
  hooks.closeAllConnections();
  hooks.close();
}
for (const line of findings.lines) console.error(`FAILED ${line}`);
console.log(`the panel in Chromium: ${findings.checks} checks, ${findings.lines.length} failures, ${seconds(began)} s`);
process.exit(findings.lines.length === 0 ? 0 : 1);
