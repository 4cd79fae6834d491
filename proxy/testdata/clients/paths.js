// A service that guards /admin as Express does: by the path as it came, whatever its case. It says whom the request was for, and
// what came. It prints its port, and ends when its standard input does.
const http = require('http');

const server = http.createServer((req, res) => {
  const path = req.url.split('?')[0].toLowerCase();
  const admin = path === '/admin' || path.startsWith('/admin/');
  res.end((admin ? 'admin ' : 'public ') + (req.headers['abate-priority'] || 'none') + ' ' + req.url);
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
process.stdin.on('end', () => process.exit(0)).resume();
