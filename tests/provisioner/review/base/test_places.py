"""Names of fields in texts are found as a pattern would find them."""

from __future__ import annotations

import random
import re

from provisioner.review.base.places import names_field, with_field_as

FIELDS = ("a", "spec.a", "a[].b", "ab", "ä")


def test_a_name_is_found_only_where_it_stands_alone() -> None:
    chosen = random.Random(19)
    for _ in range(20_000):
        text = "".join(chosen.choice("ab.[]{ spec_,:ä") for _ in range(12)) + chosen.choice(FIELDS)
        field = chosen.choice(FIELDS)
        alone = rf"(?<![\w.\[]){re.escape(field)}"
        assert with_field_as(text, field, "F") == re.sub(rf"{alone}(?![\w.\[])", "F", text), (text, field)
        assert names_field(text, field) == bool(re.search(rf"{alone}(?![\w.\[{{])", text)), (text, field)
