"""The objects in what templates came to, cut into documents as Helm cuts it before it sends them.

Where Helm cuts decides what a text at the end of a document is: whatever blanks stand before `---` are gone, and the
last line of each document ends with a line break whether its template wrote one or not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from provisioner.errors import InvalidManifest
from provisioner.render.limits import YamlMeter
from provisioner.render.objects import Found
from provisioner.render.yaml import load_documents

# As in Helm's SplitManifests, `---` counts also where something follows it on its line.
_BLANKS = "\t\n\f\r "
_LINE = re.compile(r":\d+")
_SEPARATOR = re.compile(rf"^---[{_BLANKS}]*", re.MULTILINE)


def rendered_objects(texts: Mapping[str, str], folder: str, meter: YamlMeter) -> Iterator[Found]:
    """The objects of each template by its path in the chart, which lies in `folder` of the tree.

    Raises BundleTooLarge, and InvalidManifest with the line of the template's whole text: what else is wrong may quote
    values, and stands in its `server_words`.
    """
    for path, text in sorted(texts.items()):
        place = f"{folder}/{path}" if folder else path
        try:
            for document in _documents(text):
                for one in load_documents(document.encode(), name=place, meter=meter):
                    yield Found(one.value, place)
        except InvalidManifest as exc:
            line = _LINE.match(str(exc).removeprefix(place))
            words = f"{place}{line[0] if line else ''}: what this template renders is no valid YAML"
            raise InvalidManifest(words, server_words=str(exc)) from exc


def _documents(text: str) -> Iterator[str]:
    """Each document that says something, after as many line breaks as there are before it in the text."""
    start, line = 0, 0
    for found in _SEPARATOR.finditer(text):
        yield from _document(text[start : found.start()].rstrip(_BLANKS), line)
        line += text.count("\n", start, found.end())
        start = found.end()
    yield from _document(text[start:], line)


def _document(text: str, line: int) -> Iterator[str]:
    if said := text.lstrip():
        yield "\n" * (line + text.count("\n", 0, len(text) - len(said))) + said + "\n"
