"""The README tells the truth about the settings."""

import re
from pathlib import Path

import pytest

from approvals.project import configuration

README = Path(__file__).parents[3] / "README.md"


def test_the_readme_lists_exactly_the_settings_with_their_defaults() -> None:
    rows = re.findall(r"^\| `PRATIQUE_(\w+)` \| (.*?) \| (.*) \|$", README.read_text(), re.MULTILINE)
    expected = [(it.name, f"`{it.default}`" if it.default else "", it.meaning) for it in configuration.SETTINGS]
    assert rows == expected


def test_what_cannot_be_read_names_its_variable() -> None:
    with pytest.raises(ValueError, match="PRATIQUE_REQUEST_HOURS"):
        configuration.read({"PRATIQUE_REQUEST_HOURS": "soon"})


def test_a_switch_is_on_or_off_and_nothing_else() -> None:
    with pytest.raises(ValueError, match="PRATIQUE_DEBUG"):
        configuration.read({"PRATIQUE_DEBUG": "perhaps"})
