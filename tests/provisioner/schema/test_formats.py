from __future__ import annotations

import pytest

from provisioner.regexes import BadRegularExpression, compiled
from provisioner.schema.formats import fits, honoured, matches

VALID = {
    "bsonobjectid": ["507f1f77bcf86cd799439011"],
    "uri": ["https://example.com/a?b#c", "/path", "mailto:a@b"],
    "email": ["a@b.co", "Ann <ann@example.com>", "a.b+c@example"],
    "hostname": ["example.com", "a", "1.example.org", "müller.de"],
    "ipv4": ["10.0.0.1", "010.0.0.1", "::ffff:10.0.0.1"],
    "ipv6": ["::1", "2001:db8::1"],
    "cidr": ["10.0.0.0/8", "::/0", "010.0.0.0/8"],
    "mac": ["00:00:5e:00:53:01", "0000.5e00.5301", "02-00-5e-10-00-00-00-01"],
    "uuid": ["6BA7B810-9dad-11d1-80b4-00c04fd430c8", "6ba7b8109dad11d180b400c04fd430c8"],
    "uuid4": ["6ba7b810-9dad-41d1-80b4-00c04fd430c8"],
    "isbn": ["0321751043", "978-0321751041"],
    "creditcard": ["4111 1111 1111 1111"],
    "ssn": ["111-22-3333"],
    "hexcolor": ["#fff", "FFFFFF"],
    "rgbcolor": ["rgb(255, 0,12)"],
    "byte": ["YWJj", "YQ=="],
    "password": ["", "x"],
    "date": ["2024-02-29"],
    "date-time": ["2024-01-02T03:04:05Z", "2024-01-02t03:04:05.123+01:00"],
    "duration": ["1h30m", "-1.5s", "0", "22 minutes", "1 day"],
    "k8s-short-name": ["a", "a-1"],
    "k8s-long-name": ["a.b-c.d"],
}
INVALID = {
    "bsonobjectid": ["507f", "z07f1f77bcf86cd799439011"],
    "uri": ["", "a b", "example", "http://[::1", "%zz"],
    "email": ["a", "a@", "a b@c.d", "a@b, c@d"],
    "hostname": ["", "-a", "a..b", "a_b", "a." + "b" * 64],
    "ipv4": ["10.0.0", "10.0.0.256", "::1", "10.0.0.1/8"],
    "ipv6": ["10.0.0.1", "fe80::1%eth0", ":::"],
    "cidr": ["10.0.0.0", "10.0.0.0/33", "x/8", "10.0.0.0/-1"],
    "mac": ["00:00:5e:00:53", "00:00-5e:00:53:01"],
    "uuid": ["6ba7b810", "zba7b810-9dad-11d1-80b4-00c04fd430c8"],
    "uuid4": ["6ba7b810-9dad-11d1-80b4-00c04fd430c8"],
    "isbn": ["0321751044", "978-0321751042", "x"],
    "creditcard": ["4111 1111 1111 1112"],
    "ssn": ["111223333", "1111-22-333"],
    "hexcolor": ["#ff", "red"],
    "rgbcolor": ["rgb(256,0,0)", "rgb(1,2)"],
    "byte": ["", "YQ", "Y Q="],
    "date": ["2023-02-29", "2024-1-2", "2024-01-02T"],
    "date-time": ["2024-01-02", "2024-01-02 03:04:05Z", "2024-01-02T24:00:00Z"],
    "duration": ["", "1", "x", "one hour"],
    "k8s-short-name": ["A", "-a", "a" * 64],
    "k8s-long-name": ["a..b", "A", "a." * 127 + "a"],
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in VALID.items() for text in texts])
def test_a_text_in_its_format_is_valid(name: str, text: str) -> None:
    assert honoured("string", name) == name
    assert fits(name, text)


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in INVALID.items() for text in texts])
def test_another_text_is_not(name: str, text: str) -> None:
    assert not fits(name, text)


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        ("string", "nonsense", ""),
        ("string", "int32", ""),
        ("integer", "int32", "int32"),
        ("integer", "email", ""),
        ("number", "float", "float"),
        ("number", "int32", ""),
        ("boolean", "email", ""),
        ("", "date-time", "date-time"),
        ("string", "datetime", "datetime"),
    ],
)
def test_a_format_counts_only_for_its_type(kind: str, name: str, expected: str) -> None:
    assert honoured(kind, name) == expected


def test_patterns_are_searched_for_and_never_slow() -> None:
    assert matches("b", "abc")
    assert not matches("^b", "abc")
    assert not matches("(a+)+$", "a" * 5000 + "b")


def test_a_pattern_that_is_none_is_an_error() -> None:
    with pytest.raises(BadRegularExpression):
        compiled("(")
    with pytest.raises(BadRegularExpression):
        compiled("(?<=a)b")
