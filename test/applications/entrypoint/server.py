import getpass
import os
from http.server import BaseHTTPRequestHandler, HTTPServer


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        with open("/var/lib/service/visits", "a") as visits:
            visits.write("x")
        size = os.path.getsize("/var/lib/service/visits")
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"{getpass.getuser()} has counted {size}".encode())


HTTPServer(("127.0.0.1", 5000), Handler).serve_forever()
