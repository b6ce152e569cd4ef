"""Settings are read from their texts, or refused with the name of the variable."""

import pytest

from approvals.project import configuration


def test_what_cannot_be_read_names_its_variable() -> None:
    with pytest.raises(ValueError, match="PRATIQUE_REQUEST_HOURS"):
        configuration.read({"PRATIQUE_REQUEST_HOURS": "soon"})


def test_a_switch_is_on_or_off_and_nothing_else() -> None:
    with pytest.raises(ValueError, match="PRATIQUE_DEBUG"):
        configuration.read({"PRATIQUE_DEBUG": "perhaps"})
