"""What is wrong with a remote, in words: from the exception that a transfer ended with."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator, Mapping
from typing import Any

#: Error code of an S3 answer -> words; `{bucket}` is filled in.
S3_CODES = {
    "NoSuchBucket": "missing bucket: there is no bucket {bucket}. Create it, or correct the name.",
    "InvalidAccessKeyId": "wrong key: the server does not know this access key. {keys}",
    "SignatureDoesNotMatch": "wrong key: the secret does not belong to the access key. {keys}",
    "InvalidToken": "wrong key: the session token is not valid. Sign in again.",
    "ExpiredToken": "wrong key: the session has expired. Sign in again.",
    "AccessDenied": "no permission: the key is known, but may not do this in {bucket}. Ask for GetObject, PutObject, "
    "DeleteObject and ListBucket.",
    "403": "no permission, or a wrong key: the server answered 403 for {bucket}. {keys}",
    "404": "missing bucket: the server answered 404 for {bucket}.",
    "QuotaExceeded": "no space: the quota of {bucket} is used up.",
    "EntityTooLarge": "no space: the server refuses an object of this size.",
    "XMinioStorageFull": "no space: the server's disks are full.",
}
KEYS = "Check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the profile in ~/.aws/credentials."


def in_words(error: BaseException, options: Mapping[str, Any]) -> str:
    """Explain why a remote does not work, most certain reason first.

    Parameters
    ----------
    error
        What was raised; its causes are searched too.
    options
        The remote's options as DVC reads them.
    """
    chain = list(_chain(error))
    url = str(options.get("url", ""))
    scheme = url.partition("://")[0] if "://" in url else "folder"
    explain = {"ssh": _ssh, "s3": _s3}.get(scheme, _folder)
    for one in chain:
        if words := explain(one, options) or _network(one, url):
            return words
    last = chain[-1]
    return f"{type(last).__name__}: {last}"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error, then what it came from."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _s3(error: BaseException, options: Mapping[str, Any]) -> str | None:
    bucket = str(options["url"]).removeprefix("s3://").partition("/")[0]
    endpoint = options.get("endpointurl") or "Amazon's servers"
    name = type(error).__name__
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):
        code = str(response.get("Error", {}).get("Code", ""))
        if code in S3_CODES:
            return S3_CODES[code].format(bucket=bucket, keys=KEYS)
        status = str(response.get("ResponseMetadata", {}).get("HTTPStatusCode", ""))
        if status in S3_CODES:
            return S3_CODES[status].format(bucket=bucket, keys=KEYS)
    found = {
        "NoCredentialsError": f"wrong key: no credentials were found. {KEYS}",
        "PartialCredentialsError": f"wrong key: half of the credentials is missing. {KEYS}",
        "ProfileNotFound": f"wrong key: {error}. See ~/.aws/credentials, or name another with --profile.",
        "EndpointConnectionError": f"unreachable host: nobody answers at {endpoint}.",
        "ConnectTimeoutError": f"unreachable host: {endpoint} does not answer.",
        "ReadTimeoutError": f"{endpoint} stopped answering.",
        "ConnectionClosedError": f"{endpoint} closed the connection.",
        "SSLError": f"the certificate of {endpoint} is not trusted: {error}",
    }
    return found.get(name)


def _ssh(error: BaseException, options: Mapping[str, Any]) -> str | None:
    path = "/" + str(options["url"]).removeprefix("ssh://").partition("/")[2]
    host = str(options["url"]).removeprefix("ssh://").partition("/")[0]
    name = type(error).__name__
    if name == "PermissionDenied":
        key = f"the key {options['keyfile']}" if "keyfile" in options else "the keys of the agent and of ~/.ssh"
        return (
            f"wrong key: {host} refuses {key}. Its public half must stand in the user's authorized_keys; is the user "
            "name right?"
        )
    if name in ("KeyImportError", "KeyEncryptionError"):
        return f"wrong key: {options.get('keyfile', 'a key')} cannot be read ({error}). With a passphrase: use ssh-add."
    if name == "SFTPPermissionDenied":
        return f"no permission: {host} refuses to write under {path}. Ask its owner, or choose another folder."
    if name == "SFTPNoSpaceOnFilesystem" or name == "SFTPQuotaExceeded":
        return f"no space: the disk of {host} under {path} is full."
    if name == "SFTPFailure":
        return (
            f"{host} failed to write under {path} and SFTP tells no reason; most often there is no space, or a file "
            f"lies where a folder should. Look with: ssh {host} df -h {path}"
        )
    if name in ("ConnectionLost", "SFTPConnectionLost", "SFTPNoConnection", "ChannelOpenError"):
        return f"{host} was reached, and then closed the connection."
    if name == "PermissionError" and getattr(error, "errno", None) is None:
        return _ssh(error.__cause__, options) if error.__cause__ else f"wrong key: {host} refuses it."
    return None


def _folder(error: BaseException, options: Mapping[str, Any]) -> str | None:
    if not isinstance(error, OSError):
        return None
    where = error.filename or options["url"]
    words = {
        errno.ENOSPC: f"no space: the disk is full ({where}).",
        errno.EDQUOT: f"no space: your quota is used up ({where}).",
        errno.EACCES: f"no permission: {where} may not be written or read by you.",
        errno.EPERM: f"no permission: {where} may not be changed by you.",
        errno.EROFS: f"no permission: {where} is on a disk mounted read-only.",
        errno.ENOTDIR: f"a file lies where a folder should ({where}).",
        errno.EEXIST: f"a file lies where a folder should ({where}).",
        errno.ENOENT: f"missing folder: {where}. Is the disk mounted?",
        errno.EIO: f"the disk does not answer ({where}): {error.strerror}.",
        errno.ESTALE: f"the network share does not answer ({where}): mount it again.",
    }
    return words.get(error.errno or 0)


def _network(error: BaseException, url: str) -> str | None:
    host = url.partition("://")[2].partition("/")[0].rpartition("@")[2] or url
    if isinstance(error, socket.gaierror):
        return f"unreachable host: the name {host} is not known ({error.strerror})."
    if isinstance(error, ConnectionRefusedError):
        return f"unreachable host: {host} is there, but nobody listens at this port. Does the server run?"
    if isinstance(error, TimeoutError) or type(error).__name__ == "FSTimeoutError":
        return f"unreachable host: {host} does not answer."
    if isinstance(error, OSError) and error.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ETIMEDOUT):
        return f"unreachable host: no way to {host} ({error.strerror})."
    if isinstance(error, ConnectionError):
        return f"{host} closed the connection ({error})."
    return None
