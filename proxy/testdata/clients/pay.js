// A program that knows nothing of Abate: it calls the payment service by the URL it is given, with fetch.
const url = process.env.PAYMENTS_URL;

async function main() {
  let r = await fetch(url + "/charges/42");
  console.log("get", r.status, await r.text());

  r = await fetch(url + "/charges", {
    method: "POST", body: JSON.stringify({ amount: 4200 }),
    headers: { "Content-Type": "application/json", "Idempotency-Key": "order-7" },
  });
  console.log("post", r.status, (await r.json()).charged ? "True" : "False");

  const chunks = new ReadableStream({
    start(c) {
      for (let i = 0; i < 300; i++) c.enqueue(new Uint8Array(1000));
      c.close();
    },
  });
  r = await fetch(url + "/large", { method: "POST", body: chunks, duplex: "half" });
  console.log("chunked", r.status, await r.text());

  r = await fetch(url + "/down");
  console.log("down", r.status, r.headers.get("content-type"), (await r.json()).reason, r.headers.get("x-should-retry"));

  r = await fetch(url + "/stream");
  console.log("stream", r.status, (await r.arrayBuffer()).byteLength);
}

main();
