"""A catalog's file is cut where its publisher ended a document, whatever the form, holding one at a time."""

from __future__ import annotations

import io
import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioner.catalogs import documents
from provisioner.catalogs.documents import PIECE_BYTES, documents_of
from provisioner.errors import BundleTooLarge


def cut(text: str | bytes, max_bytes: int = 10_000_000) -> list[tuple[str, int]]:
    data = text.encode() if isinstance(text, str) else text
    return [
        (part.decode().strip(), line) for part, line in documents_of(io.BytesIO(data), name="c", max_bytes=max_bytes)
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param("\n\n  \n", [], id="blank"),
        pytest.param("---\na: 1\n---\nb: 2\n", [("---\na: 1", 1), ("---\nb: 2", 3)], id="yaml"),
        pytest.param("a: 1\n---\nb: 2", [("a: 1", 1), ("---\nb: 2", 2)], id="no separator first, no newline last"),
        pytest.param('{"a": 1}{"b": 2}', [('{"a": 1}', 1), ('{"b": 2}', 1)], id="json on one line"),
        pytest.param('{\n"a": {}\n}\n\n{"b": 2}\n', [('{\n"a": {}\n}', 1), ('{"b": 2}', 5)], id="json on many lines"),
        pytest.param('{"a": "}{"}{"b": "\\"}"}', [('{"a": "}{"}', 1), ('{"b": "\\"}"}', 1)], id="braces in texts"),
        pytest.param('{"a": "\\\\"}{"b": 1}', [('{"a": "\\\\"}', 1), ('{"b": 1}', 1)], id="a backslash at the end"),
        pytest.param('{"a": 1}\n---\nb: 2\n', [('{"a": 1}', 1), ("---\nb: 2", 2)], id="json, then yaml"),
        pytest.param('{"a": "x\n---\n"}', [('{"a": "x\n---\n"}', 1)], id="a separator inside of an object"),
        pytest.param('{"a": ', [('{"a":', 1)], id="cut off: its reader says so"),
    ],
)
@pytest.mark.parametrize("piece_bytes", [PIECE_BYTES, 3, 8])
def test_documents_are_cut_where_they_end(
    text: str, found: list[tuple[str, int]], piece_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "PIECE_BYTES", piece_bytes)
    assert cut(text) == found


def test_an_object_longer_than_a_piece_is_one_document() -> None:
    long = json.dumps({"data": "x\\" * PIECE_BYTES})
    assert [text for text, _ in cut(long + '{"b": 1}')] == [long, '{"b": 1}']


@given(st.lists(st.dictionaries(st.text(max_size=5), st.text() | st.none(), max_size=4), max_size=5), st.booleans())
def test_joined_objects_come_back_alone(objects: list[dict[str, str | None]], is_pretty: bool) -> None:
    texts = [json.dumps(one, indent=2 if is_pretty else None, ensure_ascii=False) for one in objects]
    assert [json.loads(text) for text, _ in cut("".join(texts).encode("utf-8", "surrogatepass"))] == objects


def test_a_document_over_the_limit_is_refused_with_its_line() -> None:
    with pytest.raises(BundleTooLarge, match=r"^c:3: a document of more than 20 bytes \(max_document_bytes\)$"):
        cut("a: 1\n\n---\n" + "b: " + "x" * 30, max_bytes=20)


def test_a_line_that_never_ends_is_refused_before_it_is_held() -> None:
    class Endless(io.RawIOBase):
        read_bytes = 0

        def readline(self, size: int | None = -1, /) -> bytes:
            assert size is not None and size > 0
            self.read_bytes += size
            return b"x" * size

        read = readline

    endless = Endless()
    with pytest.raises(BundleTooLarge):
        list(documents_of(endless, name="c", max_bytes=3 * PIECE_BYTES))
    assert endless.read_bytes <= 4 * PIECE_BYTES


def test_S26_a_document_of_short_lines_takes_little_beside_its_text() -> None:
    text = b"- a\n" * 1_000_000
    tracemalloc.start()
    try:
        assert [len(part) for part, _ in documents_of(io.BytesIO(text), name="c", max_bytes=len(text))] == [len(text)]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3 * len(text) + 4 * PIECE_BYTES
