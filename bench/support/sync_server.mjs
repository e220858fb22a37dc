// The least that a durable write over a socket costs: appends each request to a file, syncs it, and responds. Argument:
// the file. Reads no more than one request at a time.
import { fdatasyncSync, openSync, writeSync } from 'node:fs';
import net from 'node:net';

const file = openSync(process.argv[2], 'w');
const server = net.createServer({ noDelay: true }, (socket) => {
  socket.on('data', (request) => {
    writeSync(file, request);
    fdatasyncSync(file);
    socket.write('HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}');
  });
});
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
