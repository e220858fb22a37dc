// The least that attachments cost: PUT streams the body to a file of its own and syncs it, GET streams it from there.
// Argument: a directory.
import { closeSync, createReadStream, createWriteStream, fdatasync, openSync, statSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';

const [directory] = process.argv.slice(2);
const server = http.createServer((request, response) => {
  const file = path.join(directory, encodeURIComponent(request.url));
  if (request.method === 'GET') {
    response.writeHead(200, { 'Content-Length': statSync(file).size });
    return createReadStream(file).pipe(response);
  }
  const descriptor = openSync(file, 'w');
  request.pipe(createWriteStream(file, { fd: descriptor, autoClose: false })).on('finish', () => {
    fdatasync(descriptor, () => {
      closeSync(descriptor);
      response.writeHead(201).end('{}');
    });
  });
});
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
