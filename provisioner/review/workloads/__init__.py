"""What reports read of pods and volumes, wherever objects hide them.

- `container_changes`: images, commands and variables that change
- `fetched_code`: commands that fetch what they run
- `mentions`: objects that pods need by name
- `mounts`: what containers mount, and where
- `pod_changes`: pods of objects that stay, before and after
- `pod_security`: the Pod Security Standards as rows
- `pod_specs`: pods wherever objects hide them
- `scale`: how many pods workloads run
- `selection`: pods that a selector picks
- `volumes`: claims and the data behind them
- `workload_changes`: what will run: images, how many pods, access to nodes, accounts
"""

__all__ = [
    "container_changes",
    "fetched_code",
    "mentions",
    "mounts",
    "pod_changes",
    "pod_security",
    "pod_specs",
    "scale",
    "selection",
    "volumes",
    "workload_changes",
]
