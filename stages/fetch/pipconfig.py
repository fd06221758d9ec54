"""Which package index this machine uses: pip's configuration, read without pip.

Files and variables count as they do for ``pip download``: system files, then the user's, then the environment's
``pip.conf``, then ``PIP_CONFIG_FILE``, then ``PIP_*`` variables, the later over the earlier; inside the files the
section ``[download]`` over ``[global]``. https://pip.pypa.io/en/stable/topics/configuration/ describes them.
"""

from __future__ import annotations

import configparser
import locale
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stages.errors import UsageError

SECTIONS = ("global", "download")
SYSTEM = Path("/etc")
ALIASES = {"default-timeout": "timeout", "pypi-url": "index-url"}
TRUE = {"y", "yes", "t", "true", "on", "1"}
FALSE = {"n", "no", "f", "false", "off", "0"}


@dataclass(frozen=True)
class PipConfig:
    """What pip would use.

    Attributes
    ----------
    index_url
        None where none is configured: the index client's default then counts.
    cert
        File or folder of certificate authorities.
    timeout
        Seconds without an answer before a connection counts as dead.
    """

    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    no_index: bool = False
    cert: str | None = None
    client_cert: str | None = None
    trusted_hosts: tuple[str, ...] = ()
    proxy: str | None = None
    timeout: float = 15.0
    retries: int = 5


def read(environ: Mapping[str, str] | None = None) -> PipConfig:
    """Read pip's configuration of this machine, user and environment.

    Raises
    ------
    UsageError
        A file is no configuration file, or a value is of the wrong kind; the message names it.
    """
    environ = os.environ if environ is None else environ
    values = _from_files(environ) | _from_variables(environ)
    return PipConfig(
        index_url=values.get("index-url"),
        extra_index_urls=tuple(values.get("extra-index-url", "").split()),
        find_links=tuple(str(Path(link).expanduser()) if link.startswith("~") else link for link in _links(values)),
        no_index=_truth(values, "no-index"),
        # requests, which pip talks through, knows these two.
        cert=values.get("cert") or environ.get("REQUESTS_CA_BUNDLE") or environ.get("CURL_CA_BUNDLE") or None,
        client_cert=values.get("client-cert"),
        trusted_hosts=tuple(values.get("trusted-host", "").split()),
        proxy=values.get("proxy"),
        timeout=_number(values, "timeout", 15.0),
        retries=int(_number(values, "retries", 5)),
    )


def config_files(environ: Mapping[str, str]) -> list[Path]:
    """Files pip reads its configuration from, later ones overriding earlier ones; not all need exist."""
    home = Path(environ.get("HOME") or "~").expanduser()
    if sys.platform == "darwin":
        system = [Path("/Library/Application Support/pip")]
        user = home / "Library/Application Support/pip"
        user = user if user.is_dir() else home / ".config/pip"
    else:
        listed = environ.get("XDG_CONFIG_DIRS") or str(SYSTEM / "xdg")
        system = [Path(folder) / "pip" for folder in listed.split(os.pathsep) if folder]
        user = Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "pip"
    chosen = environ.get("PIP_CONFIG_FILE")
    if chosen == os.devnull:
        return []
    folders = [*system, SYSTEM]
    if not (chosen and Path(chosen).exists()):
        folders += [home / ".pip", user]
    folders.append(Path(sys.prefix))
    return [folder / "pip.conf" for folder in folders] + ([Path(chosen)] if chosen else [])


def _from_files(environ: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, dict[str, str]] = {section: {} for section in SECTIONS}
    for file in config_files(environ):
        parser = configparser.RawConfigParser()
        try:
            parser.read(file, encoding=locale.getpreferredencoding(False))
        except (configparser.Error, UnicodeDecodeError) as error:
            raise UsageError(f"{file}: pip's configuration cannot be read: {' '.join(str(error).split())}") from None
        for section in SECTIONS:
            if parser.has_section(section):
                found[section] |= {_normal(name): value or "" for name, value in parser.items(section)}
    # An empty value leaves what a weaker section says, as in pip.
    return {name: value for section in SECTIONS for name, value in found[section].items() if value}


def _from_variables(environ: Mapping[str, str]) -> dict[str, str]:
    return {_normal(name.removeprefix("PIP_")): v for name, v in environ.items() if name.startswith("PIP_") and v}


def _normal(name: str) -> str:
    plain = name.lower().replace("_", "-").removeprefix("--")
    return ALIASES.get(plain, plain)


def _links(values: Mapping[str, str]) -> list[str]:
    return values.get("find-links", "").split()


def _truth(values: Mapping[str, str], name: str) -> bool:
    text = values.get(name, "no").lower()
    if text not in TRUE | FALSE:
        raise UsageError(f"pip's configuration: {name}: found {text!r}; expected yes or no.")
    return text in TRUE


def _number(values: Mapping[str, str], name: str, default: float) -> float:
    try:
        return float(values.get(name, default))
    except ValueError:
        raise UsageError(f"pip's configuration: {name}: found {values[name]!r}; expected a number.") from None
