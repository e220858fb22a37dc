// Actors that add and run jobs, and the test's model of the jobs.
//
// An attempt at a job is known by its lock. Of all attempts at a job at most one may ever finish it, and only
// the one that was accepted last may report on it; epochs grow with every attempt.
import { Lost, check, sleep, until } from './client.mjs';
import { Actor } from './load.mjs';

/** A running `crash-attempt` job is kept by its attempt's updates, a `crash-worker` job by its worker's heartbeats. */
export const kTypes = ['crash-attempt', 'crash-worker'];
const kSettings = { timeout: 2000, backoff_min: 100, backoff_max: 500, max_attempts: 100_000 };
const kRole = 'crash';
const kPage = 1000;

class Job {
  constructor(type, id, data, scheduledAt) {
    Object.assign(this, { type, id, data, scheduledAt });
    this.added = false; // acknowledged
    this.epoch = 0; // of the latest known attempt
    this.lock = null; // of that attempt
    this.stale = []; // locks of attempts before it
    this.finished = false; // acknowledged
    this.finishing = new Set(); // data of finishes without a response
    this.removing = false;
    this.dataSeen = false; // of the finished job
  }

  get path() {
    return `/_jobs/${this.type}/${encodeURIComponent(this.id)}`;
  }
}

export class Jobs {
  constructor() {
    this.all = new Map(); // id → Job
    this.removed = new Set(); // ids
  }

  async declare(client) {
    for (const type of kTypes) await client.call('PUT', `/_jobs/${type}`, kSettings, [201]);
  }

  accepted(type, given) {
    const job = this.all.get(given.id);
    const name = `${type}/${given.id}`;
    check(job !== undefined, `job ${name} was accepted, but was ${this.removed.has(given.id) ? 'removed' : 'never added'}`);
    check(job.type === type, `job ${name} is of type ${job.type}`);
    check(!job.finished, `job ${name} was finished, and was given out again`);
    check(given.epoch > job.epoch, `job ${name} was given out at epoch ${given.epoch}, after ${job.epoch}`);
    check(JSON.stringify(given.data) === job.data, () => `job ${name} has the data ${JSON.stringify(given.data)}`);
    check(Date.now() >= job.scheduledAt, `job ${name} was given out before its time`);
    if (job.lock) job.stale.push(job.lock);
    job.lock = given.lock;
    job.epoch = given.epoch;
    return job;
  }

  /** The server has confirmed that an attempt with this lock has finished the job. */
  finished(job, lock, data) {
    check(job.lock === lock, `job ${job.id} was finished by an attempt that had lost it`);
    check(!job.finished, `job ${job.id} was finished twice`);
    job.finished = true;
    job.data = data;
    job.finishing.clear();
  }

  async list(client, type) {
    const jobs = [];
    for (let start = ''; ; ) {
      const page = (await client.get(`/_jobs/${type}/_list?limit=${kPage}&start_id=${encodeURIComponent(start)}`)).jobs;
      jobs.push(...(start === '' ? page : page.slice(1)));
      if (page.length < kPage) return new Map(jobs.map((job) => [job.id, job]));
      start = page.at(-1).id;
    }
  }

  /** Compares the server's jobs with the model. No actor may change jobs meanwhile. */
  async verify(client) {
    for (const type of kTypes) {
      const listed = await this.list(client, type);
      for (const job of [...this.all.values()]) {
        if (job.type === type) await this.verify_job(client, job, listed.get(job.id));
      }
      for (const id of listed.keys()) check(this.all.has(id), `job ${type}/${id} is there, but should not be`);
      await this.verify_counts(client, type);
    }
    await this.verify_stale(client);
    return this.all.size;
  }

  async verify_job(client, job, found) {
    const name = `${job.type}/${job.id}`;
    if (!found) {
      check(!job.added || job.removing, `job ${name} is lost`);
      this.all.delete(job.id);
      if (job.removing) this.removed.add(job.id);
      return;
    }
    check(found.epoch >= job.epoch, `the epoch of job ${name} went back from ${job.epoch} to ${found.epoch}`);
    check(found.scheduled_at === job.scheduledAt || found.attempt > 0, `job ${name} lost its time`);
    if (job.finished) {
      check(found.state === 'finished', `job ${name} was finished and is ${found.state}`);
    }
    const unseen = job.finished && !job.dataSeen;
    if (!job.added || job.finishing.size > 0 || unseen) await this.resolve(client, job, found);
    check(found.state !== 'finished' || job.finished, `job ${name} is finished, but no worker finished it`);
    check(['pending', 'running', 'finished'].includes(found.state), `job ${name} is ${found.state}`);
    job.added = true;
    job.removing = false;
  }

