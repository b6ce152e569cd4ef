"""Names as DNS has them, with the API server's words for others, and Kubernetes' order of version names."""

from __future__ import annotations

import re

LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
MAX_LABEL = 63
LABEL_WORDS = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
SUBDOMAIN_WORDS = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
DNS_LABEL_WORDS = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
LABEL_VALUE_WORDS = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
MAX_SUBDOMAIN = 253


def label_problems(name: str) -> str:
    """What is wrong with `name` as a DNS label that starts with a letter, in the API server's words; "" if nothing."""
    found = [f"must be no more than {MAX_LABEL} bytes"] if len(name) > MAX_LABEL else []
    return ",".join([*found, *([] if LABEL.fullmatch(name) else [LABEL_WORDS])])


def subdomain_problems(name: str) -> str:
    """What is wrong with `name` as a DNS name, in the API server's words; "" if nothing."""
    found = [f"must be no more than {MAX_SUBDOMAIN} bytes"] if len(name) > MAX_SUBDOMAIN else []
    return ",".join([*found, *([] if SUBDOMAIN.fullmatch(name) else [SUBDOMAIN_WORDS])])


NAME = re.compile(r"v([1-9][0-9]{0,62})(?:(alpha|beta)([1-9][0-9]{0,62}))?")
STAGES = {"alpha": 0, "beta": 1, "": 2}


def kube_order(name: str) -> tuple[int, ...]:
    """A sort key, the most preferred last: v1alpha1, v1beta1, v1, v2; names of another form first, from z to a."""
    found = NAME.fullmatch(name)
    if found is None:
        return (0, *(-ord(char) for char in name), 1)
    return (1, STAGES[found[2] or ""], int(found[1]), int(found[3] or 0))
