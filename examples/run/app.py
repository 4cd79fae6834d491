"""A shop's checkout that knows nothing of Abate. It plays the payment service too, on the port that
examples/policy.yaml has, so that nothing else has to run:

  go run ./cmd/abate run -c examples/policy.yaml -- python3 examples/run/app.py
"""

import http.server
import os
import threading
import urllib.error
import urllib.request

BASE = os.environ.get("ABATE_URL_PAYMENT_SERVICE", "http://127.0.0.1:8081")
asked = 0


class Payments(http.server.BaseHTTPRequestHandler):
    """The payment service stumbles: every third answer is a 503."""

    def do_GET(self):
        global asked
        asked += 1
        text = f"{self.command} {self.path}\n".encode()
        self.send_response(503 if asked % 3 == 0 else 200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args):
        pass


def get(url):
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read().decode().strip()
    except urllib.error.HTTPError as err:
        return err.code, err.read().decode().strip()


def main():
    try:
        payments = http.server.ThreadingHTTPServer(("127.0.0.1", 8081), Payments)
        threading.Thread(target=payments.serve_forever, daemon=True).start()
    except OSError:
        pass  # somebody serves there already
    for i in range(4):
        print("base URL:", *get(f"{BASE}/charges/{i}"), flush=True)
    for i in range(4):
        print("urllib:  ", *get(f"http://127.0.0.1:8081/got/{i}"), flush=True)
    print(f"{asked} requests reached the payment service", flush=True)


main()
