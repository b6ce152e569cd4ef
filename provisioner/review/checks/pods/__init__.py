"""Checks of pods: what they run and read, where, as whom, and what they may do to their node.

- `accounts`: accounts that pods run as
- `bounds`: probes, requests and limits
- `commands`: commands, arguments, variables and mounts that change
- `fetched`: commands that fetch what they run
- `hardening`: security contexts that become stricter
- `hidden`: volumes over files of the image
- `images`: images and where they come from
- `isolation`: what keeps containers apart
- `names`: how pods resolve host names
- `placement`: the nodes that pods run on
- `pod_habits`: limits, probes, tokens, priorities
- `pods`: what pods may do to their node
- `reading`: Secrets of somebody else
- `scripts`: scripts of ConfigMaps that containers run
- `settings`: ConfigMaps and Secrets that are read at run time
- `tokens`: tokens of accounts
"""

__all__ = [
    "accounts",
    "bounds",
    "commands",
    "fetched",
    "hardening",
    "hidden",
    "images",
    "isolation",
    "names",
    "placement",
    "pod_habits",
    "pods",
    "reading",
    "scripts",
    "settings",
    "tokens",
]
