// A SIP phone in a web page: SIP over a WebSocket (RFC 7118), audio by WebRTC, one call at a time. Tests drive it by
// `window.phone` and measure the received audio.
'use strict';

const random = () => crypto.randomUUID().replaceAll('-', '').slice(0, 16);

/** A message: its first line, its headers by lower-case name, in order, and its body. */
function parse(text) {
  const end = text.indexOf('\r\n\r\n');
  const [first, ...lines] = text.slice(0, end).split('\r\n');
  const headers = {};
  for (const line of lines) {
    const colon = line.indexOf(':');
    (headers[line.slice(0, colon).trim().toLowerCase()] ||= []).push(line.slice(colon + 1).trim());
  }
  const response = first.match(/^SIP\/2\.0 (\d{3})/);
  return {first, headers, body: text.slice(end + 4), status: response ? Number(response[1]) : 0, method: first.split(' ')[0]};
}

/** The URI between angle brackets. */
const uriOf = value => value.match(/<([^>]+)>/)[1];

/** The answer to a challenge with SHA-256 (RFC 7616, RFC 8760), which a WebSocket is always offered. */
async function answerTo(challenges, method, uri, user, password) {
  const challenge = challenges.find(value => value.includes('SHA-256'));
  const value = name => challenge.match(new RegExp(`\\b${name}="?([^",]+)`))?.[1];
  const hex = async text => {
    const bytes = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)));
    return [...bytes].map(byte => byte.toString(16).padStart(2, '0')).join('');
  };
  const [realm, nonce, cnonce] = [value('realm'), value('nonce'), random()];
  const [a1, a2] = [await hex(`${user}:${realm}:${password}`), await hex(`${method}:${uri}`)];
  const response = await hex(`${a1}:${nonce}:00000001:${cnonce}:auth:${a2}`);
  return `Digest username="${user}", realm="${realm}", nonce="${nonce}", uri="${uri}", response="${response}", ` +
    `algorithm=SHA-256, cnonce="${cnonce}", qop=auth, nc=00000001`;
}

class Phone {
  constructor(url, number, password, domain) {
    Object.assign(this, {number, password, domain, host: `${random()}.invalid`});
    /** `idle`, `calling`, `early`, `incoming` or `talking`. */
    this.state = 'idle';
    this.ended = 0;
    /** Every message, for the failure message. */
    this.log = [];
    this.clients = new Map();
    this.context = new AudioContext();
    this.socket = new WebSocket(url, 'sip');
    this.socket.binaryType = 'arraybuffer';
    this.opened = new Promise((resolve, reject) => {
      this.socket.onopen = resolve;
      this.socket.onerror = () => reject(new Error(`no WebSocket to ${url}`));
    });
    this.socket.onclose = ({code}) => this.log.push(`closed with ${code}`);
    this.socket.onmessage = ({data}) => {
      const text = typeof data === 'string' ? data : new TextDecoder().decode(data);
      this.log.push(`< ${text}`);
      const message = parse(text);
      const handled = message.status ? this.takeResponse(message) : this.takeRequest(message);
      Promise.resolve(handled).catch(error => this.log.push(`! ${error.stack}`));
    };
  }

  // --- Commands of a test.

  async register() {
    await this.opened;
    const uri = `sip:${this.domain}`, self = `<sip:${this.number}@${this.domain}>`;
    const parts = {from: `${self};tag=${random()}`, to: self, callId: random(), cseq: 1, headers: ['Expires: 300']};
    return (await this.ask('REGISTER', uri, parts)).status;
  }

  /** Calls a number; returns the final status. */
  async dial(number) {
    const uri = `sip:${number}@${this.domain}`;
    const from = `<sip:${this.number}@${this.domain}>;tag=${random()}`;
    this.dialog = {from, to: `<${uri}>`, callId: random(), cseq: 1, routes: [], target: uri};
    this.state = 'calling';
    await this.open();
    await this.connection.setLocalDescription(await this.connection.createOffer());
    const dialog = this.dialog;
    const response = await this.ask('INVITE', uri, this.invite(), early => {
      if (early.body && this.state === 'calling') {
        this.state = 'early';
        return this.connection.setRemoteDescription({type: 'pranswer', sdp: early.body});
      }
    });
    if (response.status >= 300) {
      this.close();
      return response.status;
    }
    dialog.to = response.headers.to[0];
    dialog.routes = (response.headers['record-route'] || []).reverse();
    await this.settle(response);
    this.state = 'talking';
    return response.status;
  }

