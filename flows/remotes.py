"""DVC remotes on a folder, over SSH and on S3: set, shown and checked.

What a team shares (address, port, endpoint) goes to ``.dvc/config``, which is committed. What belongs to one person or
machine (path of a key, name of a profile) goes to ``.dvc/config.local``, which git ignores. Passwords and secret keys
are never taken: they stay in the SSH agent, the environment or ``~/.aws``.

Every remote gets ``verify``: without it DVC believes what it downloads, and a damaged object lands in the cache.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from flows.errors import FlowError
from flows.remote_errors import in_words

if TYPE_CHECKING:
    from dvc.repo import Repo

NAME = "storage"
#: A host that answers nothing is given up after this; DVC's own limit for SSH is half an hour.
TIMEOUT_SECONDS = "30"
PROBE_BYTES = 256 * 1024
#: Options whose values are never printed, whoever wrote them into the configuration.
HIDDEN = re.compile(r"password|passphrase|secret|token|access_key|account_key|sas|connection_string|customer_key|auth")
ENVIRONMENT = ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3")


class RemoteError(FlowError):
    """A remote is described wrongly, or does not do what a remote must."""

    exit_code = 2


class RemoteFailed(RemoteError):
    """A remote is described well and does not work."""

    exit_code = 1


@dataclass(frozen=True)
class Settings:
    """A remote: its address, what is shared with everybody who clones, and what is this checkout's own."""

    url: str
    shared: Mapping[str, str] = field(default_factory=dict)
    own: Mapping[str, str] = field(default_factory=dict)


def folder_settings(path: str) -> Settings:
    """A folder, such as a mounted disk or network share; the one above it must be there already."""
    folder = Path(path).expanduser().resolve()
    if folder.exists() and not folder.is_dir():
        raise RemoteError(f"{folder} is a file; a remote is a folder.")
    if not folder.parent.is_dir():
        raise RemoteError(
            f"{folder}: the folder above it is not there. Is the path right, and is the disk mounted? "
            "Create it with mkdir -p where it is."
        )
    return Settings(str(folder))


def ssh_settings(where: str, port: int | None = None, key: str | None = None) -> Settings:
    """A folder on a host that answers SFTP.

    Parameters
    ----------
    where
        ``user@host:/path`` or ``ssh://user@host:port/path``; the user may be missing.
    port
        Port of the server; none: what ``~/.ssh/config`` says, else 22.
    key
        File of a private key; none: the SSH agent and the default keys.
    """
    _refuse_password(where, "ssh-add your key, or name its file with --key")
    if match := re.fullmatch(r"ssh://((?:[^@/]+@)?(?:\[[^]]+\]|[^:/@]+))(?::(\d+))?(/.+)", where):
        place, path, port = match[1], match[3], port or (int(match[2]) if match[2] else None)
    elif match := re.fullmatch(r"((?:[^@/:]+@)?(?:\[[^]]+\]|[^:/@]+)):(/.+)", where):
        place, path = match[1], match[2]
    else:
        raise RemoteError(f"{where!r}: expected user@host:/absolute/path, such as ada@storage.example.org:/srv/store.")
    if port is not None and not 0 < port < 65536:
        raise RemoteError(f"port {port}: expected 1 to 65535.")
    own = {}
    if key is not None:
        file = Path(key).expanduser().resolve()
        if not file.is_file():
            raise RemoteError(f"--key {key}: no such file; it is the private key, such as ~/.ssh/id_ed25519.")
        if file.suffix == ".pub":
            raise RemoteError(f"--key {key}: this is the public half; name the private key, {file.with_suffix('')}.")
        own["keyfile"] = str(file)
    shared = {"timeout": TIMEOUT_SECONDS} | ({"port": str(port)} if port else {})
    return Settings(f"ssh://{place}{path}", shared, own)


