"""Commands that fetch what they run, so that no review has seen it, or that give others a shell.

Texts are searched for what people and attackers write, not run: what hides well enough is not found. Bounded in time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum

# A command is short: what is longer than this is text that it writes somewhere.
MAX_CHARACTERS = 50_000
_MAX_FILES = 20


class FetchedCode(StrEnum):
    """What a command does, as POD-29 names it."""

    DOWNLOADS = "downloads"
    DECODES = "decodes"
    GIVES_SHELL = "gives-shell"
    APPLIES = "applies"
    INSTALLS = "installs"


# Where a word begins, and the folders before the name of a program.
_PATH = r"(?<![\w./-])(?:[\w./-]{0,200}/)?"
_SHELL = r"(?:ba|z|da|k|a|c|tc|fi)?sh"
_INTERPRETER = re.compile(
    rf"(?:(?:sudo|exec|env|busybox|xargs|nohup|time)\s+(?:-\S+\s+)*)*{_PATH}"
    rf"(?P<name>{_SHELL}|python[\d.]*|perl|ruby|node|php|lua|pwsh|source|\.)(?![\w./-])(?P<rest>.*)",
    re.DOTALL,
)
_FETCHER = re.compile(rf"{_PATH}(?:curl|wget|aria2c|lynx|ftpget|tftp)(?![\w.-])")
_DECODER = re.compile(
    rf"{_PATH}(?:base(?:64|32)\s[^|]{{0,80}}(?:-d|-D|--decode)(?!\w)|openssl\s[^|]{{0,80}}-d(?!\w)|xxd\s[^|]{{0,40}}-r)"
)
# `sh -c "$(curl …)"`, `bash <(curl …)`, backticks after eval: what is put in is run.
_INSERTED = re.compile(
    rf"(?:^\s*|(?:{_PATH}{_SHELL}|eval|source|(?<!\S)\.)\s+(?:-\w+\s+)*[\"']?\s*)(?:\$\(|<\(|`)\s*(?P<inner>[^)`]{{0,400}})"
)
_TARGET = re.compile(r"(?:\s-[a-zA-Z]{0,6}[oO](?:\s+|=)?|\s--output(?:-document)?[ =]|>\s*)[\"']?(?P<file>[\w./${}-]+)")
_ADDRESS = re.compile(r"(?:https?|ftp)://[^\s\"'|;&)]+")
_CODE = re.compile(rf"{_PATH}(?:python[\d.]*|perl|ruby|node|php)\s+(?:-\S+\s+)*?(?:-\w*[cer]|--eval)\s")
_CODE_FETCHES = re.compile(
    r"urlopen|urlretrieve|requests\.|http\.client|httpx|LWP|open-uri|Net::HTTP|fetch\(|https?\.get|get_contents|socket"
)
_CODE_RUNS = re.compile(
    r"\bexec\w*\b|\beval\b|\bcompile\b|os\.system|popen|subprocess|pty|child_process|\bsystem\b|runpy|dup2",
    re.IGNORECASE,
)
_GIVES_SHELL = re.compile(
    rf"{_PATH}(?:nc|ncat|netcat)\s(?:[^|;\n]{{0,200}}\s)?(?:-\w*[ec](?!\w)|--(?:sh-)?exec)"
    rf"|/dev/(?:tcp|udp)/[\w.${{]|{_PATH}socat\s[^|;\n]{{0,200}}(?:exec|system):",
    re.IGNORECASE,
)
_OPEN_SHELL = re.compile(rf"{_PATH}{_SHELL}\s+-\w*i(?!\w)")
_CONNECTS = re.compile(rf"{_PATH}(?:nc|ncat|netcat|telnet)\s")
_APPLIES = re.compile(
    rf"{_PATH}(?:kubectl|oc)\s(?:[^|;\n]{{0,200}}\s)?(?:apply|create|replace)\s[^|;\n]{{0,200}}https?://"
)
_APPLIES_INPUT = re.compile(rf"\s*{_PATH}(?:kubectl|oc)\s[^|;\n]{{0,200}}(?:-f|--filename)[ =]*-")
_INSTALLER = re.compile(
    rf"{_PATH}(?:(?:pip[\d.]*|gem|go|cargo|npm|yarn|pnpm|apt|apt-get|yum|dnf|microdnf|zypper|apk)"
    r"(?:\s+-\S+)*\s+(?:install|add|i)|npx|uvx)\s+(?:-\S+\s+)*[^-\s]"
)
_COMMANDS = re.compile(r"\n|;|&&|\|\|")
# What shells take out of a word (`c""url`, `cu\rl`), and what they put in for a space.
_NOISE = re.compile(r"''|\"\"|\\(?=[A-Za-z])")
_SPACE = re.compile(r"\$\{?IFS\}?")
_VARIABLE = re.compile(r"\$[({](?P<name>[A-Za-z_]\w*)[)}]|\$(?P<bare>[A-Za-z_]\w*)")


def fetched_code(words: list[str], variables: Mapping[str, str]) -> list[FetchedCode]:
    """What the words of a command do of this, the worst first; `variables` are put in where it names them."""
    text = " ".join(words)
    # As a shell reads it: its variables put in, also those of variables, and without what only hides words.
    for _ in range(2):
        text = _VARIABLE.sub(lambda name: variables.get(name["name"] or name["bare"], name[0]), text[:MAX_CHARACTERS])
    found = set(_of_text(_SPACE.sub(" ", _NOISE.sub("", text[:MAX_CHARACTERS]))))
    return [code for code in FetchedCode if code in found]


def _of_text(text: str) -> Iterator[FetchedCode]:
    files: list[str] = []
    for command in _COMMANDS.split(text):
        # What comes out of one stage and is run by a later one.
        stages = command.split("|")
        is_fetched = is_decoded = is_connected = is_shell = False
        for stage in stages:
            if _runs_input(stage):
                yield from [FetchedCode.DECODES] if is_decoded else [FetchedCode.DOWNLOADS] if is_fetched else []
                yield from [FetchedCode.GIVES_SHELL] if is_connected else []
            if is_shell and _CONNECTS.search(stage):
                yield FetchedCode.GIVES_SHELL
            if is_fetched and _APPLIES_INPUT.match(stage):
                yield FetchedCode.APPLIES
            is_fetched = is_fetched or bool(_FETCHER.search(stage))
            is_decoded = is_decoded or bool(_DECODER.search(stage))
            is_connected = is_connected or bool(_CONNECTS.search(stage))
            is_shell = is_shell or bool(_OPEN_SHELL.search(stage))
        yield from _of_inserted(command)
        if any(_runs_file(command, file) for file in files):
            yield FetchedCode.DOWNLOADS
        if _FETCHER.search(command) and len(files) < _MAX_FILES:
            # The names under which a download may be stored.
            named = [found["file"] for found in _TARGET.finditer(command)]
            named += [found[0].partition("?")[0] for found in _ADDRESS.finditer(command)]
            stored = (name.rstrip("/").rpartition("/")[2] for name in named[:_MAX_FILES])
            files += [name for name in stored if name and name != "null"]
    if _GIVES_SHELL.search(text):
        yield FetchedCode.GIVES_SHELL
    if _APPLIES.search(text):
        yield FetchedCode.APPLIES
    if (
        (code := _CODE.search(text))
        and _CODE_FETCHES.search(text, code.start())
        and _CODE_RUNS.search(text, code.end())
    ):
        yield FetchedCode.DOWNLOADS
    if _INSTALLER.search(text):
        yield FetchedCode.INSTALLS


def _of_inserted(command: str) -> Iterator[FetchedCode]:
    for found in _INSERTED.finditer(command):
        if _FETCHER.search(found["inner"]):
            yield FetchedCode.DOWNLOADS
        elif _DECODER.search(command, found.start("inner")):
            yield FetchedCode.DECODES


def _runs_input(stage: str) -> bool:
    """Whether an interpreter runs what is piped into it: not where it has a script or code of its own."""
    found = _INTERPRETER.match(stage.strip(" \t\"'({"))
    if found is None:
        return False
    for word in found["rest"].split():
        if word in {"-", "-s", "/dev/stdin"} or word[0] in ")}'\"`>&2":
            return True
        if not word.startswith("-") or word in {"-c", "-e", "-r", "-m", "--eval"}:
            return False
    return True


def _runs_file(command: str, file: str) -> bool:
    """Whether a command runs a file, or makes it one that can be run."""
    words = command.strip(" \t\"'({").split()[:12]
    skipped = {"then", "do", "exec", "sudo", "time", "nohup", "env", "busybox", "else"}
    words = [word.strip("\"')}") for word in words if word not in skipped]
    if not words:
        return False
    if words[0].rpartition("/")[2] == "chmod":
        may_run = any(
            "x" in word or (word.isdecimal() and any(int(digit) % 2 for digit in word[-3:])) for word in words[1:2]
        )
        return may_run and any(_is_file(word, file) for word in words[2:])
    is_interpreted = bool(_INTERPRETER.match(" ".join(words))) and "-c" not in words
    first = next((word for word in words[1:] if not word.startswith("-")), "") if is_interpreted else words[0]
    return _is_file(first, file)


def _is_file(word: str, file: str) -> bool:
    return word.rpartition("/")[2] == file
