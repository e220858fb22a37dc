// A PostgreSQL server on a fresh data directory, with its default settings: each commit is synced.
import { execFileSync } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

// Its programs are in a folder with the number of the version.
const versions = '/usr/lib/postgresql';
export const BIN = existsSync(versions) ? path.join(versions, readdirSync(versions).at(-1), 'bin') : '';

export class Postgres {
  static async start(name) {
    const postgres = new Postgres();
    postgres.directory = path.join(os.tmpdir(), `divan-bench-${name}-${process.pid}`);
    mkdirSync(postgres.directory, { recursive: true });
    // It refuses to run as root.
    const root = process.getuid() === 0;
    const [uid, gid] = root ? ['-u', '-g'].map((flag) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))) : [];
    if (root) chownSync(postgres.directory, uid, gid);
    postgres.options = { uid, gid, stdio: 'ignore', cwd: postgres.directory };
    postgres.data = `${postgres.directory}/data`;
    execFileSync(`${BIN}/initdb`, ['-D', postgres.data, '-U', 'bench', '-A', 'trust'], postgres.options);
    postgres.#control('start', '-w', '-l', `${postgres.directory}/log`, '-o', `-k ${postgres.directory} -c listen_addresses=''`);
    postgres.connection = ['-h', postgres.directory, '-U', 'bench', 'postgres'];
    postgres.pid = Number(readFileSync(`${postgres.data}/postmaster.pid`, 'utf8').split('\n')[0]);
    return postgres;
  }

  #control(...args) {
    execFileSync(`${BIN}/pg_ctl`, ['-D', this.data, ...args], this.options);
  }

  // Returns the rows as text.
  query(sql) {
    return execFileSync('psql', [...this.connection, '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-c', sql], { ...this.options, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  }

  async stop() {
    this.#control('stop', '-m', 'fast');
    rmSync(this.directory, { recursive: true, force: true });
  }
}
