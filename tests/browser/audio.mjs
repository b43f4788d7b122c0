// RTP with PCMU (RFC 3551 §4.5.14): a tone or silence is sent, and the level of what arrives is measured.

import { createSocket } from "node:dgram";
import { once } from "node:events";

/** A stream to and from the engine. */
export class Audio {
  /** Binds a socket; nothing is sent before `send`. */
  static async open() {
    const audio = new Audio();
    audio.socket = createSocket("udp4");
    audio.socket.bind(0, "127.0.0.1");
    await once(audio.socket, "listening");
    audio.port = audio.socket.address().port;
    /** The time and the level in dBov of each packet of audio that arrived. */
    audio.heard = [];
    audio.socket.on("message", (packet) => {
      if (packet.length > 12 && (packet[1] & 0x7f) === 0) audio.heard.push({ at: Date.now(), level: level(packet.subarray(12)) });
    });
    return audio;
  }

  /** Sends 50 packets a second to `port`, a tone when `tone`. */
  send(port, tone) {
    const packet = Buffer.alloc(172);
    packet[0] = 0x80;
    packet.writeUInt32BE(0x51de70e, 8);
    const begin = performance.now();
    let sent = 0;
    this.timer = setInterval(() => {
      // After a late timer the missed packets are sent immediately, so that the average rate is that of a real phone.
      for (; sent * 20 <= performance.now() - begin; sent += 1) {
        packet.writeUInt16BE(sent & 0xffff, 2);
        packet.writeUInt32BE(sent * 160, 4);
        for (let n = 0; n < 160; n += 1) packet[12 + n] = tone ? TONE[(sent * 160 + n) % TONE.length] : 0xff;
        this.socket.send(packet, port, "127.0.0.1");
      }
    }, 10);
  }

  /** Whether the last packets since `from` were loud, or undefined while there are too few. */
  isLoud(from = 0) {
    const last = this.heard.filter(({ at }) => at >= from).slice(-5);
    return last.length < 5 ? undefined : last.every((one) => one.level > LOUD_DBOV);
  }

  /** The time of the first of five packets in a row after `from` that are not loud. */
  quietSince(from) {
    const after = this.heard.filter(({ at }) => at >= from);
    const first = after.findIndex((_, place) => after.length >= place + 5 && after.slice(place, place + 5).every((one) => one.level <= LOUD_DBOV));
    return first < 0 ? undefined : after[first].at;
  }

  close() {
    clearInterval(this.timer);
    this.socket.close();
  }
}

function level(bytes) {
  let power = 0;
  for (const byte of bytes) power += LINEAR[byte] ** 2;
  return power === 0 ? -127 : 10 * Math.log10(power / bytes.length / 32768 ** 2);
}

/** ITU-T G.711 table 2a. */
const LINEAR = Array.from({ length: 256 }, (_, code) => {
  const value = ~code & 0xff;
  const magnitude = (((value & 0x0f) << 3) + 0x84 << ((value >> 4) & 7)) - 0x84;
  return value & 0x80 ? -magnitude : magnitude;
});
/** The PCMU code nearest to a sample. */
const nearest = (sample) => LINEAR.reduce((best, value, code) => (Math.abs(value - sample) < Math.abs(LINEAR[best] - sample) ? code : best), 0);
/** Eight samples of 1,000 Hz. */
const TONE = Array.from({ length: 8 }, (_, n) => nearest(8000 * Math.sin((Math.PI * n) / 4)));
/** A level between that of a phone's tone and a room's noise. */
const LOUD_DBOV = -40;
