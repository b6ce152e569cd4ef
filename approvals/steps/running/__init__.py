"""What is done for a revision that runs: its health is read, and its drift found and corrected.

Modules that other rooms use:

- `correct`: drift: compare what others touched with what was approved, and put exactly that back
- `observe`: how the running revision is, asked of the cluster and kept with the deployment
"""

__all__ = [
    "correct",
    "observe",
]
