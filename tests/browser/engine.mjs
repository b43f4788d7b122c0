// A running engine of the built program in a folder of its own, its command-line phones, and its HTTP API.

import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { DIRECTORY, FULL_KEY, PASSWORD } from "./directory.mjs";

/** How long a wait for the engine or a phone may take on a busy machine. */
export const PATIENCE_MS = 30_000;

export class Engine {
  #children = [];

  /** A folder for an engine of `program`. */
  static async of(program) {
    const engine = new Engine();
    engine.program = program;
    engine.dir = await mkdtemp(join(tmpdir(), "sidetone-browser-"));
    return engine;
  }

  /** Starts it with the directory of the tests; `carrier` and `receiver` are ports on this host. */
  async start({ carrier, receiver }) {
    const engine = this;
    const config = `
[node]
data_dir = "${engine.dir}/data"
[database]
url = "sqlite://${engine.dir}/data/sidetone.db"
[signalling]
keep_days = 7
[sip]
listen = ["udp://127.0.0.1:0", "tcp://127.0.0.1:0"]
# Every phone of the tests has the same address.
requests_per_source = 1000
burst_per_source = 1000
[media]
audio_evidence = true
trace = true
[http]
listen = "127.0.0.1:0"
[outbound_http]
ports = [443, ${receiver}]
allow_addresses = ["127.0.0.0/8", "::1/128"]
extra_ca = "${engine.dir}/receiver.pem"
`;
    await writeFile(join(engine.dir, "sidetone.toml"), config);
    await writeFile(join(engine.dir, "directory.toml"), DIRECTORY.replaceAll("CARRIER", `127.0.0.1:${carrier}`));
    const applied = engine.run(["apply", "--json", "directory.toml"]);
    if ((await applied.ended) !== 0) throw new Error(`apply failed: ${applied.errors}`);
    engine.applied = JSON.parse(applied.output);
    const serve = engine.run(["serve"]);
    await until("the engine is ready", () => serve.output.includes("\nready\n"), serve);
    const after = (prefix) => serve.output.split("\n").find((line) => line.startsWith(prefix)).slice(prefix.length);
    engine.serve = serve;
    engine.sip = after("sip udp://");
    engine.origin = `http://${after("http http://")}`;
  }

  /** Runs the program; `output` and `errors` grow, `ended` is its exit code. */
  run(args, env = {}) {
    const child = spawn(this.program, args, { cwd: this.dir, env: { ...process.env, ...env }, stdio: ["pipe", "pipe", "pipe"] });
    const run = { child, output: "", errors: "" };
    child.stdout.on("data", (data) => (run.output += data));
    child.stderr.on("data", (data) => (run.errors += data));
    run.ended = new Promise((resolve, reject) => {
      child.on("error", reject);
      child.on("close", (code) => resolve(code));
    });
    this.#children.push(run);
    return run;
  }

  /** A command-line phone of the program that runs `script`; `events` are its lines of JSON so far. */
  async phone(number, script, { tone = false, domain = "acme.test" } = {}) {
    const file = join(this.dir, `${number}-${this.#children.length}.phone`);
    await writeFile(file, script);
    const args = ["phone", "--user", number, "--domain", domain, "--server", this.sip, "--json", "--script", file];
    const run = this.run(tone ? [...args, "--tone"] : args, { SIDETONE_PHONE_PASSWORD: PASSWORD });
    run.events = () => run.output.split("\n").slice(0, -1).map((line) => JSON.parse(line));
    run.did = (event) => until(`phone ${number}: ${event}`, () => run.events().find((one) => one.event === event), run);
    await run.did("registered");
    return run;
  }

  /** `method path` of the API with a key; throws when the status is not 2xx. */
  async api(method, path, body, key = FULL_KEY) {
    const answer = await fetch(`${this.origin}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, ...(body && { "content-type": "application/json" }) },
      body: body && JSON.stringify(body),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text === "" ? null : JSON.parse(text);
  }

  /** The same with the operator's key. */
  operate(method, path, body) {
    return this.api(method, path, body);
  }

  /** Ends every process and removes the folder. */
  async stop() {
    for (const { child } of [...this.#children].reverse()) if (child.exitCode === null) child.kill("SIGKILL");
    await Promise.all(this.#children.map((run) => run.ended));
    await rm(this.dir, { recursive: true, force: true });
  }
}

/** Waits until `condition` returns a truthy value, and returns it; on a timeout the error shows `run`. */
export async function until(what, condition, run) {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    const found = await condition();
    if (found) return found;
    if (run && run.child.exitCode !== null) throw new Error(`${what}: the program ended: ${run.output}${run.errors}`);
    if (Date.now() > end) throw new Error(`${what}: not within ${PATIENCE_MS} ms${run ? `: ${run.output}${run.errors}` : ""}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