  async resolve(client, job, found) {
    const data = JSON.stringify((await client.get(job.path)).data);
    if (found.state === 'finished' && !job.finished) {
      check(job.finishing.has(data), `job ${job.type}/${job.id} is finished with data that no worker sent`);
      job.finished = true;
      job.data = data;
    }
    check(data === job.data, `job ${job.type}/${job.id} has the data ${data}`);
    job.finishing.clear();
    job.dataSeen = job.finished;
  }

  // The server may reclaim silent jobs between two reads: then the next two agree.
  async verify_counts(client, type) {
    await until(`the counts of ${type} are those of its jobs`, async () => {
      const { counts } = await client.get(`/_jobs/${type}`);
      const there = { pending: 0, running: 0, finished: 0, failed: 0, cancelled: 0 };
      for (const { state } of (await this.list(client, type)).values()) ++there[state];
      return Object.entries(there).every(([state, count]) => counts[state] === count);
    }, 30_000);
  }

  // Attempts that lost their job get `halt`, and change nothing.
  async verify_stale(client) {
    for (const job of this.all.values()) {
      for (const lock of job.stale.splice(0)) {
        const { json } = await client.call('POST', `${job.path}/_finish`, { lock, data: '"stale"' }, [200, 409]);
        check(json.error === 'halt', `a stale attempt at job ${job.type}/${job.id} could finish it`);
      }
    }
  }

  /** Runs all remaining jobs; none may be stuck. */
  async drain(client, worker) {
    await until('all jobs are finished', async () => {
      for (const type of kTypes) {
        const body = { limit: 100, ...(type === kTypes[1] && { worker }) };
        const { json } = await client.call('POST', `/_jobs/${type}/_accept`, body, [200]);
        for (const given of json.jobs) {
          const job = this.accepted(type, given);
          await client.call('POST', `${job.path}/_finish`, { lock: job.lock }, [200]);
          this.finished(job, job.lock, job.data);
        }
      }
      return [...this.all.values()].every((job) => job.finished);
    });
  }
}

/** Adds jobs, and removes some that are finished. */
export class JobAdder extends Actor {
  number = 0;

  async step() {
    const { jobs } = this.world;
    const type = this.random.pick(kTypes);
    const scheduledAt = this.random.chance(0.2) ? Date.now() + this.random.between(10, 2000) : 0;
    const padding = this.random.chance(0.05) ? 'x'.repeat(150_000) : 'x';
    const job = new Job(type, `job ${++this.number}`, JSON.stringify({ n: this.number, padding }), scheduledAt);
    jobs.all.set(job.id, job);
    const { json } = await this.call('PUT', job.path, `{"data":${job.data},"scheduled_at":${scheduledAt}}`, [201]);
    check(json.created, `job ${job.id} was there before it was added`);
    job.added = true;
    this.world.acknowledged('job');
    if (this.random.chance(0.4)) await this.remove_one(jobs);
    await sleep(this.random.between(0, 20));
  }

  async remove_one(jobs) {
    let ended = null;
    for (const job of jobs.all.values()) {
      if (job.finished) {
        ended = job;
        break;
      }
    }
    if (!ended) return;
    ended.removing = true;
    await this.call('DELETE', ended.path, undefined, [200]);
    jobs.all.delete(ended.id);
    jobs.removed.add(ended.id);
  }
}

/** Accepts jobs and finishes most of them; fails some, and abandons some. */
export class JobWorker extends Actor {
  type = kTypes[0];

  accept_body() {
    return { limit: this.random.between(1, 4), timeout: 100 };
  }

  async step() {
    const { json } = await this.call('POST', `/_jobs/${this.type}/_accept`, this.accept_body(), [200, 404]);
    if (json.error) return this.unregistered(json);
    const accepted = json.jobs.map((given) => this.world.jobs.accepted(this.type, given));
    for (const job of accepted) await this.work(job, job.lock);
  }

  unregistered(answer) {
    check(false, () => `jobs could not be accepted: ${JSON.stringify(answer)}`);
  }

