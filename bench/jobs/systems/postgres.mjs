// PostgreSQL as its package configures it (fsync and synchronous_commit on).
import pg from 'pg';

import { cpu } from '../../support/cpu.mjs';
import { BIN } from '../../support/postgres.mjs';
import { Instance } from '../instance.mjs';

export class Postgres {
  async start(name) {
    this.instance = new Instance(name, 'postgres');
    const { data } = this.instance;
    this.instance.run(`${BIN}/initdb`, ['-D', data, '-U', 'bench', '-A', 'trust', '-E', 'UTF8', '--locale=C.UTF-8']);
    await this.instance.start(`${BIN}/postgres`, (port) => [
      ...['-D', data, '-p', String(port), '-c', 'listen_addresses=127.0.0.1', '-c', `unix_socket_directories=${data}`],
    ]);
    this.pid = this.instance.pid;
    this.url = `postgres://bench@127.0.0.1:${this.instance.port}/postgres`;
    for (;;) {
      this.client = new pg.Client(this.url);
      try {
        await this.client.connect();
        break;
      } catch (error) {
        if (error.code !== '57P03') throw error; // it is starting up
      }
    }
    this.version = (await this.query('show server_version'))[0].server_version;
  }

  async query(text, values) {
    return (await this.client.query(text, values)).rows;
  }

  cpuSeconds() {
    return cpu(this.pid).all;
  }

  async stop() {
    await this.client.end();
    await this.instance.stop('SIGINT'); // a fast shutdown
  }
}