def s3_settings(url: str, endpoint: str | None = None, profile: str | None = None) -> Settings:
    """A prefix in a bucket of S3, or of a server that speaks it.

    Parameters
    ----------
    url
        ``s3://bucket/prefix``.
    endpoint
        Address of a server that is not Amazon's, such as ``https://minio.example.org:9000``.
    profile
        Section of ``~/.aws/credentials``; none: the environment, or the default section.
    """
    for text in (url, endpoint or ""):
        _refuse_password(text, "put the keys into ~/.aws/credentials or the environment (AWS_ACCESS_KEY_ID)")
    match = re.fullmatch(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(/[^?#]*)?", url)
    if not match or _is_address(match[1]):
        raise RemoteError(
            f"{url!r}: expected s3://bucket/prefix, the bucket in lower case, such as s3://lab-data/braid."
        )
    if endpoint is not None and not re.fullmatch(r"https?://[^/?#]+/?", endpoint):
        raise RemoteError(f"--endpoint {endpoint!r}: expected https://host or https://host:port.")
    shared = {"connect_timeout": TIMEOUT_SECONDS, "read_timeout": "60"}
    if endpoint:
        shared["endpointurl"] = endpoint.rstrip("/")
    return Settings(url.rstrip("/"), shared, {"profile": profile} if profile else {})


def set_remote(root: Path, settings: Settings, name: str = NAME, *, here_only: bool = False) -> None:
    """Make it the default remote of a repository; what the name meant before is forgotten.

    Parameters
    ----------
    here_only
        Write all of it to ``.dvc/config.local``, so that others who clone know nothing of it.
    """
    if not re.fullmatch(r"[A-Za-z0-9][\w-]*", name):
        raise RemoteError(f"--name {name!r}: letters, digits, - and _ only.")
    config = _open_config(root)
    public = {"url": settings.url, "verify": "true", **settings.shared}
    own = dict(settings.own)
    if here_only:
        public, own = {}, public | own
    local = Path(config.files["local"])
    for level, options, is_default in (("repo", public, not here_only), ("local", own, here_only)):
        if level == "local" and not local.exists() and not own:
            continue
        if level == "local" and not local.exists():
            local.touch(mode=0o600)
        with config.edit(level, validate=False) as content:
            content.get("remote", {}).pop(name, None)
            if options:
                content.setdefault("remote", {})[name] = options
            if is_default:
                content.setdefault("core", {})["remote"] = name
            elif content.get("core", {}).get("remote") == name or level == "local":
                content.get("core", {}).pop("remote", None)
    if local.exists():
        local.chmod(0o600)
    _open_config(root)  # DVC accepts what was written


def shown(root: Path) -> list[str]:
    """What is set, a line for each option with the file it stands in; secrets are not printed."""
    config = _open_config(root)
    default = config["core"].get("remote")
    files = {level: config.load_one(level)["remote"] for level in ("system", "global", "repo", "local")}
    names = sorted({name for remotes in files.values() for name in remotes})
    if not names:
        return ["no remote is set: python -m flows remote folder|ssh|s3 ADDRESS"]
    lines = []
    for name in names:
        lines.append(f"{name}{' (default)' if name == default else ''}")
        for level, remotes in files.items():
            place = {"repo": ".dvc/config", "local": ".dvc/config.local"}.get(level, f"DVC's {level} config")
            for option, value in remotes.get(name, {}).items():
                lines.append(f"  {option} = {_printable(option, str(value))}  [{place}]")
        lines += [f"  credentials: {words}" for words in _credentials(config["remote"].get(name, {}))]
    return lines


def check(root: Path, name: str | None = None) -> str:
    """Write a probe object, read it back and remove it, the way DVC does; say that it works.

    Raises
    ------
    RemoteFailed
        It does not; the message says what is wrong and what to do.
    """
    with opened_remote(root, name) as (_, remote, options):
        url = _printable("url", str(options["url"]))
        try:
            found = _probe(remote.fs, remote.path)
        except RemoteError as error:
            raise RemoteFailed(f"remote {remote.name} ({url}): {error}") from None
        except Exception as error:
            raise RemoteFailed(f"remote {remote.name} ({url}): {in_words(error, options)}") from error
    note = "" if options.get("verify") else "; verify is off, so DVC would not notice a damaged object"
    return f"remote {remote.name} ({url}): {found}{note}"


@contextmanager
def opened_remote(root: Path, name: str | None = None) -> Iterator[tuple[Repo, Any, dict[str, Any]]]:
    """Open a repository and one of its remotes (the default one): both as DVC has them, and the remote's options.

    Raises
    ------
    RemoteError
        There is no such remote.
    """
    from dvc.exceptions import DvcException
    from dvc.repo import Repo

    try:
        repo = Repo(str(root))
    except DvcException as error:
        raise RemoteError(f"{root}: {error}") from None
    with repo:
        name = name or repo.config["core"].get("remote")
        if not name or name not in repo.config["remote"]:
            missing = f"no remote {name!r} is set" if name else "no remote is set"
            raise RemoteError(f"{missing}: python -m flows remote folder|ssh|s3 ADDRESS")
        options = dict(repo.config["remote"][name])
        try:
            remote = repo.cloud.get_remote(name)
        except DvcException as error:
            raise RemoteError(f"remote {name}: {error}") from None
        yield repo, remote, options


def require_readable(repo: Repo) -> None:
    """Ask the default remote for anything at all, before a run relies on it.

    Raises
    ------
    RemoteError
        None is set.
    RemoteFailed
        It cannot be reached or read; the message says why. One to which nothing was pushed yet is readable.
    """
    name = repo.config["core"].get("remote")
    if not name:
        raise RemoteError("no remote is set: python -m flows remote folder|ssh|s3 ADDRESS")
    options = dict(repo.config["remote"].get(name, {}))
    try:
        remote = repo.cloud.get_remote(name)
        if remote.fs.ls(remote.path, detail=False) == [remote.path]:
            raise NotADirectoryError(errno.ENOTDIR, "a file", remote.path)
    except Exception as error:
        if isinstance(error, FileNotFoundError) and not hasattr(error.__cause__, "response"):
            return  # no folder or prefix yet; that a bucket is missing, S3 says in a response
        url = _printable("url", str(options.get("url", "")))
        raise RemoteFailed(f"remote {name} ({url}): {in_words(error, options)}") from error


def _probe(fs: Any, folder: str) -> str:
    content = secrets.token_bytes(PROBE_BYTES)
    probe = fs.join(folder, f".probe-{secrets.token_hex(8)}")
    if fs.protocol == "local" and not Path(folder).parent.is_dir():
        raise RemoteError("the folder above it is not there any more. Is the disk mounted?")
    fs.makedirs(folder)
    try:
        fs.upload_fobj(BytesIO(content), probe, size=len(content))
        with fs.open(probe, "rb") as stream:
            read = stream.read()
    except BaseException:
        with suppress(Exception):
            fs.remove(probe)
        raise
    fs.remove(probe)
    if read != content:
        raise RemoteError(f"{len(content)} bytes were written and {len(read)} others read back; do not trust it.")
    if fs.exists(probe):
        raise RemoteError("the probe object could be written but not removed.")
    return "written, read back and removed"


def _open_config(root: Path) -> Any:
    from dvc.config import Config, ConfigError

    if not (root / ".dvc").is_dir():
        raise RemoteError(f"{root}: no .dvc folder; run this in the root of the repository.")
    try:
        return Config(str(root / ".dvc"))
    except ConfigError as error:
        raise RemoteError(f"{root / '.dvc'}: {error}") from None


def _refuse_password(address: str, instead: str) -> None:
    """An address goes into a committed file; the message does not repeat what it refuses."""
    host = address.partition("://")[2] or address
    if ":" in host.partition("/")[0].rpartition("@")[0] or re.search(
        r"[?&](password|secret|token|\w*key\w*)=", host, re.I
    ):
        raise RemoteError(f"there is a password or a secret key in the address; {instead}.")


def _is_address(text: str) -> bool:
    with suppress(ValueError):
        return bool(ipaddress.ip_address(text))
    return False


def _printable(option: str, value: str) -> str:
    if HIDDEN.search(option):
        return "(set, not shown)"
    parts = urlsplit(value) if "://" in value else None
    if parts and parts.password:
        return value.replace(f":{parts.password}@", ":(not shown)@", 1)
    return value


def _credentials(options: Mapping[str, Any]) -> Iterator[str]:
    """Where the credentials of a remote come from."""
    url = str(options.get("url", ""))
    if url.startswith("ssh://"):
        agent = "an SSH agent runs" if os.environ.get("SSH_AUTH_SOCK") else "no SSH agent runs"
        yield f"the key {options['keyfile']}" if "keyfile" in options else f"{agent}; then the default keys in ~/.ssh"
        yield "the key of the host is not checked by DVC; hashes are, on each download"
    elif url.startswith("s3://"):
        present = [name for name in ENVIRONMENT if os.environ.get(name)]
        if options.get("access_key_id"):
            yield "keys in DVC's configuration"
        elif options.get("profile"):
            yield f"profile {options['profile']} of ~/.aws/credentials"
        else:
            yield f"the environment ({', '.join(present) or 'no AWS variable is set'}), then ~/.aws/credentials"
    else:
        yield "none; the folder's own permissions"
