// Random numbers from a seed. Every actor of the test has its own stream, so that its actions depend on the
// seed and not on the speed of the others.

function hash(text) {
  let h = 0x811c9dc5;
  for (const byte of Buffer.from(text)) h = Math.imul(h ^ byte, 0x01000193);
  return h >>> 0;
}

export class Random {
  constructor(seed) {
    this.seed = String(seed);
    this.state = hash(this.seed);
  }

  /** Another stream, which depends on this one's seed and on the name alone. */
  fork(name) {
    return new Random(`${this.seed}/${name}`);
  }

  /** From 0 up to, but not including, 1. (mulberry32) */
  real() {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let t = this.state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  }

  /** An integer from 0 up to, but not including, `bound`. */
  below(bound) {
    return Math.floor(this.real() * bound);
  }

  between(low, high) {
    return low + this.below(high - low + 1);
  }

  chance(probability) {
    return this.real() < probability;
  }

  pick(list) {
    return list[this.below(list.length)];
  }

  shuffled(list) {
    const out = [...list];
    for (let i = out.length - 1; i > 0; --i) {
      const j = this.below(i + 1);
      [out[i], out[j]] = [out[j], out[i]];
    }
    return out;
  }
}
