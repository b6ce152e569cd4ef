"""Checks of pods: what they may do to their node, their images, and what they read.

- `images`: images and where they come from
- `pod_habits`: limits, probes, tokens, priorities
- `pods`: what pods may do to their node
- `settings`: ConfigMaps and Secrets that are read at run time
"""

__all__ = [
    "images",
    "pod_habits",
    "pods",
    "settings",
]
