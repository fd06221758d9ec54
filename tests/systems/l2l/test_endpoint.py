"""The prior from a vision endpoint, against a server of this test: what is sent, retries, the cache, odd answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from stages.errors import StageError
from stages.systems.l2l.endpoint import Box, ask_all, box_in
from stages.systems.l2l.settings import Endpoint
from tests.systems.l2l.small import COLOURS, made

JPEG, PNG = b"\xff\xd8\xff an image", b"\x89PNG an image"


class Server(ThreadingHTTPServer):
    """Answers what it is told, in turn; the last answer again and again."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: list[tuple[int, Any]] = [(200, "[100, 200, 500, 900]")]
        self.seen: list[tuple[str, dict[str, str], dict[str, Any]]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append((self.path, dict(self.headers), body))
        answers = self.server.answers
        status, text = answers.pop(0) if len(answers) > 1 else answers[0]
        content = (
            text if isinstance(text, bytes) else json.dumps({"choices": [{"message": {"content": text}}]}).encode()
        )
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: object) -> None:
        """Nothing is printed."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made_server:
        thread = threading.Thread(target=made_server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made_server
        made_server.shutdown()
        thread.join()


def ask(server: Server, asked: list[tuple[bytes, str]], cache: Path, **changes: Any) -> list[Box | None]:
    settings = Endpoint(provider="endpoint", base_url=server.url, model="seer", key="L2L_TEST_KEY", **changes)
    return ask_all(asked, settings, cache, pause=lambda seconds: None)


def test_an_image_and_its_sentence_are_sent_with_the_key(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("L2L_TEST_KEY", "secret")
    assert ask(server, [(PNG, 'the "red" one')], tmp_path / "kept.jsonl") == [(0.1, 0.2, 0.5, 0.9)]
    path, headers, body = server.seen[0]
    assert (path, headers["Authorization"], body["model"]) == ("/v1/chat/completions", "Bearer secret", "seer")
    text, picture = body["messages"][0]["content"]
    assert '"the \\"red\\" one"' in text["text"]
    assert picture["image_url"]["url"].startswith("data:image/png;base64,iVBO")


def test_without_a_key_none_is_sent(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("L2L_TEST_KEY", raising=False)
    ask(server, [(JPEG, "red")], tmp_path / "kept.jsonl")
    assert "Authorization" not in server.seen[0][1]


def test_a_question_is_asked_once(server: Server, tmp_path: Path) -> None:
    cache = tmp_path / "kept.jsonl"
    first = ask(server, [(JPEG, "red"), (JPEG, "red"), (JPEG, "blue")], cache)
    assert len(server.seen) == 2
    assert ask(server, [(JPEG, "blue"), (JPEG, "red")], cache) == first[1:]
    assert len(server.seen) == 2
    ask(server, [(JPEG, "red")], cache, scale=1)
    assert len(server.seen) == 3


def test_the_torn_last_line_of_a_killed_run_is_asked_again(server: Server, tmp_path: Path) -> None:
    cache = tmp_path / "kept.jsonl"
    ask(server, [(JPEG, "red"), (JPEG, "blue")], cache)
    cache.write_text(cache.read_text(encoding="utf-8")[:-9], encoding="utf-8")
    ask(server, [(JPEG, "red"), (JPEG, "blue")], cache)
    assert len(server.seen) == 3
    assert len(cache.read_text(encoding="utf-8").splitlines()) == 2


def test_a_busy_endpoint_is_asked_again(server: Server, tmp_path: Path) -> None:
    server.answers = [(429, ""), (503, ""), (200, "[0, 0, 1000, 500]")]
    assert ask(server, [(JPEG, "red")], tmp_path / "kept.jsonl") == [(0, 0, 1, 0.5)]


def test_an_endpoint_that_stays_busy_is_an_error(server: Server, tmp_path: Path) -> None:
    server.answers = [(503, "")]
    with pytest.raises(StageError, match=r"status 503 after 3 attempts\. What was answered is kept"):
        ask(server, [(JPEG, "red")], tmp_path / "kept.jsonl", retries=2)
    assert len(server.seen) == 3


def test_a_refusal_is_an_error_at_once_and_does_not_show_the_key(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("L2L_TEST_KEY", "secret")
    server.answers = [(401, "")]
    with pytest.raises(StageError, match=r"status 401 for the model seer\. Check .* the key in L2L_TEST_KEY") as caught:
        ask(server, [(JPEG, "red")], tmp_path / "kept.jsonl")
    assert len(server.seen) == 1
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("content", [b"not JSON", b"{}", b'{"choices": []}', b'{"choices": [{"message": null}]}'])
def test_what_is_no_chat_completion_is_an_error(server: Server, tmp_path: Path, content: bytes) -> None:
    server.answers = [(200, content)]
    with pytest.raises(StageError, match="expected a chat completion with a message in words"):
        ask(server, [(JPEG, "red")], tmp_path / "kept.jsonl")


def test_no_answer_at_all_is_an_error(server: Server, tmp_path: Path) -> None:
    settings = Endpoint(provider="endpoint", base_url="http://127.0.0.1:1/v1", model="seer", retries=1)
    with pytest.raises(StageError, match="after 2 attempts"):
        ask_all([(JPEG, "red")], settings, tmp_path / "kept.jsonl", pause=lambda seconds: None)


@pytest.mark.parametrize(
    ("answer", "box"),
    [
        ("[100, 200, 500, 900]", (0.1, 0.2, 0.5, 0.9)),
        ("```json\n{\"box\": [ 100.0 ,200,500, 900 ]}\n```", (0.1, 0.2, 0.5, 0.9)),
        ("[-20, 0, 1200, 500]", (0, 0, 1, 0.5)),
        ("[500, 200, 100, 900]", None),
        ("there is no such object", None),
        ("[1, 2, 3]", None),
    ],
)  # fmt: skip
def test_the_first_box_of_an_answer_is_taken(answer: str, box: Box | None) -> None:
    assert box_in(answer, 1000) == box


def test_priors_of_a_set_come_from_the_endpoint(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stages.systems.l2l.priors import priors_of

    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    accepted = made()
    server.answers = [(200, "none"), (200, "[0, 0, 500, 1000]")]
    settings = Endpoint(provider="endpoint", base_url=server.url, model="seer", confidence=0.7)
    found = priors_of(accepted, settings, 8, tmp_path)
    assert (found.confidence_S[0], found.map_SHW[0].max()) == (0, 0)
    assert found.confidence_S[1] == pytest.approx(0.7)
    assert (found.map_SHW[1] == [255, 255, 255, 255, 0, 0, 0, 0]).all()
    assert {body["messages"][0]["content"][0]["text"].split('"')[1].split()[0] for _, _, body in server.seen} == {
        *COLOURS
    }
