// Every form: each wrong field has its error beside it, entered values stay, secrets are shown once.

import { Visitor } from "./visit.mjs";

/**
 * By list: the required fields, the fields that refuse invalid text, the valid values, the text by which the list
 * shows the entry, and the changed field, which is the name unless given. `null` chooses the first entry.
 */
const FORMS = {
  admin: {
    agents: { lacks: ["name", "kind"], wrong: ["name"], right: { name: "Night desk", kind: "human" }, shown: "Night desk" },
    "api-keys": { lacks: ["name", "preset", "allow"], wrong: ["name", "allow", "rate_per_minute"], right: { name: "Wallboard", preset: "read_only", allow: "127.0.0.1" }, shown: "Wallboard", secret: /^tel_/ },
    "conference-rooms": { lacks: ["name", "number"], wrong: ["name", "number", "participant_pin", "moderator_pin", "max_members"], right: { name: "Board", number: "400" }, shown: "Board" },
    extensions: {
      lacks: ["number"],
      wrong: ["number", "name", "password", "forwarding.always", "forwarding.busy", "forwarding.no_answer", "forwarding.no_answer_seconds", "forwarding.unregistered"],
      right: { number: "1999", name: "Lobby" },
      shown: "1999",
      secret: /^\S{12,}$/,
    },
    numbers: { lacks: ["number", "destination"], wrong: ["number"], right: { number: "+442079460999", destination: "extension", destination_id: null }, shown: "+442079460999", changed: ["number", "+442079460998"] },
    teams: { lacks: ["name"], wrong: ["name"], right: { name: "night shift" }, shown: "night shift" },
    users: { lacks: ["email", "role"], wrong: ["email", "name", "password"], right: { email: "new@acme.test", role: "agent", name: "Newcomer" }, shown: "new@acme.test", secret: /^\S{12,}$/ },
    webhooks: { lacks: ["url", "events"], wrong: ["url", "description", "events"], right: { url: "https://localhost/new", events: "call.*" }, shown: "https://localhost/new", secret: /^\S{12,}$/, changed: ["description", "Changed by a test"] },
  },
  operator: {
    "ai-prices": {
      lacks: ["provider", "model", "kind", "text_input_per_million", "output_per_million", "currency"],
      wrong: ["provider", "model", "text_input_per_million", "audio_input_per_million", "output_per_million", "currency", "from_time", "to_time"],
      right: { provider: "Example", model: "small-*", kind: "cost", text_input_per_million: "1.5", output_per_million: "3", currency: "EUR" },
      shown: "Example",
      changed: ["output_per_million", "0.5"],
    },
    "cost-rates": {
      lacks: ["trunk_id", "prefix", "per_minute", "currency"],
      wrong: ["prefix", "per_minute", "currency", "increments", "from_time", "to_time"],
      right: { trunk_id: null, prefix: "+4479", per_minute: "0.0100", currency: "EUR" },
      shown: "+4479",
      changed: ["per_minute", "0.5"],
    },
    "fx-rates": { lacks: ["from", "to", "rate"], wrong: ["from", "to", "rate", "from_time"], right: { from: "USD", to: "EUR", rate: "0.9200" }, shown: "USD", changed: ["rate", "0.5"] },
    "sell-rates": {
      lacks: ["organisation_id", "prefix", "per_minute", "currency"],
      wrong: ["prefix", "per_minute", "currency", "increments", "from_time", "to_time"],
      right: { organisation_id: null, prefix: "+4477", per_minute: "0.0200", currency: "EUR" },
      shown: "+4477",
      changed: ["per_minute", "0.5"],
    },
  },
};
const NONSENSE = "x x!".repeat(100);

export async function forms(browser, engine, world, findings) {
  for (const [who, lists] of Object.entries(FORMS)) {
    const visitor = await (await Visitor.open(browser, engine, findings, who)).logIn();
    for (const [list, form] of Object.entries(lists)) await whole(visitor, list, form, engine);
    if (who === "admin") await others(visitor, findings);
    await visitor.close();
  }
}

async function whole(visitor, list, form, engine) {
  const { page, findings, who } = visitor;
  const what = `${who} /settings/${list}/new`;
  await visitor.open(`/settings/${list}/new`);
  await visitor.press("Save");
  await marked(visitor, `${what}, empty`, form.lacks);
  await visitor.open(`/settings/${list}/new`);
  const texts = page.locator("form.card input:not([type=hidden]):not([type=checkbox]), form.card textarea");
  for (const field of await texts.all()) await field.fill(NONSENSE);
  await visitor.press("Save");
  const choices = form.lacks.filter((name) => !form.wrong.includes(name));
  await marked(visitor, `${what}, nonsense`, [...form.wrong, ...(await selects(page)).filter((name) => choices.includes(name))]);
  for (const field of await page.locator("form.card input:not([type=hidden]):not([type=checkbox]):not([type=password])").all()) {
    findings.same(await field.inputValue(), NONSENSE, `${what}: what was entered in ${await field.getAttribute("name")} stays`);
  }
  if (list === "extensions") await visitor.inspect();
  await created(visitor, list, form, engine);
}

const selects = (page) => page.locator("form.card select").evaluateAll((fields) => fields.map((field) => field.name));

