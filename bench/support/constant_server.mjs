// The baseline for GET of a document: responds to all requests with its first argument.
import http from 'node:http';

const body = process.argv[2];
const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) };
const server = http.createServer((request, response) => {
  response.writeHead(200, headers);
  response.end(body);
});
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/`));
