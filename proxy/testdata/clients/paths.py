# A service that guards /admin as servers of files do: it unescapes the path, takes backslashes for slashes, cuts parameters off and
# resolves dots. It says whom the request was for, and what came. It prints its port, and ends when its standard input does.
import http.server
import posixpath
import sys
import threading
import urllib.parse


class Service(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = self.path.partition("?")[0]
        segments = urllib.parse.unquote(path).replace("\\", "/").split("/")
        path = posixpath.normpath("/".join(s.partition(";")[0] for s in segments))
        who = "admin" if path.lstrip("/").split("/")[0] == "admin" else "public"
        body = " ".join([who, self.headers.get("Abate-Priority", "none"), self.path]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
server.daemon_threads = True
print(server.server_address[1], flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
