"""Set, show or check the place where results are kept for other machines (a DVC remote)."""

from __future__ import annotations

import argparse
from pathlib import Path

from flows.remotes import NAME, Settings, check, folder_settings, s3_settings, set_remote, shown, ssh_settings

NEXT = """\
next: python -m flows remote check       tries it
      python -m flows remote push        after each run; the same as dvc push --run-cache, which must be said:
                                         without the run-cache other machines run everything again
      python -m flows repro --pull       on another machine: takes what is there, runs the rest"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``remote``."""
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="folder|ssh|s3|show|check|push|pull")
    folder = kinds.add_parser("folder", help="a folder, such as a mounted disk")
    folder.add_argument("address", metavar="PATH")
    ssh = kinds.add_parser("ssh", help="a folder on a host that answers SSH")
    ssh.add_argument("address", metavar="USER@HOST:/PATH")
    ssh.add_argument("--port", type=int, help="default: what ~/.ssh/config says, else 22")
    ssh.add_argument("--key", metavar="FILE", help="private key (default: the SSH agent and the keys in ~/.ssh)")
    s3 = kinds.add_parser("s3", help="a bucket of S3, or of a server that speaks it")
    s3.add_argument("address", metavar="s3://BUCKET/PREFIX")
    s3.add_argument("--endpoint", metavar="URL", help="server other than Amazon's")
    s3.add_argument("--profile", help="section of ~/.aws/credentials (default: the environment)")
    for kind in (folder, ssh, s3):
        kind.add_argument("--name", default=NAME, help=f"name of the remote (default: {NAME})")
        kind.add_argument(
            "--local", action="store_true", help="for this checkout only: write nothing that is committed"
        )
    kinds.add_parser("show", help="what is set, without secrets")
    checked = kinds.add_parser("check", help="write, read back and remove a small object; say what is wrong")
    pushed = kinds.add_parser("push", help="what dvc push --run-cache does, with plain errors")
    pushed.add_argument("--replace", action="store_true", help="first read what is there, and put anew what is damaged")
    pulled = kinds.add_parser("pull", help="what dvc pull --run-cache does; names objects that are damaged or missing")
    for kind in (checked, pushed, pulled):
        kind.add_argument("name", nargs="?", help="default: the default remote")


def run(options: argparse.Namespace) -> int:
    """Run one of them."""
    root = Path.cwd()
    if options.kind == "show":
        print("\n".join(shown(root)))
    elif options.kind == "check":
        print(check(root, options.name))
    elif options.kind in ("push", "pull"):
        from flows.transfer import pull, push

        print(push(root, options.name, replace=options.replace) if options.kind == "push" else pull(root, options.name))
    else:
        settings = _settings(options)
        set_remote(root, settings, options.name, here_only=options.local)
        where = ".dvc/config.local, which is not committed" if options.local else ".dvc/config; commit it"
        print(f"remote {options.name} = {settings.url}, written to {where}")
        if settings.own and not options.local:
            print(f"{', '.join(settings.own)} written to .dvc/config.local, which is not committed")
        print(NEXT)
    return 0


def _settings(options: argparse.Namespace) -> Settings:
    if options.kind == "folder":
        return folder_settings(options.address)
    if options.kind == "ssh":
        return ssh_settings(options.address, options.port, options.key)
    return s3_settings(options.address, options.endpoint, options.profile)
