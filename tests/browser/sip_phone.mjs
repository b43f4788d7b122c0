// A SIP phone over UDP whose texts are all set by the test: display name, User-Agent, Call-ID, reason phrases.

import { createSocket } from "node:dgram";
import { once } from "node:events";

import { Audio } from "./audio.mjs";
import { DOMAIN, PASSWORD } from "./directory.mjs";
import { until } from "./engine.mjs";
import { answerTo, parse, tagOf, token, uriOf, write } from "./sip_message.mjs";

export class SipPhone {
  /**
   * Binds a socket. `answer` is the response to an INVITE: `{ status, phrase, headers }`, 200 unless given.
   */
  static async open(engine, number, { name = number, agent = "Test phone", answer = { status: 200, phrase: "OK" } } = {}) {
    const phone = new SipPhone();
    const [host, port] = engine?.sip.split(":") ?? [];
    Object.assign(phone, { number, name, agent, answer, host, server: Number(port), waiting: new Map(), calls: new Map(), answered: new Map() });
    phone.notes = [];
    phone.socket = createSocket("udp4");
    phone.socket.bind(0, "127.0.0.1");
    await once(phone.socket, "listening");
    phone.port = phone.socket.address().port;
    phone.socket.on("message", (datagram, from) => phone.#receive(parse(datagram), from).catch((error) => (phone.failure = error)));
    return phone;
  }

  /** Registers; throws unless the answer is 200. */
  async register() {
    const headers = [...this.#fromTo(DOMAIN), ["Call-ID", token()], ["Contact", this.#contact()], ["Expires", "600"]];
    const answer = await this.#ask("REGISTER", `sip:${DOMAIN}`, headers);
    if (answer.status !== 200) throw new Error(`REGISTER ${this.number}: ${answer.start}`);
    return this;
  }

  /** Calls `target`; resolves with the call once there is a final response; `status` is that of the response. */
  async call(target, { callId = token(), headers = [], tone = false } = {}) {
    const audio = await Audio.open();
    const [from, [, to]] = this.#fromTo(DOMAIN, target);
    const uri = `sip:${target}@${DOMAIN}`;
    const lines = [from, ["To", to], ["Call-ID", callId], ["Contact", this.#contact()], ["Content-Type", "application/sdp"], ...headers];
    const answer = await this.#ask("INVITE", uri, lines, this.#sdp(audio.port));
    const call = { callId, audio, status: answer.status, local: from[1], remote: answer.get("to"), target: uri, sequence: this.sequence };
    if (answer.status !== 200) {
      audio.close();
      return call;
    }
    call.target = uriOf(answer.get("contact"));
    this.#acknowledge(call);
    this.calls.set(callId, call);
    audio.send(portOf(answer.body), tone);
    return call;
  }

  /** Ends a call. */
  async hangUp(call, headers = []) {
    this.calls.delete(call.callId);
    call.audio.close();
    await this.#ask("BYE", call.target, [["From", call.local], ["To", call.remote], ["Call-ID", call.callId], ...headers]);
  }

  close() {
    for (const call of this.calls.values()) call.audio.close();
    for (const { timer } of this.waiting.values()) clearInterval(timer);
    this.socket.close();
    if (this.failure) throw this.failure;
  }

  sequence = 0;

  /** Sends a request, again with credentials when challenged, and returns the final response. */
  async #ask(method, uri, headers, body = "", credentials) {
    this.sequence += 1;
    const branch = `z9hG4bK${token()}`;
    const all = [["Via", `SIP/2.0/UDP 127.0.0.1:${this.port};branch=${branch};rport`], ["Max-Forwards", "70"], ...headers, ["CSeq", `${this.sequence} ${method}`], ["User-Agent", this.agent], credentials ?? ["Supported", "path"]];
    const text = write(`${method} ${uri} SIP/2.0`, all, body);
    const send = () => this.socket.send(text, this.server, this.host);
    const entry = { answers: [], timer: setInterval(() => entry.answers.length === 0 && send(), 500) };
    this.waiting.set(branch, entry);
    send();
    const answer = await until(`the answer to ${method} of ${this.number}`, () => entry.answers.find(({ status }) => status >= 200));
    clearInterval(entry.timer);
    this.waiting.delete(branch);
    if (method === "INVITE" && answer.status !== 200) {
      const kept = all.filter(([name]) => ["Via", "From", "Call-ID", "Max-Forwards"].includes(name));
      const ack = [...kept, ["To", answer.get("to")], ["CSeq", `${this.sequence} ACK`]];
      this.socket.send(write(`ACK ${uri} SIP/2.0`, ack), this.server, this.host);
    }
    if (![401, 407].includes(answer.status) || credentials) return answer;
    const [challenge, name] = answer.status === 401 ? ["www-authenticate", "Authorization"] : ["proxy-authenticate", "Proxy-Authorization"];
    const value = answerTo(answer.all(challenge), { method, uri, user: this.number, password: PASSWORD });
    return this.#ask(method, uri, headers, body, [name, value]);
  }

  #acknowledge(call) {
    const via = `SIP/2.0/UDP 127.0.0.1:${this.port};branch=z9hG4bK${token()};rport`;
    const lines = [["Via", via], ["Max-Forwards", "70"], ["From", call.local], ["To", call.remote], ["Call-ID", call.callId], ["CSeq", `${call.sequence} ACK`]];
    this.socket.send(write(`ACK ${call.target} SIP/2.0`, lines), this.server, this.host);
  }

  async #receive(message, from) {
    if (message.status) {
      const branch = /branch=([^;]+)/.exec(message.get("via"))?.[1];
      this.waiting.get(branch)?.answers.push(message);
      // A retransmitted response means that the ACK was lost.
      const call = this.calls.get(message.get("call-id"));
      if (call && message.status === 200 && message.get("cseq").endsWith("INVITE")) this.#acknowledge(call);
      return;
    }
    const key = `${message.method} ${message.get("via")} ${message.get("cseq")}`;
    if (message.method === "ACK") return;
    if (!this.answered.has(key)) this.answered.set(key, await this.#answerTo(message));
    this.socket.send(this.answered.get(key), from.port, from.address);
  }

  /** The answer to a request. */
  async #answerTo(message) {
    const callId = message.get("call-id");
    const kept = ["via", "from", "to", "call-id", "cseq"].flatMap((name) => message.all(name).map((value) => [name, value]));
    const tagged = kept.map(([name, value]) => [name, name === "to" && !tagOf(value) ? `${value};tag=${this.number}` : value]);
    const reply = (status, phrase, headers = [], body = "") => write(`SIP/2.0 ${status} ${phrase}`, [...tagged, ["User-Agent", this.agent], ...headers], body);
    if (message.method === "BYE") {
      this.calls.get(callId)?.audio.close();
      this.calls.delete(callId);
    } else if (["INFO", "MESSAGE"].includes(message.method)) {
      this.notes.push(message.body);
    } else if (message.method === "INVITE" && !this.calls.has(callId)) {
      const { status, phrase, headers = [] } = this.answer;
      if (status !== 200) return reply(status, phrase, headers);
      const audio = await Audio.open();
      const [to, local] = [message.get("from"), `${message.get("to")};tag=${this.number}`];
      this.calls.set(callId, { callId, audio, local, remote: to, target: uriOf(message.get("contact")), sequence: 1 });
      audio.send(portOf(message.body), true);
      return reply(200, phrase, [["Contact", this.#contact()], ["Content-Type", "application/sdp"], ...headers], this.#sdp(audio.port));
    }
    return reply(200, "OK", message.method === "INVITE" ? [["Contact", this.#contact()]] : []);
  }

  #contact() {
    return `<sip:${this.number}@127.0.0.1:${this.port}>`;
  }

  #fromTo(domain, target = this.number) {
    const quoted = this.name.replaceAll("\\", "\\\\").replaceAll('"', '\\"');
    return [["From", `"${quoted}" <sip:${this.number}@${domain}>;tag=${token()}`], ["To", `<sip:${target}@${domain}>`]];
  }

  #sdp(port) {
    return `v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio ${port} RTP/AVP 0\r\na=rtpmap:0 PCMU/8000\r\na=sendrecv\r\n`;
  }
}

/** The audio port in a session description. */
const portOf = (sdp) => Number(/m=audio (\d+)/.exec(sdp)[1]);
