"""A package index on this machine, with the faults that real ones have."""

from __future__ import annotations

import base64
import hashlib
import io
import random
import ssl
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

DATA = {"examples/site.csv": b"time,LE\r\n" + random.Random(0).randbytes(400_000), "examples/other.csv": b"x\n"}
SDIST = "towers-1.2.tar.gz"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def sdist(members: Mapping[str, bytes], *, top: str = "towers-1.2", mode: str = "w:gz") -> bytes:
    """An sdist whose members lie below its top folder."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as tar:  # type: ignore[call-overload]
        for name, content in members.items():
            entry = tarfile.TarInfo(f"{top}/{name}")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def wheel(members: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def block(content: bytes = b"", **changes: Any) -> dict[str, Any]:
    """The block of the source ``site`` in params.yaml."""
    source = {
        "kind": "registry",
        "package": "towers",
        "version": "1.2",
        "archive": "sdist",
        "sha256": sha256(content),
        "members": ["examples/site.csv"],
        "licence": "CC-BY-4.0",
        "citation": "Those who measured",
    }
    return source | changes


@dataclass
class FakeIndex:
    """Files of one package ``towers``, and how badly they are served."""

    files: dict[str, bytes] = field(default_factory=dict)
    url: str = ""
    digests: bool = True  # whether the page gives them
    advertised: dict[str, str] = field(default_factory=dict)  # a digest other than the file's
    json: bool = False
    ranges: bool = True
    wrong_range: bool = False
    cuts: list[int] = field(default_factory=list)  # bytes after which successive downloads break off
    statuses: list[int] = field(default_factory=list)  # answers to successive downloads, before the real one
    page_statuses: list[int] = field(default_factory=list)
    html: bool = False  # every download is answered by a login page
    chunked: bool = False  # no Content-Length
    redirect: bool = False
    password: tuple[str, str] | None = None
    stall: bool = False  # stop half-way until `release`
    half_sent: threading.Event = field(default_factory=threading.Event)
    release: threading.Event = field(default_factory=threading.Event)
    seen: list[tuple[str, str | None]] = field(default_factory=list)  # path and Range of each request

    @property
    def downloads(self) -> list[str | None]:
        """Range header of each request for a file."""
        return [asked for path, asked in self.seen if path.startswith("/files/")]

    def page(self) -> tuple[bytes, str]:
        def digest(name: str) -> str:
            return self.advertised.get(name) or sha256(self.files[name])

        if self.json:
            import json

            files = [
                {"filename": n, "url": f"/files/{n}", "hashes": {"sha256": digest(n)} if self.digests else {}}
                for n in self.files
            ]
            return json.dumps({"files": files}).encode(), "application/vnd.pypi.simple.v1+json"
        links = [f'<a href="/files/{n}{f"#sha256={digest(n)}" if self.digests else ""}">{n}</a>' for n in self.files]
        return "<br>".join(["<!DOCTYPE html>", *links]).encode(), "text/html"


class _Handler(BaseHTTPRequestHandler):
    index: FakeIndex
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        index = self.index
        asked = self.headers.get("Range")
        index.seen.append((self.path, asked))
        if index.password is not None:
            expected = "Basic " + base64.b64encode(":".join(index.password).encode()).decode()
            if self.headers.get("Authorization") != expected:
                return self._answer(401, b"who are you", "text/plain")
        if self.path == "/simple/towers/":
            if index.page_statuses:
                return self._answer(index.page_statuses.pop(0), b"", "text/plain")
            return self._answer(200, *index.page())
        if self.path.startswith("/moved/"):
            return self._file(index.files[self.path.partition("?")[0].rpartition("/")[2]], asked)
        if self.path.startswith("/files/"):
            name = self.path.rpartition("/")[2]
            if index.statuses:
                return self._answer(index.statuses.pop(0), b"", "text/plain")
            if index.html:
                return self._answer(200, b"<html>please log in</html>", "text/html; charset=utf-8")
            if index.redirect:
                self.send_response(302)
                self.send_header("Location", f"/moved/{name}?token=sesame")
                self.send_header("Content-Length", "0")
                return self.end_headers()
            return self._file(index.files[name], asked)
        return self._answer(404, b"no such page", "text/plain")

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _file(self, content: bytes, asked: str | None) -> None:
        index = self.index
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and index.ranges else 0
        if start >= len(content):
            return self._answer(416, b"", "text/plain")
        body = content[start:]
        self.send_response(206 if start else 200)
        if start:
            shown = 0 if index.wrong_range else start
            self.send_header("Content-Range", f"bytes {shown}-{len(content) - 1}/{len(content)}")
        if index.chunked:
            self.send_header("Connection", "close")
        else:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if index.cuts:
            body = body[: index.cuts.pop(0)]
            self.close_connection = True
        if index.stall:
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            index.half_sent.set()
            index.release.wait(30)
            body = body[len(body) // 2 :]
        self.wfile.write(body)
        return None


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed is no fault of the server."""


@contextmanager
def serve(index: FakeIndex, certificate: Path | None = None) -> Iterator[FakeIndex]:
    handler = type("Handler", (_Handler,), {"index": index})
    with _Server(("127.0.0.1", 0), handler) as server:
        scheme = "http"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
            scheme = "https"
        index.url = f"{scheme}://127.0.0.1:{server.server_port}/simple"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield index
        finally:
            index.release.set()
            server.shutdown()
            thread.join()
