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
"""
