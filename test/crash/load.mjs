// Actors that work on the server at the same time until it is killed, each over its own connection.
import { Client, Lost, sleep } from './client.mjs';

/** An actor: step() does one thing. It may end a step early when `world.stopped`. */
export class Actor {
  constructor(world, name) {
    this.world = world;
    this.name = name;
    this.random = world.random.fork(name);
    this.client = new Client(world.server);
  }

  async call(method, path, body, expected) {
    return this.client.call(method, path, body, expected);
  }

  /** Calls `row` with each line of a feed until it ends, the actor must stop, or `forMs` have passed. */
  async follow(method, path, body, row, { forMs = Infinity, ...options } = {}) {
    let disconnect = null;
    const end = Date.now() + forMs;
    const cut = setInterval(() => (this.world.stopped || Date.now() >= end) && disconnect?.(), 20);
    try {
      const opened = (cutter) => {
        disconnect = cutter;
      };
      await this.client.lines(method, path, body, row, opened, options);
    } finally {
      clearInterval(cut);
    }
    if (!this.world.stopped) await sleep(20);
  }

  close() {
    this.client.close();
  }
}

export class Load {
  /** `world`: {server, random, acknowledged(kind)}, shared by all actors. */
  constructor(world, actors) {
    this.world = world;
    this.actors = actors;
    this.running = [];
    this.failure = null;
  }

  start() {
    this.world.stopped = false;
    this.running = this.actors.map((actor) => this.run(actor));
  }

  async run(actor) {
    try {
      while (!this.world.stopped) await actor.step();
    } catch (error) {
      // A missing response means that the server has ended; the actor ends until the next start.
      if (!(error instanceof Lost) || !this.world.server.stopping) {
        error.message = `${actor.name}: ${error.message}`;
        this.failure ??= error;
      }
    }
  }

  /** Stops all actors after their present step, and waits for them. */
  async stop() {
    this.world.stopped = true;
    await Promise.all(this.running);
    for (const actor of this.actors) actor.close();
    if (this.failure) throw this.failure;
  }
}
