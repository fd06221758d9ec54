"""pip's configuration without pip, compared with pip's own answer where pip is installed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stages.errors import UsageError
from stages.fetch import index, pipconfig


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Every configuration file pip reads, inside a temporary folder."""
    home = tmp_path / "home"
    monkeypatch.setattr(pipconfig, "SYSTEM", tmp_path / "etc")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    monkeypatch.delenv("PIP_CONFIG_FILE")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(home))
    files = {
        "xdg": tmp_path / "xdg/pip/pip.conf",
        "system": tmp_path / "etc/pip.conf",
        "old user": home / ".pip/pip.conf",
        "user": home / ".config/pip/pip.conf",
        "site": tmp_path / "venv/pip.conf",
        "chosen": tmp_path / "chosen.conf",
    }
    for file in files.values():
        file.parent.mkdir(parents=True, exist_ok=True)
    return files


def test_later_files_override_earlier_ones_and_variables_all(
    machine: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("xdg", "system", "old user", "user", "site"):
        machine[name].write_text(f"[global]\nindex-url = https://{name.replace(' ', '-')}.example/simple\n")
        assert pipconfig.read().index_url == f"https://{name.replace(' ', '-')}.example/simple"
    machine["chosen"].write_text("[global]\nindex-url = https://chosen.example/simple\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(machine["chosen"]))
    assert pipconfig.read().index_url == "https://chosen.example/simple"
    monkeypatch.setenv("PIP_INDEX_URL", "https://variable.example/simple")
    assert pipconfig.read().index_url == "https://variable.example/simple"
    monkeypatch.setenv("PIP_INDEX_URL", "")
    assert pipconfig.read().index_url == "https://chosen.example/simple"


def test_a_chosen_file_takes_the_place_of_the_users(machine: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    machine["user"].write_text("[global]\nproxy = http://user.example\n")
    machine["site"].write_text("[global]\ncert = site.pem\n")
    machine["chosen"].write_text("")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(machine["chosen"]))
    assert (pipconfig.read().proxy, pipconfig.read().cert) == (None, "site.pem")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    assert pipconfig.read() == pipconfig.PipConfig()


def test_the_section_of_the_command_overrides_global(machine: dict[str, Path]) -> None:
    machine["user"].write_text("[global]\ntimeout = 5\n[download]\ntimeout = 7\n[install]\ntimeout = 9\n")
    assert pipconfig.read().timeout == 7.0


def test_every_setting(machine: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    machine["user"].write_text(
        "[global]\nextra_index_url =\n    https://a.example/simple\n    https://b.example/simple\n"
        "find-links = ~/wheels /srv/wheels\nno-index = off\nclient-cert = me.pem\ntrusted-host = a.example\n"
    )
    monkeypatch.setenv("PIP_DEFAULT_TIMEOUT", "180")
    monkeypatch.setenv("PIP_RETRIES", "2")
    monkeypatch.setenv("PIP_CERT", "ca.pem")
    config = pipconfig.read()
    assert config == pipconfig.PipConfig(
        extra_index_urls=("https://a.example/simple", "https://b.example/simple"),
        find_links=(f"{os.environ['HOME']}/wheels", "/srv/wheels"),
        client_cert="me.pem",
        trusted_hosts=("a.example",),
        timeout=180.0,
        retries=2,
        cert="ca.pem",
    )


@pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="pip is not installed here")
def test_pip_itself_reads_the_same(machine: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    machine["xdg"].write_text("[global]\nproxy = http://xdg.example\ntimeout = 3\n")
    machine["old user"].write_text("[global]\nproxy = http://old.example\nretries = 9\n")
    machine["user"].write_text("[global]\nclient_cert = me.pem\nretries = 8\n")
    monkeypatch.setenv("PIP_TIMEOUT", "4")
    said = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True)
    # pip lists ":env:.timeout" and "global.timeout" apart, in the order of the alphabet; variables win.
    pairs = [line.partition("=") for line in reversed(said.stdout.splitlines())]
    ours = pipconfig.read()
    expected = {name.rpartition(".")[2]: value.strip("'") for name, _, value in pairs}
    assert expected.pop("timeout") == "4"
    assert ours.timeout == 4.0
    assert expected.pop("retries") == str(ours.retries)
    assert expected.pop("proxy") == ours.proxy
    assert expected.pop("client-cert") == ours.client_cert


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[global]\nno-index = perhaps\n", "no-index: found 'perhaps'; expected yes or no"),
        ("[global]\ntimeout = soon\n", "timeout: found 'soon'; expected a number"),
        ("index-url = x\n", "pip's configuration cannot be read: File contains no section headers"),
    ],
)
def test_a_wrong_value_is_named(machine: dict[str, Path], text: str, fault: str) -> None:
    machine["user"].write_text(text)
    with pytest.raises(UsageError) as caught:
        pipconfig.read()
    assert fault in str(caught.value)


def test_the_default_index_is_asked_between_find_links_and_the_extra_ones() -> None:
    from unearth import PackageFinder

    config = pipconfig.PipConfig(extra_index_urls=("https://extra.example/simple",), find_links=("wheels",))
    default = PackageFinder().sources[0]["url"]
    asked = [("find_links", "wheels"), ("index", default), ("index", "https://extra.example/simple")]
    assert index.places(config) == asked
    assert index.places(pipconfig.PipConfig(no_index=True, find_links=("wheels",))) == asked[:1]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("GET https://me:p%40ss@h.example/simple/?token=1#x failed", "GET https://***@h.example/simple/ failed"),
        ("token@h: https://token@h.example/a", "token@h: https://***@h.example/a"),
        ("file:///srv/wheels and http://h.example:80/b", "file:///srv/wheels and http://h.example:80/b"),
        ("https://[broken", "an unreadable URL"),
    ],
)
def test_credentials_are_not_shown(text: str, shown: str) -> None:
    assert index.redact(text) == shown
