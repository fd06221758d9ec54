"""Whether what the cache gave back is what was put into it; DVC itself trusts an object by its name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.changes import Change

if TYPE_CHECKING:
    from dvc.output import Output


def remove_corrupt_list(out: Output) -> Iterator[Change]:
    """Remove a folder's list of files that does not hold what its name says: DVC would not write it again."""
    from dvc_data.hashfile.hash import file_md5

    if out.hash_info and out.hash_info.isdir:
        path = Path(out.cache.oid_to_path(out.hash_info.value))
        if path.is_file() and file_md5(str(path)) != out.hash_info.value.removesuffix(".dir"):
            path.unlink()
            yield Change("out", str(out), out.hash_info.value[:8], "corrupt in cache: its list of files")


def remove_corrupt(out: Output) -> Iterator[Change]:
    """Hash the objects of the cache that an out, as it was just hashed, is made of; remove those that are others."""
    from dvc_data.hashfile.hash import file_md5

    listed: Any = out.get_obj() if out.hash_info.isdir else None
    digests = [out.hash_info] if listed is None else [digest for _, (_, digest) in listed.iteritems()]
    for digest in digests:
        path = Path(out.cache.oid_to_path(digest.value))
        if path.is_file() and (found := file_md5(str(path), name=digest.name)) != digest.value:
            path.unlink()
            yield Change("out", str(out), digest.value[:8], f"corrupt in cache: {found[:8]}")
