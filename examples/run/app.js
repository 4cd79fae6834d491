// A shop's checkout that knows nothing of Abate. It plays the payment service too, on the port that
// examples/policy.yaml has, so that nothing else has to run:
//
//   go run ./cmd/abate run -c examples/policy.yaml -- node examples/run/app.js
'use strict';
const http = require('node:http');

const base = process.env.ABATE_URL_PAYMENT_SERVICE || 'http://127.0.0.1:8081';

// The payment service stumbles: every third answer is a 503.
let asked = 0;
const payments = http.createServer((req, res) => {
  asked++;
  res.statusCode = asked % 3 === 0 ? 503 : 200;
  res.end(`${req.method} ${req.url}\n`);
});

async function main() {
  // Three ways to call it: the base URL that abate run gives, and the service's own URL by fetch and by node:http.
  for (let i = 0; i < 4; i++) {
    const answer = await fetch(`${base}/charges/${i}`);
    console.log('base URL: ', answer.status, (await answer.text()).trim());
  }
  for (let i = 0; i < 4; i++) {
    const answer = await fetch(`http://127.0.0.1:8081/fetched/${i}`);
    console.log('fetch:    ', answer.status, (await answer.text()).trim());
  }
  for (let i = 0; i < 4; i++) {
    const [status, text] = await get(`http://127.0.0.1:8081/got/${i}`);
    console.log('node:http:', status, text);
  }
  console.log(`${asked} requests reached the payment service`);
}

function get(url) {
  return new Promise((resolve, reject) => {
    http.get(url, (res) => {
      let text = '';
      res.setEncoding('utf8');
      res.on('data', (piece) => { text += piece; });
      res.on('end', () => resolve([res.statusCode, text.trim()]));
    }).on('error', reject);
  });
}

payments.on('error', (err) => {
  if (err.code !== 'EADDRINUSE') throw err;
  main().then(() => process.exit(0)); // somebody serves there already
});
payments.listen(8081, '127.0.0.1', () => main().then(() => process.exit(0)));
