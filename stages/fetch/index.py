"""Asking package indexes and find-links places which files of a package they offer."""

from __future__ import annotations

import itertools
import logging
import re
import ssl
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit, urlunsplit

import httpx2
from unearth import Package, PackageFinder
from unearth.auth import MultiDomainBasicAuth
from unearth.fetchers import Fetcher
from unearth.fetchers.sync import PyPIClient

from stages.errors import UsageError
from stages.fetch.cache import heartbeat
from stages.fetch.pipconfig import PipConfig

PAUSE_S = 0.25  # before the second attempt; doubled for each further one


@dataclass(frozen=True)
class Offer:
    """One file that an index offers; ``sha256`` is None where the index gives no digest."""

    filename: str
    version: str
    url: str
    sha256: str | None


@dataclass(frozen=True)
class Answer:
    """What one place said: its offers, or why it has none. Its name holds no credentials."""

    place: str
    offers: tuple[Offer, ...]
    trouble: str


def redact(text: str) -> str:
    """Text whose URLs have no credentials, no query and no fragment."""
    return re.sub(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^\s'\"<>]+", lambda match: _redact_url(match.group()), text)


def _redact_url(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an unreadable URL"
    secret, at, host = parts.netloc.rpartition("@")
    return urlunsplit((parts.scheme, ("***@" if secret or at else "") + host, parts.path, "", ""))


def places(config: PipConfig) -> list[tuple[str, str]]:
    """(``find_links`` or ``index``, place) in the order in which they are asked: what is nearest first.

    Raises
    ------
    UsageError
        pip's configuration forbids indexes and names no other place.
    """
    found = [("find_links", link) for link in config.find_links]
    if not config.no_index:
        # Without a source of its own, unearth asks pip's default index: no host name needs to stand here.
        default = [source["url"] for source in PackageFinder().sources]
        chosen = [config.index_url] if config.index_url else default
        found += [("index", url) for url in (*chosen, *config.extra_index_urls)]
    if not found:
        raise UsageError(
            "No package index to ask: pip's configuration says no-index and names no find-links. Set PIP_INDEX_URL or "
            "PIP_FIND_LINKS, or unset PIP_NO_INDEX."
        )
    return found


@contextmanager
def client(config: PipConfig) -> Iterator[PyPIClient]:
    """An HTTP client with pip's certificates, proxy, trusted hosts, timeout and credentials."""
    mounts: dict[str, httpx2.BaseTransport] = {
        f"all://{host}": httpx2.HTTPTransport(verify=_unverified(config), proxy=config.proxy)
        for host in config.trusted_hosts
    }
    urls = [url for url in (config.index_url, *config.extra_index_urls, *config.find_links) if url and "://" in url]
    with PyPIClient(
        trusted_hosts=config.trusted_hosts,
        verify=_verified(config),
        timeout=config.timeout,
        proxy=config.proxy,
        follow_redirects=True,
        mounts=mounts,
    ) as opened:
        opened.auth = MultiDomainBasicAuth(prompting=False, index_urls=urls)
        yield opened


def _verified(config: PipConfig) -> ssl.SSLContext | bool:
    if not (config.cert or config.client_cert):
        return True
    context = httpx2.create_ssl_context() if config.cert is None else ssl.create_default_context()
    try:
        if config.cert is not None:
            authorities = Path(config.cert).expanduser()
            if authorities.is_dir():
                context.load_verify_locations(capath=authorities)
            else:
                context.load_verify_locations(cafile=authorities)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"pip's configuration: cert: {config.cert} cannot be used ({error}).") from None
    return _identified(context, config)


def _unverified(config: PipConfig) -> ssl.SSLContext:
    return _identified(httpx2.create_ssl_context(verify=False), config)


def _identified(context: ssl.SSLContext, config: PipConfig) -> ssl.SSLContext:
    if config.client_cert is not None:
        try:
            context.load_cert_chain(Path(config.client_cert).expanduser())
        except (OSError, ssl.SSLError) as error:
            raise UsageError(
                f"pip's configuration: client-cert: {config.client_cert} cannot be used ({error})."
            ) from None
    return context


def ask(opened: PyPIClient, config: PipConfig, package: str) -> Iterator[Answer]:
    """Ask one place after the other, each only when the answers before it did not do."""
    for kind, place in places(config):
        name = f"{kind.replace('_', '-')} {redact(place)}"
        with heartbeat(lambda name=name: f"waiting for {name}"):  # type: ignore[misc]
            offers, trouble = _packages(opened, config, kind, place, package)
        yield Answer(name, offers, redact(trouble))


def _packages(
    opened: PyPIClient, config: PipConfig, kind: str, place: str, package: str
) -> tuple[tuple[Offer, ...], str]:
    for attempt in itertools.count(1):
        found: list[Package] = []
        with _remarks() as remarks:
            try:
                # ignore_compatibility: the file does not depend on the interpreter that fetches it.
                finder = PackageFinder(
                    cast(Fetcher, opened),
                    index_urls=[place] if kind == "index" else [],
                    find_links=[place] if kind == "find_links" else [],
                    ignore_compatibility=True,
                )
                found = list(finder.find_all_packages(package, allow_yanked=True))
            except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, LookupError, OSError) as error:
                remarks.append(describe(error))
                again = transient(error)
            else:
                again = any("Server Error" in remark for remark in remarks)
        if not again or attempt > config.retries:
            return tuple(map(_offer, found)), "; ".join(dict.fromkeys(remarks))
        pause(attempt, f"{redact(place)}: {redact(remarks[-1])}")
    raise AssertionError("unreachable")


def _offer(package: Package) -> Offer:
    digests = (package.link.hash_option or {}).get("sha256")
    return Offer(
        filename=package.link.filename,
        version=str(package.version),
        url=package.link.url_without_fragment,
        sha256=digests[0].lower() if digests else None,
    )


def transient(error: Exception) -> bool:
    """Whether another attempt may go better."""
    return isinstance(error, httpx2.TransportError) and not (
        isinstance(error, httpx2.UnsupportedProtocol) or "CERTIFICATE" in str(error)
    )


def describe(error: Exception) -> str:
    """What went wrong on the network, and the setting to look at where there is one."""
    text = f"{type(error).__name__}: {error}".strip().rstrip(":")
    return text + " (see PIP_CERT and PIP_TRUSTED_HOST)" if "CERTIFICATE" in text else text


def pause(attempt: int, why: str) -> None:
    """Wait before another attempt, and say so."""
    print(f"{why}; attempt {attempt + 1}", file=sys.stderr, flush=True)
    time.sleep(PAUSE_S * 2 ** (attempt - 1))


@contextmanager
def _remarks() -> Iterator[list[str]]:
    """What unearth only logs: the pages it could not read, and why."""
    remarks: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.levelno >= logging.WARNING:
                remarks.append(re.sub(r"^Failed to collect links from \S+: ", "", record.getMessage()))

    logger = logging.getLogger("unearth")
    handler, propagate = Handler(), logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield remarks
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate
