from __future__ import annotations

import pytest

from provisioner.review.base.sizes import bytes_of, in_words


@pytest.mark.parametrize(
    ("quantity", "size"),
    [
        ("10Gi", 10 * 2**30),
        ("1.5Gi", 3 * 2**29),
        ("500M", 500 * 10**6),
        ("1e3", 1000),
        ("5k", 5000),
        (4096, 4096),
        ("", None),
        ("ten", None),
        (None, None),
        (True, None),
    ],
)
def test_a_quantity_is_read_as_kubernetes_reads_it(quantity: object, size: int | None) -> None:
    assert bytes_of(quantity) == size


@pytest.mark.parametrize(
    ("size", "words"), [(10 * 2**30, "10Gi"), (3 * 2**29, "1.5Gi"), (512, "512 bytes"), (0, "0 bytes")]
)
def test_a_size_is_said_in_the_largest_unit_that_fits(size: int, words: str) -> None:
    assert in_words(size) == words
