// SIP messages as far as the phones of the tests need them (RFC 3261 §7), and digest authentication (RFC 7616).

import { createHash, randomBytes } from "node:crypto";

/** A random token of hexadecimal digits. */
export const token = () => randomBytes(8).toString("hex");

/** A received message: `method` or `status`, its headers in order, and its body. */
export function parse(datagram) {
  const text = datagram.toString("utf8");
  const split = text.indexOf("\r\n\r\n");
  const [start, ...lines] = text.slice(0, split).split("\r\n");
  const headers = lines.map((line) => [line.slice(0, line.indexOf(":")).trim().toLowerCase(), line.slice(line.indexOf(":") + 1).trim()]);
  const message = { start, headers, body: text.slice(split + 4) };
  message.all = (name) => headers.filter(([known]) => known === (SHORT[name] ?? name) || known === name).map(([, value]) => value);
  message.get = (name) => message.all(name)[0];
  if (start.startsWith("SIP/2.0 ")) message.status = Number(start.slice(8, 11));
  else message.method = start.split(" ")[0];
  return message;
}

/** A message with these headers; those without a value are left out. */
export function write(start, headers, body = "") {
  const lines = headers.filter(([, value]) => value !== undefined).map(([name, value]) => `${name}: ${value}`);
  return `${start}\r\n${lines.join("\r\n")}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

/** The tag of a From or To header. */
export const tagOf = (header) => /;tag=([^;>]+)/.exec(header ?? "")?.[1];

/** The URI of a Contact, From or To header. */
export const uriOf = (header) => /<([^>]*)>/.exec(header)?.[1] ?? header;

/** The value of Authorization or Proxy-Authorization that answers an MD5 challenge. */
export function answerTo(challenges, { method, uri, user, password }) {
  const md5 = (text) => createHash("md5").update(text).digest("hex");
  const fields = challenges.map((line) => Object.fromEntries([...line.matchAll(/(\w+)=(?:"([^"]*)"|([^\s,]+))/g)].map(([, name, quoted, plain]) => [name, quoted ?? plain])));
  const asked = fields.find(({ algorithm }) => algorithm === undefined || algorithm === "MD5");
  if (!asked) throw new Error(`no MD5 challenge: ${challenges.join(" ")}`);
  const [nc, cnonce] = ["00000001", token()];
  const secret = md5(`${user}:${asked.realm}:${password}`);
  const digest = md5(`${secret}:${asked.nonce}:${nc}:${cnonce}:auth:${md5(`${method}:${uri}`)}`);
  const opaque = asked.opaque === undefined ? "" : `, opaque="${asked.opaque}"`;
  return `Digest username="${user}", realm="${asked.realm}", nonce="${asked.nonce}", uri="${uri}", response="${digest}", algorithm=MD5, qop=auth, nc=${nc}, cnonce="${cnonce}"${opaque}`;
}

const SHORT = { "call-id": "i", contact: "m", from: "f", to: "t", via: "v" };
