"""Settings are read from their texts, or refused with the name of the variable."""

import pytest

from approvals.project import configuration


def test_what_cannot_be_read_names_its_variable() -> None:
    with pytest.raises(ValueError, match="PRATIQUE_REQUEST_HOURS"):
        configuration.read({"PRATIQUE_REQUEST_HOURS": "soon"})


@pytest.mark.parametrize("listed", ["*", "registry.example, *"], ids=["alone", "beside others"])
def test_hosts_without_tls_are_listed_one_by_one(listed: str) -> None:
    with pytest.raises(ValueError, match=r"PRATIQUE_PLAIN_HTTP_HOSTS: '\*' would be every host: name each"):
        configuration.read({"PRATIQUE_PLAIN_HTTP_HOSTS": listed})
    given = "registry.example, registry.example:5000, *.internal.example"
    assert configuration.read({"PRATIQUE_PLAIN_HTTP_HOSTS": given})["PLAIN_HTTP_HOSTS"] == given.split(", ")


def test_a_switch_is_on_or_off_and_nothing_else() -> None:
    with pytest.raises(ValueError, match="PRATIQUE_DEBUG"):
        configuration.read({"PRATIQUE_DEBUG": "perhaps"})
