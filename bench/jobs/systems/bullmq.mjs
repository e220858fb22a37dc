// BullMQ on Redis with its append-only file, synced every second (what Redis recommends and calls its default) or
// before each answer.
import { readFileSync } from 'node:fs';

import { Queue, Worker } from 'bullmq';
import IORedis from 'ioredis';

import { cpu } from '../../support/cpu.mjs';
import { ADD, inBatches } from '../batches.mjs';
import { Instance } from '../instance.mjs';

const FAST = { concurrency: 100 };
const { version } = JSON.parse(readFileSync(new URL('../../node_modules/bullmq/package.json', import.meta.url)));

class BullMq {
  constructor(fsync) {
    this.fsync = fsync;
    this.name = `BullMQ ${fsync}`;
    this.module = 'bullmq';
    this.fast = FAST;
    this.rescues = [
      { name: 'default', options: {} },
      { name: 'lockDuration and stalledInterval 1 s', options: { lockDuration: 1000, stalledInterval: 1000 } },
    ];
    this.durable = fsync === 'always';
    this.settings = `addBulk of ${ADD.batch}, ${ADD.connections} at a time; ${JSON.stringify(FAST)}`;
  }

  async start() {
    this.instance = new Instance(`redis-${this.fsync}`, 'redis');
    const { data } = this.instance;
    const settings = { bind: '127.0.0.1', dir: data, appendonly: 'yes', appendfsync: this.fsync, 'maxmemory-policy': 'noeviction', save: '' };
    const flags = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
    await this.instance.start('/usr/bin/redis-server', (port) => ['--port', String(port), ...flags]);
    this.pid = this.instance.pid;
    this.address = { host: '127.0.0.1', port: this.instance.port, maxRetriesPerRequest: null };
    this.redis = new IORedis(this.address);
    const info = await this.redis.info('server');
    this.version = `${version} on Redis ${/redis_version:(\S+)/.exec(info)[1]}`;
  }

  async stop() {
    await this.redis.quit();
    await this.instance.stop();
  }

  cpuSeconds() {
    return cpu(this.pid).all;
  }

  async prepare() {}

  async add(queue, count) {
    const bull = new Queue(queue, { connection: this.address });
    await inBatches(count, (size) => bull.addBulk(Array.from({ length: size }, () => ({ name: 'job', data: {} }))));
    await bull.close();
  }

  async adder(queue) {
    const bull = new Queue(queue, { connection: this.address });
    return { add: (data) => bull.add('job', data), close: () => bull.close() };
  }

  worker(queue, handler, options) {
    return startWorker(this.address, queue, handler, options);
  }

  async hasEnded(queue) {
    return (await this.redis.zcard(`bull:${queue}:completed`)) > 0;
  }
}

export async function startWorker(address, queue, handler, { onOutcome, ...options } = {}) {
  const worker = new Worker(queue, (job) => handler(job.data), { connection: address, ...options });
  worker.on('completed', () => onOutcome?.('finished'));
  worker.on('failed', (_, error) => onOutcome?.(error.message));
  worker.on('error', (error) => (onOutcome ?? console.error)(error.message));
  await worker.waitUntilReady();
  return { stop: () => worker.close() };
}

export const create = [() => new BullMq('always'), () => new BullMq('everysec')];
