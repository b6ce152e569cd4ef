"""Checks of what keeps running: pods that go or do not start, and ways to reach them that end.

- `budgets`: disruption budgets that let no pod go, or protect none
- `needs`: what pods need by name and nobody has
- `nodes`: nodes that pods ask for and the cluster has not
- `replicas`: workloads that stop, and rollouts that leave no pod
- `services`: ways to reach pods that end, or lead nowhere
- `single_node`: volumes that one node at a time can mount
- `storage`: storage classes that nobody has
- `targets`: autoscalers and monitors whose target is gone
"""

__all__ = [
    "budgets",
    "needs",
    "nodes",
    "replicas",
    "services",
    "single_node",
    "storage",
    "targets",
]
