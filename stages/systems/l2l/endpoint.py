"""A prior from a vision model behind an OpenAI-compatible endpoint: it is asked for the box of what a sentence names.

Every answer is kept in a file, so that a run that was killed, another seed and another arm ask nothing twice.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx2

from stages.errors import StageError
from stages.runtime import progress
from stages.systems.l2l.settings import Endpoint

#: Left, top, right and bottom in shares of the image.
Box = tuple[float, float, float, float]
BUSY = {408, 425, 429, 500, 502, 503, 504}
#: Longest wait between two attempts, s.
LONGEST_WAIT_S = 30.0
_FOUR = re.compile(r"\[\s*(-?\d+(?:\.\d+)?)" + r"\s*,\s*(-?\d+(?:\.\d+)?)" * 3 + r"\s*\]")


def ask_all(
    asked: Sequence[tuple[bytes, str]],
    settings: Endpoint,
    cache: Path,
    *,
    pause: Callable[[float], None] = time.sleep,
) -> list[Box | None]:
    """Boxes of what sentences name; None where the answer has none.

    Parameters
    ----------
    asked
        An encoded image and a sentence each.
    cache
        Answers by what was asked, a JSON object a line; read first, and added to.
    pause
        What waits between attempts, s.

    Raises
    ------
    StageError
        The endpoint refuses, or does not answer after all attempts.
    """
    known = _read(cache)
    cache.parent.mkdir(parents=True, exist_ok=True)
    key = os.environ.get(settings.key, "")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    found: list[Box | None] = []
    with httpx2.Client(headers=headers, timeout=settings.timeout_s) as client, cache.open("a", encoding="utf-8") as out:
        for image, sentence in progress(asked, settings.model, unit="sentences"):
            name = question_key(image, sentence, settings)
            if name not in known:
                known[name] = _ask(client, image, sentence, settings, pause)
                out.write(json.dumps({"question": name, "answer": known[name]}) + "\n")
                out.flush()
            found.append(box_in(known[name], settings.scale))
    return found


def question_key(image: bytes, sentence: str, settings: Endpoint) -> str:
    """Name of a question: the same image, sentence and model are asked once."""
    digest = hashlib.sha256(json.dumps([settings.base_url, settings.model, settings.scale, sentence]).encode())
    digest.update(image)
    return digest.hexdigest()


def box_in(answer: str, scale: float) -> Box | None:
    """The first box [left, top, right, bottom] of an answer, in shares; None where there is none or it is empty."""
    match = _FOUR.search(answer)
    if match is None:
        return None
    left, top, right, bottom = (min(max(float(value) / scale, 0.0), 1.0) for value in match.groups())
    return (left, top, right, bottom) if right > left and bottom > top else None


def _ask(client: httpx2.Client, image: bytes, sentence: str, settings: Endpoint, pause: Callable[[float], None]) -> str:
    """One question, asked again where the endpoint is busy."""
    url = f"{settings.base_url.rstrip('/')}/chat/completions"
    wanted = {
        "model": settings.model,
        "temperature": 0,
        "messages": [{"role": "user", "content": _content(image, sentence, settings.scale)}],
    }
    for attempt in range(settings.retries + 1):
        try:
            response = client.post(url, json=wanted)
        except httpx2.TransportError as error:
            fault = f"{type(error).__name__}: {error}"
        else:
            if response.status_code == 200:
                return _text(response, url)
            fault = f"status {response.status_code}"
            if response.status_code not in BUSY:
                raise StageError(
                    f"{url}: {fault} for the model {settings.model}. Check systems.l2l.train.prior and the key in "
                    f"{settings.key}."
                )
        if attempt < settings.retries:
            pause(min(LONGEST_WAIT_S, 2.0**attempt))
    raise StageError(
        f"{url}: {fault} after {settings.retries + 1} attempts. What was answered is kept; run the stage again."
    )


def _content(image: bytes, sentence: str, scale: float) -> list[dict[str, Any]]:
    kind = "png" if image.startswith(b"\x89PNG") else "jpeg"
    picture = base64.b64encode(image).decode()
    text = (
        f"Find what this phrase names: {json.dumps(sentence, ensure_ascii=False)}. Answer with its bounding box alone, "
        f"as [left, top, right, bottom], each from 0 to {scale:g}, where {scale:g} is the image's full width or height."
    )
    return [
        {"type": "text", "text": text},
        {"type": "image_url", "image_url": {"url": f"data:image/{kind};base64,{picture}"}},
    ]


def _text(response: httpx2.Response, url: str) -> str:
    try:
        text = response.json()["choices"][0]["message"]["content"]
    except (ValueError, LookupError, TypeError):
        text = None
    if not isinstance(text, str):
        raise StageError(f"{url}: found {response.text[:80]!r}; expected a chat completion with a message in words.")
    return text


def _read(cache: Path) -> dict[str, str]:
    """Answers that are kept; the last line of a run that was killed may be torn, and is asked again."""
    known: dict[str, str] = {}
    if not cache.exists():
        return known
    content = cache.read_text(encoding="utf-8")
    if content and not content.endswith("\n"):
        content = content[: content.rfind("\n") + 1]
        cache.write_text(content, encoding="utf-8")
    for line in content.splitlines():
        entry = json.loads(line)
        known[entry["question"]] = entry["answer"]
    return known
