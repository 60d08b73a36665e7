// A worker that solves a challenge: the least number for which SHA-256 of "challenge:number" begins with enough zeros.

const primes = [];
for (let n = 2; primes.length < 64; n++) if (primes.every((prime) => n % prime)) primes.push(n);
const fraction = (root) => Math.floor((root % 1) * 2 ** 32) | 0;
const START = primes.slice(0, 8).map((prime) => fraction(Math.sqrt(prime)));
const ROUNDS = Int32Array.from(primes, (prime) => fraction(Math.cbrt(prime)));
const words = new Int32Array(64);
const turn = (word, bits) => (word >>> bits) | (word << (32 - bits));

/** Take a block of 64 bytes into the state of SHA-256. */
function absorb(state, block) {
  const view = new DataView(block.buffer, block.byteOffset);
  for (let n = 0; n < 16; n++) words[n] = view.getInt32(4 * n);
  for (let n = 16; n < 64; n++) {
    const early = words[n - 15],
      late = words[n - 2];
    const small = turn(early, 7) ^ turn(early, 18) ^ (early >>> 3),
      large = turn(late, 17) ^ turn(late, 19) ^ (late >>> 10);
    words[n] = (words[n - 16] + small + words[n - 7] + large) | 0;
  }
  let [a, b, c, d, e, f, g, h] = state;
  for (let n = 0; n < 64; n++) {
    const sums = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25);
    const first = (h + sums + ((e & f) ^ (~e & g)) + ROUNDS[n] + words[n]) | 0;
    const second = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0];
  }
  return [a, b, c, d, e, f, g, h].map((word, place) => (word + state[place]) | 0);
}

/** Return the SHA-256 of a text of `length` bytes, from the state after its first blocks, and the rest of it. */
function digest(state, rest, length) {
  const padded = new Uint8Array(64 * Math.ceil((rest.length + 9) / 64));
  padded.set(rest);
  padded[rest.length] = 0x80;
  new DataView(padded.buffer).setUint32(padded.length - 4, 8 * length);
  for (let at = 0; at < padded.length; at += 64) state = absorb(state, padded.subarray(at, at + 64));
  return state;
}

export function solve(challenge, bits) {
  const encoder = new TextEncoder(),
    begin = encoder.encode(`${challenge}:`),
    whole = begin.length - (begin.length % 64);
  let state = START;
  for (let at = 0; at < whole; at += 64) state = absorb(state, begin.subarray(at, at + 64));
  const rest = [...begin.subarray(whole)];
  for (let answer = 0; ; answer++) {
    const digits = encoder.encode(`${answer}`);
    const [found] = digest(state, [...rest, ...digits], begin.length + digits.length);
    if (Math.clz32(found) >= bits) return answer;
  }
}

if (typeof WorkerGlobalScope !== "undefined")
  addEventListener("message", ({ data: { challenge, bits } }) => {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- to the page that made this worker
    postMessage(solve(challenge, bits));
  });
