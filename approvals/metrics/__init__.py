"""Metrics for Prometheus: what each process counts, and what the records and the queue say at the moment of asking.

`exposition` is the text of one scrape. `serve` offers it on an address of its own, the view at /metrics to whoever has
the token. The web process and beat also tell of records and queue; a worker and the watch only of themselves.
"""

from approvals.metrics.exposition import answer_on, exposition, metrics, serve

__all__ = ["answer_on", "exposition", "metrics", "serve"]
