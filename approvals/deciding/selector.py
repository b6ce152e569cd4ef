"""Which requests an object is about: one selector for all kinds, all of whose parts must fit. PURE."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from approvals.deciding.spec_fields import SpecFields
from provisioner.values import Severity

SEVERITIES = tuple(map(str, Severity))
# Severities by how bad they are, as `provisioner.values` has them: 0 is the worst.
_RANKS = {str(severity): severity.rank for severity in Severity}


@dataclass(frozen=True, slots=True)
class SelectedBy:
    """What a selector looks at of one request.

    `labels` are the sets that its deployment had since the request was made, and has now (S14). They are
    `all_kept` unless there were more than are kept. `hosts_before`, `packages_before` and `format_before` are those of
    what runs, which goes or is replaced. `worst_new` is the severity of the worst new finding. Hosts are in lower case.
    """

    name: str
    labels: tuple[Mapping[str, str], ...] = ()
    format: str = ""
    hosts: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    hosts_before: tuple[str, ...] = ()
    packages_before: tuple[str, ...] = ()
    format_before: str = ""
    worst_new: str = str(Severity.UNKNOWN)
    are_labels_kept: bool = True


@dataclass(frozen=True, slots=True)
class Selector:
    """`names`, `hosts` and `packages` are names or globs. What is left empty selects everything."""

    names: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    formats: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    min_severity: str = ""

    @classmethod
    def read(cls, fields: SpecFields) -> Selector:
        """Raises UnreadableObject."""
        found = cls(
            names=fields.texts("names"),
            labels=fields.labels("matchLabels"),
            formats=fields.texts("formats"),
            hosts=fields.texts("sourceHosts"),
            packages=fields.texts("packages"),
            min_severity=fields.choice("minSeverity", SEVERITIES, default=""),
        )
        fields.end()
        return found

    def selects(self, request: SelectedBy, *, by_every_label_set: bool = False) -> bool:
        """Whether all parts fit.

        What holds a request back selects by any set of labels that the deployment had (S14), and by what runs as well;
        what lets one pass has to fit `by_every_label_set`, and what the request brings. Where not all sets are kept,
        some set may have been any.
        """
        fits = [all(has.get(key) == value for key, value in self.labels.items()) for has in request.labels or ({},)]
        if not request.are_labels_kept and self.labels:
            fits.append(not by_every_label_set)
        hosts, packages, formats = request.hosts, request.packages, {request.format}
        if not by_every_label_set:
            hosts, packages = (*hosts, *request.hosts_before), (*packages, *request.packages_before)
            formats |= {request.format_before}
        is_grave = not self.min_severity or _RANKS.get(request.worst_new, 0) <= _RANKS[self.min_severity]
        return (
            (all(fits) if by_every_label_set else any(fits))
            and _fits_any(self.names, (request.name,))
            and (not self.formats or bool(formats & {*self.formats}))
            and _fits_any([glob.lower() for glob in self.hosts], hosts)
            and _fits_any(self.packages, packages)
            and is_grave
        )

    @property
    def words(self) -> str:
        """What it selects, as a phrase: `payments-*, team=payments`."""
        parts = [
            *self.names,
            *(f"{key}={value}" for key, value in sorted(self.labels.items())),
            *(f"format {one}" for one in self.formats),
            *(f"from {one}" for one in self.hosts),
            *(f"package {one}" for one in self.packages),
            *([f"{self.min_severity} or worse"] if self.min_severity else []),
        ]
        return ", ".join(parts) or "every deployment"


def _fits_any(globs: Iterable[str], found: Iterable[str]) -> bool:
    wanted = list(globs)
    return not wanted or any(fnmatch.fnmatchcase(one, glob) for one in found for glob in wanted)
