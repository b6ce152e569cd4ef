"""Pratique's library: content in, reports out, exactly those bytes applied. Knows no Django, queues or approvals.

Most callers need `pipeline` and the values that go in and out of it; nothing is imported before it is asked for:

    >>> from provisioner.pipeline import PrepareOptions, look_offline, prepare
    >>> from provisioner.source import EgressPolicy, LocalSource
    >>> from provisioner.unpack import UnpackLimits
    >>> content = prepare(
    ...     [LocalSource(bundle)],
    ...     options=PrepareOptions("harbour"),
    ...     egress=EgressPolicy(),
    ...     credentials=None,
    ...     limits=UnpackLimits(),
    ...     is_namespaced=lambda kind: None,
    ... )
    >>> [str(manifest.ref) for manifest in content.manifests]
    ['ConfigMap harbour/settings']
    >>> look_offline(content, previous=None).headline
    ('1 object to create.', 'Findings: 1 safe.')

The rooms, and `__all__` of each says what code outside of it may use:

- `pipeline`: the stages joined: read it first
- `values`: what travels between the rooms
- `errors`: what cannot be found out or done
- `source`: references to pinned archives
- `unpack`: archives to a bounded tree
- `render`: a tree to manifests
- `reading`: what reports are made of, read from a cluster
- `review`: content and facts to a report
- `cluster`: the only room that meets Kubernetes
- `health_checks`: the health checks of a spec
- `rbac`: roles and what they give
- `schema`: schemas of custom resources
- `plugins`: formats, sources and checks of other packages
- `expressions`: CEL of others, in bounded processes
- `sandbox`: a small Kubernetes API for tries and tests
- `sentences`: numbers and lists in words
- `alignment`: which items of two lists stand for each other
- `api_groups`: API groups that many rooms name
- `retention`: which claims a StatefulSet takes along
- `catalogs`: file-based catalogs of OLM, and which version may follow which
- `masking`: values in plain objects that nobody should be shown
- `versions`: versions, ranges of them, and constraints on them
- `phases`: the phases in which objects enter a cluster
- `confinement`: what the kernel takes from a process that reads what is untrusted
- `unserved`: why a cluster serves no such kind, and which versions Kubernetes removed
- `cli`: the command `pratique`
"""

__all__ = [
    "alignment",
    "api_groups",
    "catalogs",
    "cli",
    "cluster",
    "confinement",
    "errors",
    "expressions",
    "health_checks",
    "masking",
    "phases",
    "pipeline",
    "plugins",
    "rbac",
    "reading",
    "render",
    "retention",
    "review",
    "sandbox",
    "schema",
    "sentences",
    "source",
    "unpack",
    "unserved",
    "values",
    "versions",
]