  /** Answers the ringing call. */
  async answer() {
    await this.open();
    await this.accept(this.ringing);
  }

  /** Refuses the ringing call. */
  refuse(status) {
    this.respond(this.ringing, `${status} Refused`);
    this.close();
  }

  /** Offers audio in this direction: `sendonly` holds, `sendrecv` resumes. */
  async offer(direction) {
    this.connection.getTransceivers()[0].direction = direction;
    await this.connection.setLocalDescription(await this.connection.createOffer());
    this.dialog.cseq += 1;
    const response = await this.ask('INVITE', this.dialog.target, this.invite());
    if (response.status < 300) await this.settle(response);
    return response.status;
  }

  async hangUp() {
    if (this.state !== 'talking') {
      this.send('CANCEL', this.sent.uri, {...this.sent.parts, body: '', headers: []}, this.sent.branch);
      return;
    }
    this.dialog.cseq += 1;
    const response = await this.ask('BYE', this.dialog.target, this.dialog);
    this.close();
    return response.status;
  }

  /** The amplitude of each frequency in the audio received now, of 32,768. */
  loud(frequencies) {
    if (!this.analyser) return frequencies.map(() => 0);
    const samples = new Float32Array(this.analyser.fftSize);
    this.analyser.getFloatTimeDomainData(samples);
    return frequencies.map(hz => {
      const turn = 2 * Math.PI * hz / this.context.sampleRate;
      let sine = 0, cosine = 0;
      samples.forEach((sample, at) => {
        sine += sample * Math.sin(at * turn);
        cosine += sample * Math.cos(at * turn);
      });
      return 32768 * 2 * Math.hypot(sine, cosine) / samples.length;
    });
  }

  // --- Media.

  async open() {
    const audio = {echoCancellation: false, noiseSuppression: false, autoGainControl: false};
    this.microphone = await navigator.mediaDevices.getUserMedia({audio});
    this.connection = new RTCPeerConnection();
    this.connection.ontrack = ({track}) => this.listen(new MediaStream([track]));
    for (const track of this.microphone.getTracks()) this.connection.addTrack(track, this.microphone);
  }

  listen(stream) {
    // Chromium decodes a remote track only while an element plays it.
    this.player = new Audio();
    this.player.muted = true;
    this.player.srcObject = stream;
    this.player.play();
    this.analyser = this.context.createAnalyser();
    this.analyser.fftSize = 16384;
    this.context.createMediaStreamSource(stream).connect(this.analyser);
  }

  close() {
    this.connection?.close();
    this.microphone?.getTracks().forEach(track => track.stop());
    Object.assign(this, {state: 'idle', ended: this.ended + 1, connection: null, analyser: null, ringing: null});
  }

  // --- SIP.

  get contact() {
    return `Contact: <sip:${this.number}@${this.host};transport=ws>`;
  }

  invite() {
    const body = this.connection.localDescription.sdp;
    return {...this.dialog, headers: ['Content-Type: application/sdp'], body};
  }

  /** Applies the answer in a 2xx, and acknowledges it. */
  async settle(response) {
    if (response.headers.contact) this.dialog.target = uriOf(response.headers.contact[0]);
    this.send('ACK', this.dialog.target, this.dialog);
    await this.connection.setRemoteDescription({type: 'answer', sdp: response.body});
  }

  /** Answers an INVITE that begins a call or changes it; without an offer it gets one. */
  async accept(request) {
    if (request.body) {
      await this.connection.setRemoteDescription({type: 'offer', sdp: request.body});
      await this.connection.setLocalDescription(await this.connection.createAnswer());
    } else {
      await this.connection.setLocalDescription(await this.connection.createOffer());
    }
    this.respond(request, '200 OK', this.connection.localDescription.sdp);
  }

