"""Whom the plug-in speaks to: a person at a terminal, or a program."""

from __future__ import annotations

import argparse
import os
import pydoc
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from provisioner.cli.arguments import Usage
from provisioner.escaping import visible
from provisioner.render import YamlLimits, load_all
from provisioner.sentences import number

# To the first line and column, and nothing below (ECMA-48, 8.3.21 and 8.3.39).
CLEARED = "\x1b[H\x1b[J"


def is_conversation() -> bool:
    """Whether a question can be asked and answered."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def is_coloured(options: argparse.Namespace) -> bool:
    """As --color says; else at a terminal, unless NO_COLOR is set (https://no-color.org). Never for programs."""
    if getattr(options, "output", "text") not in ("text", "wide"):
        return False
    if options.color != "auto":
        return bool(options.color == "always")
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def is_agreed(options: argparse.Namespace, what: str) -> bool:
    """Whether somebody says yes to `what`, or has said so before (--yes). Raises Usage where nobody can be asked."""
    if options.yes:
        return True
    if not is_conversation():
        raise Usage("no terminal to confirm on: pass --yes")
    sys.stderr.write(f"\nDo you want to {visible(what)}? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def page(text: str) -> None:
    """Through $PAGER where it is longer than the terminal; an empty $PAGER wishes for none."""
    is_long = text.count("\n") >= shutil.get_terminal_size().lines
    if is_long and sys.stdout.isatty() and os.environ.get("PAGER", "less"):
        os.environ.setdefault("LESS", "-FRX")
        pydoc.pager(text)
    else:
        write(text)


def write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def read_one_document(name: str, limits: YamlLimits, expected: str) -> Mapping[str, Any]:
    """The one document of a file, or of standard input for `-`; never more is read than `limits` allow.

    Raises Usage, InvalidManifest and BundleTooLarge.
    """
    try:
        if name == "-":
            text = sys.stdin.buffer.read(limits.max_file_bytes + 1)
        else:
            with Path(name).open("rb") as file:
                text = file.read(limits.max_file_bytes + 1)
    except OSError as exc:
        raise Usage(f"{name}: {exc.strerror}") from exc
    found = load_all(text, name="standard input" if name == "-" else name, limits=limits)
    if len(found) != 1 or not isinstance(found[0], Mapping):
        raise Usage(f"{name}: {number(len(found), 'document')}; expected one {expected}")
    return found[0]
