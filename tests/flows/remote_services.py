"""Real servers for the tests of remotes, on loopback: sshd, and a proxy that cuts the line after some bytes."""

from __future__ import annotations

import http.client
import os
import pwd
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
BLOCK = 16 * 1024
SIGNED = {"Authorization": "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request"}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class SshServer:
    """An sshd with its own host key and configuration; one key may enter."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.user = pwd.getpwuid(os.getuid()).pw_name
        folder.mkdir(parents=True, mode=0o700)
        self.key, self.stranger = folder / "key", folder / "stranger"
        for file in (folder / "host", self.key, self.stranger):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file], check=True)
        shutil.copy(folder / "key.pub", folder / "authorized")
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        lines = [
            f"Port {self.port}",
            "ListenAddress 127.0.0.1",
            f"HostKey {folder / 'host'}",
            f"AuthorizedKeysFile {folder / 'authorized'}",
            f"PidFile {folder / 'pid'}",
            "StrictModes no",
            "UsePAM no",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "PermitRootLogin prohibit-password",
            "MaxStartups 100",
            "Subsystem sftp internal-sftp",
        ]
        (folder / "config").write_text("\n".join(lines) + "\n")
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        assert SSHD is not None
        log = (self.folder / "log").open("ab")
        words = [SSHD, "-D", "-e", "-f", str(self.folder / "config")]
        self.process = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True)
        log.close()
        answered = False
        while not answered:
            assert self.process.poll() is None, (self.folder / "log").read_text()
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=5) as line:
                answered = line.recv(4) == b"SSH-"

    def stop(self) -> None:
        """Kill the server and the sessions it has."""
        if self.process is None:
            return
        import psutil

        family = [*psutil.Process(self.process.pid).children(recursive=True), self.process]
        for one in family:
            with suppress(psutil.NoSuchProcess, ProcessLookupError):
                one.kill()
        self.process.wait()
        self.process = None


class CuttingProxy:
    """Passes a port on; once armed, it ends all connections after a number of bytes and calls back."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.listener.getsockname()[1])
        self._left: int | None = None
        self._callback: Callable[[], None] = lambda: None
        self._guard = threading.Lock()
        self._lines: set[socket.socket] = set()
        self.was_cut = False
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def arm(self, after_bytes: int, callback: Callable[[], None] = lambda: None) -> None:
        with self._guard:
            self._left, self._callback, self.was_cut = after_bytes, callback, False

    def mend(self) -> None:
        with self._guard:
            self._left, self.was_cut = None, False

    def close(self) -> None:
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self._hang_up()
        for thread in self._threads:
            thread.join()

    def _start(self, work: Callable[..., None], *words: socket.socket) -> None:
        thread = threading.Thread(target=work, args=words, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with self._guard:
                refused = self.was_cut
            try:
                server = None if refused else socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                server = None
            if server is None:
                client.close()
                continue
            for line in (client, server):
                line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._guard:
                self._lines |= {client, server}
            self._start(self._pass_on, client, server)
            self._start(self._pass_on, server, client)

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(BLOCK):
                if self._count(len(data)):
                    break
                sink.sendall(data)
        for line in (source, sink):
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
            line.close()
            with self._guard:
                self._lines.discard(line)

    def _count(self, size: int) -> bool:
        """Whether the line is cut now."""
        with self._guard:
            if self._left is None or self.was_cut:
                return self.was_cut
            self._left -= size
            if self._left > 0:
                return False
            self.was_cut = True
        self._hang_up()
        self._callback()
        return True

    def _hang_up(self) -> None:
        with self._guard:
            lines = list(self._lines)
        for line in lines:
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)


class S3Server:
    """Moto's server with one bucket; ``keys`` make it ask for a signature it knows."""

    BUCKET = "lab-data"

    def __init__(self) -> None:
        from moto.server import ThreadedMotoServer

        self.server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        self.server.start()
        self.port = int(self.server.get_host_and_port()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self.runs = True
        self.ask("POST", "/moto-api/reset")  # what it stores, it stores for the whole process
        self.ask("PUT", f"/{self.BUCKET}")

    def ask(self, method: str, path: str, body: bytes = b"") -> None:
        line = http.client.HTTPConnection("127.0.0.1", self.port)
        line.request(method, path, body, SIGNED)
        answer = line.getresponse()
        answer.read()
        line.close()
        assert answer.status == 200, (path, answer.status)

    def demand_keys(self) -> None:
        """Ask for keys from now on; moto keeps this for all servers of a process."""
        self.ask("POST", "/moto-api/reset-auth", b"0")

    def forget_keys(self) -> None:
        if self.runs:
            self.ask("POST", "/moto-api/reset-auth", b"inf")

    def stop(self) -> None:
        if self.runs:
            self.runs = False
            self.server.stop()
