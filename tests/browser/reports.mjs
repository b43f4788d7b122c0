// Reports of captures whose every text is an attack, opened from a file: nothing executes, nothing is requested.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

import { write } from "./sip_message.mjs";
import { Visitor } from "./visit.mjs";

export async function reports(browser, engine, lines, findings) {
  const files = [];
  for (const [place, line] of lines.entries()) {
    // A file name cannot contain a slash.
    const file = join(engine.dir, `${line.replaceAll("/", "∕")}${place}.pcap`);
    await writeFile(file, capture(line, place));
    files.push(file);
  }
  const report = join(engine.dir, "report.html");
  const made = engine.run(["analyze", "--format", "html", "-o", report, "--", ...files]);
  if (!findings.same(await made.ended, 0, `analyze --format html: ${made.errors}`)) return;
  for (const bypassCSP of [true, false]) {
    const visitor = await Visitor.open(browser, engine, findings, bypassCSP ? "report without its policy" : "report", { bypassCSP });
    const { page } = visitor;
    const requested = [];
    visitor.isReport = true;
    visitor.context.on("request", (request) => requested.push(request.url()));
    await page.goto(pathToFileURL(report).href);
    await page.evaluate(`document.querySelectorAll("details").forEach((one) => (one.open = true))`);
    await page.evaluate(`for (const one of document.querySelectorAll("main *")) for (const kind of ["mouseover", "focus", "click"]) one.closest("a, summary, button, input") || one.dispatchEvent(new Event(kind))`);
    const strange = await page.evaluate(STRANGE);
    findings.same(strange, [], `report: elements and attributes that are not the report's`);
    const text = (await page.evaluate("document.body.textContent")).replaceAll(/\s+/g, " ");
    const shown = lines.filter((line) => text.includes(line.replaceAll(/\s+/g, " ")));
    findings.expect(shown.length === lines.length, `report: shows ${shown.length} of ${lines.length} attacks`);
    findings.same(requested, [pathToFileURL(report).href], "report: what it requested");
    await visitor.close();
  }
}

const STRANGE = `[...document.querySelectorAll("*")].flatMap((element) => {
  const tag = element.tagName.toLowerCase();
  const found = /^(iframe|object|embed|base|img|link|foreignobject|animate|set|form)$/.test(tag) ? [tag] : [];
  for (const { name, value } of element.attributes) {
    if (name.startsWith("on") || name === "srcdoc") found.push(tag + " " + name);
    if (/^(href|src|action|xlink:href)$/.test(name) && !value.startsWith("#")) found.push(tag + " " + name + "=" + value);
  }
  return found;
}).concat(document.scripts.length > 1 ? ["scripts: " + document.scripts.length] : [])`;

/** A pcap with a registration and a refused call; every text is `line`. */
function capture(line, place) {
  const quoted = `"${line.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
  const callId = `${line.replaceAll(" ", "")}-${place}`;
  const common = (method) => [["Via", `SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK${place}${method}`], ["From", `${quoted} <sip:1001@a.test>;tag=1`], ["To", `${quoted} <sip:1002@a.test>`], ["Call-ID", `${method === "REGISTER" ? "r" : ""}${callId}`], ["CSeq", `1 ${method}`], ["User-Agent", line], ["Server", line], ["Subject", line]];
  const refusal = [["Reason", `SIP;cause=486;text=${quoted}`], ["Warning", `399 a.test ${quoted}`]];
  const sdp = `v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=${line}\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0 101\r\na=rtpmap:101 ${line.replaceAll(" ", "")}/8000\r\n`;
  const messages = [
    [true, write("REGISTER sip:a.test SIP/2.0", common("REGISTER"))],
    [false, write(`SIP/2.0 403 ${line}`, [...common("REGISTER"), ...refusal])],
    [true, write("INVITE sip:1002@a.test SIP/2.0", [...common("INVITE"), ["Content-Type", "application/sdp"]], sdp)],
    [false, write(`SIP/2.0 486 ${line}`, [...common("INVITE"), ...refusal])],
    [true, write("ACK sip:1002@a.test SIP/2.0", common("ACK"))],
  ];
  const head = Buffer.alloc(24);
  for (const [at, value] of [[0, 0xa1b2c3d4], [4, 0x00040002], [16, 65_535], [20, 101]]) head.writeUInt32LE(value, at);
  return Buffer.concat([head, ...messages.flatMap(([isFromPhone, text], at) => frame(at, isFromPhone, Buffer.from(text)))]);
}

/** A record with IPv4 and UDP (LINKTYPE_RAW). */
function frame(second, isFromPhone, payload) {
  const [record, packet] = [Buffer.alloc(16), Buffer.alloc(28)];
  const length = 28 + payload.length;
  for (const [at, value] of [[0, 1_700_000_000 + second], [8, length], [12, length]]) record.writeUInt32LE(value, at);
  packet[0] = 0x45;
  packet.writeUInt16BE(length, 2);
  packet[8] = 64;
  packet[9] = 17;
  const hosts = [0xc0000201, 0xc0000202];
  packet.writeUInt32BE(hosts[isFromPhone ? 0 : 1], 12);
  packet.writeUInt32BE(hosts[isFromPhone ? 1 : 0], 16);
  packet.writeUInt16BE(5060, 20);
  packet.writeUInt16BE(5060, 22);
  packet.writeUInt16BE(8 + payload.length, 24);
  return [record, packet, payload];
}
