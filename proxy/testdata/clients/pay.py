"""A program that knows nothing of Abate: it calls the payment service by its own URL, with requests."""
import os

import requests

url = os.environ["PAYMENTS_URL"]
session = requests.Session()

r = session.get(url + "/charges/42")
print("get", r.status_code, r.text)

r = session.post(url + "/charges", json={"amount": 4200}, headers={"Idempotency-Key": "order-7"})
print("post", r.status_code, r.json()["charged"])

r = session.post(url + "/large", data=(b"x" * 1000 for _ in range(300)))
print("chunked", r.status_code, r.text)

r = session.get(url + "/down")
print("down", r.status_code, r.headers["Content-Type"], r.json()["reason"], r.headers["X-Should-Retry"])

with session.get(url + "/stream", stream=True) as r:
    print("stream", r.status_code, sum(len(c) for c in r.iter_content(8192)))