/** Exactly these fields have an error, each with a text beside it to which the field refers. */
async function marked(visitor, what, expected) {
  const { page, findings } = visitor;
  const found = await page.locator("form.card [aria-invalid=true]").evaluateAll((fields) =>
    fields.map((field) => {
      const problem = document.getElementById(field.getAttribute("aria-describedby"));
      return { name: field.name, beside: problem !== null && problem.closest(".field") === field.closest(".field") && problem.textContent.trim().length > 5 };
    }),
  );
  findings.same(found.map(({ name }) => name).sort(), [...new Set(expected)].sort(), `${what}: the marked fields`);
  for (const { name, beside } of found) findings.expect(beside, `${what}: the error of ${name} is beside it`);
  findings.same(await page.getByRole("alert").innerText(), "Check the marked fields.", `${what}: the summary`);
}

/** Creates one, changes it, and deletes it. */
async function created(visitor, list, form, engine) {
  const { page, findings, who } = visitor;
  await visitor.open(`/settings/${list}/new`);
  await fill(page, form.right);
  await visitor.press("Save");
  if (form.secret) {
    const secret = (await page.locator(".secret").innerText()).trim();
    findings.expect(form.secret.test(secret), `${who} /settings/${list}/new: the secret is shown after the creation`);
    if (list === "api-keys") await engine.api("GET", "/calls", undefined, secret);
    await visitor.open(`/settings/${list}`);
    findings.expect(!(await page.content()).includes(secret), `${who} /settings/${list}: the secret is shown once`);
  }
  findings.same(visitor.here, `/settings/${list}`, `${who} /settings/${list}/new: leads to the list`);
  const row = page.locator("tbody tr", { hasText: form.shown });
  if (!findings.same(await row.count(), 1, `${who} /settings/${list}: shows the new one`)) return;
  await row.getByRole("link").first().click();
  const [field, value] = form.changed ?? ["name", "Changed by a test"];
  await fill(page, { [field]: value });
  await visitor.press("Save");
  findings.same(visitor.here, `/settings/${list}`, `${who} /settings/${list}: a change leads to the list`);
  // The row is found by its first text; a change of another field does not change that text.
  const shown = form.right[field] === form.shown ? value : form.shown;
  const after = page.locator("tbody tr", { hasText: shown });
  findings.same(await after.count(), 1, `${who} /settings/${list}: shows the changed one`);
  await after.getByRole("link").first().click();
  const stored = await page.locator(`form.card [name="${field}"]`).inputValue();
  findings.expect(stored === value || Number(stored) === Number(value), `${who} ${visitor.here}: ${field} is ${stored} after a change to ${value}`);
  await page.locator("summary", { hasText: /^Delete$/ }).click();
  await visitor.press("Delete now");
  findings.same(await page.locator("tbody tr", { hasText: shown }).count(), 0, `${who} /settings/${list}: the deleted one is gone`);
}

async function fill(page, values) {
  for (const [name, value] of Object.entries(values)) {
    const field = page.locator(`form.card [name="${name}"]:not([type=hidden])`);
    if ((await field.evaluate((field) => field.tagName)) !== "SELECT") await field.fill(value);
    else await field.selectOption(value === null ? { index: 1 } : value);
  }
}

/** The forms with separate pages. */
async function others(visitor, findings) {
  const { page, who } = visitor;
  const filters = await page.goto("/calls?mos_max=9&from=yesterday");
  findings.same(filters.status(), 400, `${who} /calls: wrong filters`);
  for (const [name, value] of [["mos_max", "9"], ["from", "yesterday"]]) {
    const field = page.locator(`[name=${name}][aria-invalid=true]`);
    findings.same([await field.count(), await field.inputValue()], [1, value], `${who} /calls: the filter ${name} has its error`);
    findings.same(await page.locator(`#${name}-problem`).count(), 1, `${who} /calls: the error of ${name} is beside it`);
  }
  const upload = async (name, buffer) => {
    await visitor.open("/settings/prompts/new");
    await page.getByLabel(/^Prompt/).fill(name);
    await page.getByLabel(/^WAV file/).setInputFiles({ name: "sound.wav", mimeType: "audio/wav", buffer });
    await visitor.press("Save");
  };
  await upload("", Buffer.from("nothing"));
  findings.same(await page.locator("#name-problem").count(), 1, `${who} /settings/prompts/new: the missing name is marked`);
  await upload("own-welcome", Buffer.from("nothing"));
  findings.same(await page.locator("#body-problem").count(), 1, `${who} /settings/prompts/new: a file that is no WAV is marked`);
  await upload("own-welcome", wav());
  findings.same(visitor.here, "/settings/prompts", `${who}: a stored prompt leads to the list`);
  const row = page.locator("tr", { hasText: "own-welcome" });
  const sound = await page.request.get(await row.locator("audio").getAttribute("src"));
  findings.same(sound.status(), 200, `${who}: the stored prompt can be heard`);
  await row.getByText("Remove", { exact: true }).click();
  await visitor.press("Remove now", row);
  findings.same(await page.locator("tr", { hasText: "own-welcome" }).count(), 0, `${who} /settings/prompts: the removed one is gone`);
}

/** A second of silence, 16 bits at 8 kHz. */
function wav() {
  const wav = Buffer.alloc(44 + 16_000);
  wav.write("RIFF", 0);
  wav.writeUInt32LE(36 + 16_000, 4);
  wav.write("WAVEfmt ", 8);
  for (const [at, value] of [[16, 16], [24, 8_000], [28, 16_000], [40, 16_000]]) wav.writeUInt32LE(value, at);
  for (const [at, value] of [[20, 1], [22, 1], [32, 2], [34, 16]]) wav.writeUInt16LE(value, at);
  wav.write("data", 36);
  return wav;
}
