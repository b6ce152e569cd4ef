"""Who somebody is to Kubernetes, and what Kubernetes is asked about them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Identity:
    """Who Kubernetes takes somebody for."""

    username: str
    groups: tuple[str, ...] = ()
    uid: str = ""

    @classmethod
    def of_service_account(cls, namespace: str, name: str) -> Identity:
        """The identity and the groups that the API server gives a ServiceAccount."""
        return cls(
            f"system:serviceaccount:{namespace}:{name}",
            ("system:authenticated", "system:serviceaccounts", f"system:serviceaccounts:{namespace}"),
        )


@dataclass(frozen=True, slots=True)
class AccessRequest:
    """One question to Kubernetes' authorizers. `path` makes it a non-resource question; then the rest stays ""."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    def __str__(self) -> str:
        if self.path:
            return f"{self.verb} {self.path}"
        resource = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        resource = f"{resource}.{self.group}" if self.group else resource
        place = f" in {self.namespace}" if self.namespace else ""
        return f"{self.verb} {resource}{f' {self.name}' if self.name else ''}{place}"


@dataclass(frozen=True, slots=True)
class AccessAnswer:
    """What the API server said; `reason` is its own words, for people."""

    allowed: bool
    reason: str = ""
