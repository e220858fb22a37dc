// A web service that receives deliveries. Its first line is its URL. The command `expect N` returns, when N different bodies have been
// received since the command, the number of all requests since then.
import http from 'node:http';

import { say, serve } from './child.mjs';

let different = new Set();
let requests = 0;
let expected = Infinity;
let reached = () => {};

function received(body) {
  ++requests;
  different.add(JSON.parse(body).n);
  if (different.size === expected) reached({ requests });
}

const server = http.createServer((request, response) => {
  const parts = [];
  request.on('data', (part) => parts.push(part));
  request.on('end', () => {
    response.writeHead(204).end();
    received(Buffer.concat(parts));
  });
});
server.keepAliveTimeout = 600_000; // connections stay between the rounds
server.listen(0, '127.0.0.1', () => {
  serve({
    expect(count) {
      different = new Set();
      requests = 0;
      expected = Number(count);
      return new Promise((resolve) => (reached = resolve));
    },
  });
  say(`http://127.0.0.1:${server.address().port}/hooks`);
});
