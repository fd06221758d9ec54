"""Whether Prefect's server still answers; its own client tries each call for a minute before it says no."""

from __future__ import annotations

import contextlib
import time
import urllib.error
import urllib.request

from prefect.client.orchestration import get_client

ATTEMPTS = 3
SECONDS = 5.0


def answers(url: str) -> bool:
    """Whether there is a server at an API address, whatever it thinks of who asks."""
    for attempt in range(ATTEMPTS):
        time.sleep(float(attempt))
        try:
            with urllib.request.urlopen(f"{url.rstrip('/')}/health", timeout=SECONDS):
                return True
        except urllib.error.HTTPError:
            return True
        except OSError:
            continue
    return False


def lost() -> str | None:
    """The address of the flow run's server where that is gone; then no later call waits for it either."""
    client = get_client(sync_client=True)
    url = str(client.api_url)
    if answers(url):
        return None
    # The transport's retries are no public setting; without this the end of the flow hangs for a minute.
    with contextlib.suppress(AttributeError):
        client._client._transport._pool._retries = 0  # type: ignore[attr-defined]
    return url
