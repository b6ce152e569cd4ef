"""What is encrypted, for which place and with which key: the envelope and the keys (security-rules.md S30)."""

from __future__ import annotations

import base64
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from approvals.encryption import envelope
from approvals.encryption.envelope import CHUNK_BYTES, HEADER_BYTES, StoredPlace
from approvals.encryption.keys import new_key, parse_keys
from approvals.errors import KeyMissing, Undecipherable
from approvals.management.demo import supervisor
from tests.support.secrets import KUBECONFIG, NEW, OLD, with_keys

HERE = StoredPlace("kubeconfig of cluster", ("prod",))


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 2 * CHUNK_BYTES, 3_000_000])
def test_what_was_encrypted_is_decrypted(size: int) -> None:
    data = os.urandom(size)
    assert envelope.decrypt(envelope.encrypt(data, place=HERE), place=HERE) == data


def test_S30_equal_values_are_not_equal_when_encrypted() -> None:
    assert envelope.encrypt(b"a", place=HERE) != envelope.encrypt(b"a", place=HERE)


@pytest.mark.parametrize("at", [0, 3, 13, HEADER_BYTES - 1, HEADER_BYTES, HEADER_BYTES + 5, -1])
def test_S30_a_changed_byte_is_noticed(at: int) -> None:
    changed = bytearray(envelope.encrypt(b"a value", place=HERE))
    changed[at] ^= 1
    with pytest.raises((Undecipherable, KeyMissing)):
        envelope.decrypt(bytes(changed), place=HERE)


def test_S30_chunks_are_not_lost_doubled_moved_or_taken_from_elsewhere() -> None:
    data = os.urandom(3 * CHUNK_BYTES)
    whole, other = (list(envelope.encrypted_parts(data, place=HERE)) for _ in range(2))
    header, first, second, last = whole
    for parts in (
        [header, first, second],
        [header, first, last],
        [header, last],
        [header, second, first, last],
        [header, first, first, second, last],
        [header, first, second, last, last],
        [header, other[1], second, last],
        [other[0], first, second, last],
        [header],
        [header[:20]],
        [],
        [*whole, b"more"],
    ):
        with pytest.raises(Undecipherable):
            envelope.decrypt(b"".join(parts), place=HERE)


@pytest.mark.parametrize(
    "elsewhere",
    [
        StoredPlace("kubeconfig of cluster", ("staging",)),
        StoredPlace("report of request", ("prod",)),
        StoredPlace("kubeconfig of cluster", ("pro", "d")),
        StoredPlace("kubeconfig of clusterprod", ()),
    ],
)
def test_S30_what_was_encrypted_for_one_place_is_nothing_in_another(elsewhere: StoredPlace) -> None:
    with pytest.raises(Undecipherable, match="belongs to another record"):
        envelope.decrypt(envelope.encrypt(b"a", place=HERE), place=elsewhere)


def test_S30_plain_text_is_not_taken_for_what_was_encrypted() -> None:
    with pytest.raises(Undecipherable, match="kubeconfig of cluster prod is not encrypted"):
        envelope.decrypt(KUBECONFIG.encode(), place=HERE)


def test_S30_a_key_that_is_not_here_is_asked_for_by_its_name(settings: Any) -> None:
    with_keys(settings, OLD)
    encrypted = envelope.encrypt(b"a", place=HERE)
    with_keys(settings, NEW)
    with pytest.raises(KeyMissing, match=rf"key {OLD.name}, which PRATIQUE_ENCRYPTION_KEYS does not have; nothing is"):
        envelope.decrypt(encrypted, place=HERE)
    with_keys(settings, NEW, OLD)
    assert envelope.decrypt(encrypted, place=HERE) == b"a"


def test_a_new_key_is_taken_and_shown_to_nobody() -> None:
    text = new_key()
    (key,) = parse_keys(f" {text} ,")
    assert text not in repr(key)
    assert repr(key.secret) not in repr({"ENCRYPTION_KEYS": (key,)})
    assert parse_keys(text.translate(str.maketrans("-_", "+/"))) == (key,)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("c2hvcnQ=", "key 1 has 5 bytes"),
        (f"{base64.b64encode(bytes(range(32))).decode()},hunter2!", "key 2 is not base64"),
        (base64.b64encode(bytes(32)).decode(), "key 1 is not random"),
        (",".join([base64.b64encode(bytes(range(32))).decode()] * 2), "twice"),
    ],
    ids=["too short", "no base64", "not random", "twice"],
)
def test_a_bad_key_is_said_in_words_that_do_not_hold_it(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        parse_keys(text)
    assert not any(part in str(caught.value) for part in text.split(","))


def test_S30_the_demo_makes_its_own_key_and_keeps_it_also_where_it_ran_before(tmp_path: Path) -> None:
    path = tmp_path / "state" / "remembered.json"
    first = supervisor.remembered(path)
    assert parse_keys(first["encryption_key"])
    assert supervisor.remembered(path) == first
    path.write_text(json.dumps({**first, "encryption_key": ""}).replace('"encryption_key": ""', '"other": "1"'))
    path.chmod(0o644)
    older = supervisor.remembered(path)
    assert (older["password"], len(parse_keys(older["encryption_key"]))) == (first["password"], 1)
    assert supervisor.remembered(path) == older
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
