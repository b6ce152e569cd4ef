"""READ FIRST: the stages joined. Content comes in by `prepare`, is looked at by `look`, and enters by `deploy`.

    prepare   sources → pins → trees → manifests → Content       nothing of the cluster but its kinds is needed
    look      Content + cluster → plan, facts → Report            reads only; dry-runs change nothing
    deploy    Content + the reviewed plan → Outcomes              the same bytes, as the identity of the cluster given
    observe   objects → their health
    preflight Content + cluster → may the installing account   reads, and asks for its rights
    remove    everything of an inventory → Outcomes, in reverse order

Each stage is a function of values; keeping them, and asking people in between, is the caller's. `preparation`
makes the content, `plans` the plans and what comes of them, `reports` what people read, `offline` that without a
cluster.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from provisioner.cluster.annotations import FIELD_MANAGER
from provisioner.pipeline.offline import PATTERN_SECONDS, REVIEW_SECONDS, look_offline
from provisioner.pipeline.preparation import (
    FetchedSources,
    PrepareOptions,
    fetch_sources,
    join,
    moves,
    prepare,
    ready_to_render,
    render_sources,
    resolving,
    target_of,
)

if TYPE_CHECKING:
    from provisioner.pipeline.plans import DEADLINE_SECONDS, deploy, observe, part_of, plan_again, remove
    from provisioner.pipeline.reports import least_rights, look, permissions, preflight, roles_and_bindings
else:

    def __getattr__(name: str) -> object:
        """What talks to a cluster, loaded with its first use: a review of files goes without."""
        for module in ("plans", "reports") if name in __all__ else ():
            if hasattr(room := import_module(f"{__name__}.{module}"), name):
                return getattr(room, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "DEADLINE_SECONDS",
    "FIELD_MANAGER",
    "PATTERN_SECONDS",
    "REVIEW_SECONDS",
    "FetchedSources",
    "PrepareOptions",
    "deploy",
    "fetch_sources",
    "join",
    "least_rights",
    "look",
    "look_offline",
    "moves",
    "observe",
    "part_of",
    "permissions",
    "plan_again",
    "preflight",
    "prepare",
    "ready_to_render",
    "remove",
    "render_sources",
    "resolving",
    "roles_and_bindings",
    "target_of",
]
