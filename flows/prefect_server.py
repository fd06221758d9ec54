"""Whether Prefect's server still answers; its own client tries each call for a minute before it says no."""

from __future__ import annotations

import contextlib
import logging
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_CLIENT_MAX_RETRIES, temporary_settings

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
    """The address of the flow run's server where that is gone, else None."""
    url = str(get_client(sync_client=True).api_url)
    return None if answers(url) else url


@contextlib.contextmanager
def without_server() -> Iterator[None]:
    """Prefect's own calls fail at once, and its complaints about that are not shown."""
    logging.disable(logging.CRITICAL)
    try:
        with temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 0}):
            yield
    finally:
        logging.disable(logging.NOTSET)
