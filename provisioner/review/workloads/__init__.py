"""What reports read of pods and volumes, wherever objects hide them.

- `container_changes`: images, arguments and variables that change
- `mentions`: objects that pods need by name
- `pod_security`: the Pod Security Standards as rows
- `pod_specs`: pods wherever objects hide them
- `selection`: pods that a selector picks
- `volumes`: claims and the data behind them
"""

__all__ = [
    "container_changes",
    "mentions",
    "pod_security",
    "pod_specs",
    "selection",
    "volumes",
]
