"""What a changed CustomResourceDefinition does to the objects that exist, and to whatever counts on them.

- `comparison`: two versions of it, each change as a finding
- `conditions`: which objects a finding depends on
- `given`: objects that somebody gives, where no cluster is asked
- `live_findings`: what is said of stored objects
- `live_scene`: the objects that exist of a CRD
- `owners`: who else lays claim to its names, or to the whole of it
- `references`: what counts on a version or kind that goes
- `schema_tree`: its fields as a picture
- `severity_from_objects`: severities as the objects prove them
- `unstored`: what would become of objects where none exists
"""

__all__ = [
    "comparison",
    "conditions",
    "given",
    "live_findings",
    "live_scene",
    "owners",
    "references",
    "schema_tree",
    "severity_from_objects",
    "unstored",
]