  takeRequest(request) {
    const {method, headers} = request;
    if (method === 'ACK') {
      this.state = 'talking';
      if (request.body) return this.connection.setRemoteDescription({type: 'answer', sdp: request.body});
    } else if (method === 'INVITE' && this.dialog?.callId === headers['call-id'][0] && this.state === 'talking') {
      return this.accept(request);
    } else if (method === 'INVITE' && this.state !== 'idle') {
      this.respond(request, '486 Busy Here');
    } else if (method === 'INVITE') {
      const to = `${headers.to[0]};tag=${random()}`;
      this.dialog = {from: to, to: headers.from[0], callId: headers['call-id'][0], cseq: 1,
        target: uriOf(headers.contact[0]), routes: headers['record-route'] || []};
      headers.to = [to];
      Object.assign(this, {ringing: request, state: 'incoming', caller: headers.from[0]});
      this.respond(request, '180 Ringing');
    } else if (method === 'BYE') {
      this.respond(request, '200 OK');
      this.close();
    } else if (method === 'CANCEL') {
      this.respond(request, '200 OK');
      this.respond(this.ringing, '487 Request Terminated');
      this.close();
    } else {
      this.respond(request, ['OPTIONS', 'INFO', 'NOTIFY'].includes(method) ? '200 OK' : '405 Method Not Allowed');
    }
  }

  takeResponse(response) {
    const branch = response.headers.via[0].match(/branch=([^;]+)/)[1];
    const client = this.clients.get(branch);
    // A CANCEL has the branch of its INVITE.
    if (!client || !response.headers.cseq[0].endsWith(client.method)) return;
    if (response.status < 200) return client.provisional?.(response);
    this.clients.delete(branch);
    client.final(response);
  }

  /** Sends a request, with credentials after a challenge, and returns its final response. */
  async ask(method, uri, parts, provisional) {
    let [response, branch] = await this.exchange(method, uri, parts, provisional);
    if (response.status === 401 || response.status === 407) {
      const [header, name] = response.status === 401 ? ['www-authenticate', 'Authorization'] : ['proxy-authenticate', 'Proxy-Authorization'];
      const answer = await answerTo(response.headers[header], method, uri, this.number, this.password);
      if (parts === this.dialog || parts.callId === this.dialog?.callId) this.dialog.cseq += 1;
      parts = {...parts, cseq: parts.cseq + 1, headers: [...(parts.headers || []), `${name}: ${answer}`]};
      [response, branch] = await this.exchange(method, uri, parts, provisional);
    }
    return response;
  }

  async exchange(method, uri, parts, provisional) {
    const branch = `z9hG4bK${random()}`;
    const response = await new Promise(final => {
      this.clients.set(branch, {method, provisional, final});
      if (method === 'INVITE') this.sent = {uri, parts, branch};
      this.send(method, uri, parts, branch);
    });
    if (method === 'INVITE' && response.status >= 300) {
      this.send('ACK', uri, {...parts, to: response.headers.to[0], body: '', headers: []}, branch);
    }
    return [response, branch];
  }

  send(method, uri, parts, branch = `z9hG4bK${random()}`) {
    const lines = [`${method} ${uri} SIP/2.0`, `Via: SIP/2.0/WSS ${this.host};branch=${branch}`, 'Max-Forwards: 70',
      ...(parts.routes || []).map(route => `Route: ${route}`),
      `From: ${parts.from}`, `To: ${parts.to}`, `Call-ID: ${parts.callId}`, `CSeq: ${parts.cseq} ${method}`];
    if (['INVITE', 'REGISTER'].includes(method)) lines.push(this.contact);
    this.write([...lines, ...(method === 'ACK' ? [] : parts.headers || [])], method === 'ACK' ? '' : parts.body || '');
  }

  respond(request, status, body = '') {
    const lines = [`SIP/2.0 ${status}`];
    for (const name of ['via', 'record-route', 'from', 'to', 'call-id', 'cseq']) {
      lines.push(...(request.headers[name] || []).map(value => `${name}: ${value}`));
    }
    if (request.method === 'INVITE') lines.push(this.contact);
    if (body) lines.push('Content-Type: application/sdp');
    this.write(lines, body);
  }

  write(lines, body) {
    const text = [...lines, `Content-Length: ${new TextEncoder().encode(body).length}`, '', body].join('\r\n');
    this.log.push(`> ${text}`);
    this.socket.send(text);
  }
}
