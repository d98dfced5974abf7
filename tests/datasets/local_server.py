"""A local server whose answers a test chooses."""

import contextlib
import hashlib
import io
import ssl
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Server:
    """A server that answers each path with a function in `routes` and remembers the requests."""

    def __init__(self, authority):
        self.routes = {}
        self.hits = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                server.hits.append(self.path)
                self.close_connection = True
                # The client may close the connection early.
                with contextlib.suppress(BrokenPipeError, ConnectionResetError, ssl.SSLError):
                    server.routes.get(self.path, status(404))(self)

            def log_message(self, *args):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.scheme = "http"
        if authority is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            authority.issue_cert("127.0.0.1").configure_cert(context)
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
            self.scheme = "https"
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()

    def url(self, path):
        return f"{self.scheme}://127.0.0.1:{self.http.server_port}{path}"

    def close(self):
        self.http.shutdown()
        self.http.server_close()


def status(code, **headers):
    def answer(handler):
        handler.send_response(code)
        for key, value in headers.items():
            handler.send_header(key, value)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


def body(content, stated=None):
    """Answer with `content`, and with the false length `stated` if that is given."""

    def answer(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content) if stated is None else stated))
        handler.end_headers()
        handler.wfile.write(content)

    return answer


def endless(handler):
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    while True:
        handler.wfile.write(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")


def in_turn(*answers):
    """Answer the first request with the first function, the second with the second, and so on."""
    rest = list(answers)
    return lambda handler: rest.pop(0)(handler)


def zipped(members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def sha(content):
    return hashlib.sha256(content).hexdigest()