  // An attempt may get `halt` if its timeout has passed.
  async work(job, lock) {
    if (this.random.chance(0.5)) {
      await this.call('POST', `${job.path}/_update`, { lock, progress: { n: 1 } }, [200, 409]);
    }
    const fate = this.random.real();
    if (fate < 0.08) return;
    if (fate < 0.2) {
      await this.call('POST', `${job.path}/_fail`, { lock, error: 'as drawn' }, [200, 409]);
      return;
    }
    const data = JSON.stringify({ done: ++this.world.written });
    job.finishing.add(data);
    const answer = await this.call('POST', `${job.path}/_finish`, `{"lock":"${lock}","data":${data}}`, [200, 409]);
    job.finishing.delete(data);
    if (answer.status === 409) return;
    this.world.jobs.finished(job, lock, data);
    this.world.acknowledged('job');
  }
}

/** The same, for a registered worker, whose heartbeat is the lease of its jobs. It registers again now and then. */
export class RegisteredWorker extends JobWorker {
  type = kTypes[1];
  incarnation = null;
  beatAt = 0;

  get path() {
    return `/_workers/${kRole}/${encodeURIComponent(this.name)}`;
  }

  accept_body() {
    return { ...super.accept_body(), worker: { role: kRole, id: this.name, incarnation: this.incarnation } };
  }

  unregistered(answer) {
    check(['halt', 'not_found'].includes(answer.error), () => `worker ${this.name}: ${JSON.stringify(answer)}`);
    this.incarnation = null; // it was evicted
  }

  async step() {
    if (this.incarnation === null || this.random.chance(0.02)) await this.register();
    if (Date.now() >= this.beatAt) {
      this.beatAt = Date.now() + 300;
      const body = { incarnation: this.incarnation };
      const { json } = await this.call('POST', `${this.path}/_heartbeat`, body, [200, 409]);
      if (json.error) return this.unregistered(json);
    }
    await super.step();
  }

  async register() {
    this.incarnation = null;
    const { json } = await this.call('PUT', this.path, { timeout: 3000, opts: { n: ++this.world.written } }, [201]);
    this.incarnation = json.incarnation;
  }
}

/** Registers workers with long timeouts, and removes them. */
export class Registrar extends Actor {
  workers = new Map(); // id → {incarnation, opts}, as acknowledged
  unsure = new Map(); // id → attempted without a response: opts, or null for a removal

  path(id) {
    return `/_workers/${kRole}-patient/${id}`;
  }

  async step() {
    const id = `w${this.random.below(12)}`; // w1 and w10 are different workers
    if (this.workers.has(id) && this.random.chance(0.5)) {
      this.unsure.set(id, null);
      await this.call('DELETE', this.path(id), undefined, [200]);
      this.workers.delete(id);
    } else {
      const opts = { n: ++this.world.written };
      this.unsure.set(id, opts);
      const { json } = await this.call('PUT', this.path(id), { timeout: 3_600_000, opts }, [201]);
      this.workers.set(id, { incarnation: json.incarnation, opts });
    }
    this.unsure.delete(id);
    await sleep(this.random.between(0, 100));
  }

  async verify(client) {
    const found = new Map((await client.get(`/_workers/${kRole}-patient`)).workers.map((w) => [w.id, w]));
    for (const [id, attempted] of this.unsure) this.resolve(id, attempted, found.get(id));
    this.unsure.clear();
    for (const [id, worker] of this.workers) {
      check(found.get(id)?.incarnation === worker.incarnation, `the registration of worker ${id} is lost`);
      check(found.get(id).opts.n === worker.opts.n, `the options of worker ${id} are lost`);
    }
    check(found.size === this.workers.size, 'a worker is registered that should not be');
  }

  resolve(id, attempted, now) {
    if (attempted === null && !now) this.workers.delete(id);
    if (attempted !== null && now && now.opts.n === attempted.n) {
      this.workers.set(id, { incarnation: now.incarnation, opts: attempted });
    }
  }
}

/** A worker that holds a connection and sends heartbeats. */
export class Holder extends Actor {
  get path() {
    return `/_workers/${kRole}-held/${encodeURIComponent(this.name)}`;
  }

  async step() {
    let incarnation = null;
    const beating = setInterval(() => {
      if (incarnation === null) return;
      this.client.call('POST', `${this.path}/_heartbeat`, { incarnation }, [200, 409]).catch(() => {});
    }, 500);
    try {
      await this.follow('POST', `${this.path}/_hold`, '{"timeout":2000}', (line) => (incarnation = line.incarnation ?? null));
    } finally {
      clearInterval(beating);
    }
    if (!this.world.stopped) throw new Lost('a held connection was closed');
  }

  async verify_gone(client) {
    await until('the workers whose connections are closed are gone', async () =>
      (await client.get(`/_workers/${kRole}-held`)).workers.length === 0);
  }
}
