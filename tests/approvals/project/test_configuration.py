"""Settings are read from their texts, or refused with the name of the variable."""

import pytest

from approvals.project import configuration


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("REQUEST_HOURS", "soon", "'soon' was given: expected a whole number, 1 or more"),
        ("REQUEST_HOURS", "1.5", "expected a whole number, 1 or more"),
        ("MAX_OPEN_REQUESTS", "-1", "'-1' was given: expected a whole number, 0 or more"),
        ("KEEP_DAYS", "36501", "expected a whole number, 0 to 36500"),
        ("DEBUG", "perhaps", "'perhaps' is not a boolean: expected true or false"),
        ("UNSEEN_SEVERITY", "bad", "'bad' was given: expected safe, notable, dangerous, breaking or critical"),
        (
            "ALLOWED_NETWORKS",
            "10.0.0.0/8, 10.1.2.3/8",
            "'10.1.2.3/8' was given: expected a network, such as 10.0.0.0/8",
        ),
        ("PUBLIC_URL", "pratique.example", "'pratique.example' was given: expected https://HOST"),
        ("EMAIL_FROM", "Pratique <pratique>", "expected an address, such as Pratique <pratique@example.com>"),
        ("EMAIL_FROM", "p@mail.example\nBcc: eve@evil.example", "expected an address"),
        ("LOG_FORMAT", "jsn", "'jsn' was given: expected json or console"),
    ],
)
def test_what_cannot_be_read_names_its_variable_and_what_was_expected(name: str, text: str, words: str) -> None:
    with pytest.raises(ValueError, match=f"PRATIQUE_{name}: .*{words}"):
        configuration.read({f"PRATIQUE_{name}": text})


@pytest.mark.parametrize("text", ["0", "-1"])
def test_S21_no_setting_lets_requests_be_approved_by_nobody(text: str) -> None:
    with pytest.raises(ValueError, match="PRATIQUE_APPROVALS_NEEDED: .* expected a whole number, 1 or more"):
        configuration.read({"PRATIQUE_APPROVALS_NEEDED": text})


def test_a_number_may_be_nothing_where_that_means_something() -> None:
    found = configuration.read({"PRATIQUE_KEEP_DAYS": "0", "PRATIQUE_SOURCE_POLL_SECONDS": " 0 "})
    assert (found["KEEP_DAYS"], found["SOURCE_POLL_SECONDS"]) == (0, 0)


@pytest.mark.parametrize("listed", ["*", "registry.example, *"], ids=["alone", "beside others"])
def test_hosts_without_tls_are_listed_one_by_one(listed: str) -> None:
    with pytest.raises(ValueError, match=r"PRATIQUE_PLAIN_HTTP_HOSTS: '\*' would be every host: name each"):
        configuration.read({"PRATIQUE_PLAIN_HTTP_HOSTS": listed})
    given = "registry.example, registry.example:5000, *.internal.example"
    assert configuration.read({"PRATIQUE_PLAIN_HTTP_HOSTS": given})["PLAIN_HTTP_HOSTS"] == given.split(", ")
