"""What reports read of pods and volumes, wherever objects hide them.

- `pod_security`: the Pod Security Standards as rows
- `pod_specs`: pods wherever objects hide them
- `volumes`: claims and the data behind them
"""

__all__ = [
    "pod_security",
    "pod_specs",
    "volumes",
]
