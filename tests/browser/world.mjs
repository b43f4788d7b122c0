// The data of the engine before its pages are checked: calls of two teams, a refused one, a webhook, a live call,
// a room.

import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import { join } from "node:path";

import { until } from "./engine.mjs";
import { SipPhone } from "./sip_phone.mjs";

/** A receiver of webhooks that answers every request with `status` and `answer.body`; its certificate is in `folder`. */
export async function receiver(folder, status, answer) {
  const [certificate, key] = ["receiver.pem", "receiver.key"].map((name) => join(folder, name));
  const names = ["subjectAltName=DNS:localhost,IP:127.0.0.1", "basicConstraints=critical,CA:FALSE"];
  const made = ["-keyout", key, "-out", certificate, ...names.flatMap((name) => ["-addext", name])];
  execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=localhost", ...made], { stdio: "pipe" });
  const respond = (request, response) => request.resume().on("end", () => response.writeHead(status).end(answer.body));
  const server = createServer({ cert: readFileSync(certificate), key: readFileSync(key) }, respond);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

/** Makes the calls; the live ones stay up until `end`. */
export async function happen(engine, carrier, receiver) {
  const hook = await engine.api("POST", "/webhooks", { url: `https://localhost:${receiver.address().port}/hook`, events: ["call.*"], description: "The desk" });
  const [cleo, dan] = [await SipPhone.open(engine, "1003"), await SipPhone.open(engine, "1004", { answer: { status: 486, phrase: "Busy Here", headers: [["Reason", 'SIP;cause=486;text="At lunch"']] } })];
  await Promise.all([cleo.register(), dan.register()]);
  const busy = await cleo.call("1004");
  if (busy.status !== 486) throw new Error(`a busy phone: ${busy.status}`);
  const refused = await cleo.call("02079460123");
  if (refused.status < 400) throw new Error(`a refused call: ${refused.status}`);
  // The phones of the program; the call is long enough for a verdict.
  const ben = await engine.phone("1002", "wait ringing 60s\nanswer\nwait idle 10m\nwait idle 10m\nwait 10m\n", { tone: true });
  const ada = await engine.phone("1001", "call 1002\nwait up\nwait heard 150\nhangup\nwait idle\ncall 300\nwait up\nwait idle 10m\nwait 10m\n", { tone: true });
  await ada.did("ended");
  const records = await until("three records", async () => {
    const { items } = await engine.api("GET", "/cdrs?limit=10");
    return items.length === 3 && items;
  });
  const record = (number) => records.find((one) => one.destination_number === number || one.dialled_number === number);
  const [eli, fay] = [await SipPhone.open(engine, "1005"), await SipPhone.open(engine, "1006")];
  await Promise.all([eli.register(), fay.register()]);
  const talk = await eli.call("1006", { tone: true });
  if (talk.status !== 200) throw new Error(`the live call: ${talk.status}`);
  const gus = await (await SipPhone.open(engine, "1007")).register();
  const listening = await gus.call("300");
  if (listening.status !== 200) throw new Error(`the room: ${listening.status}`);
  const room = await until("both are in the room", async () => (await engine.api("GET", "/conferences")).items.find((one) => one.members.length === 2));
  const live = (await engine.api("GET", "/calls")).items.find((one) => one.caller === "1005");
  return {
    support: record("1002").call_uuid,
    sales: record("1004").call_uuid,
    refused: records.find((one) => one.direction === "outbound").call_uuid,
    webhook: hook.id,
    room: room.room,
    storedRoom: room.room_id,
    live: live.uuid,
    phones: { ada, ben, cleo, dan, eli, fay, gus },
    talk,
    listening,
    member: (number) => room.members.find((one) => one.number === number).id,
  };
}
