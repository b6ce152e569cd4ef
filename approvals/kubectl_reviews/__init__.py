"""Reviews that people make with kubectl: seen in the cluster, judged once, recorded like any other, and answered.

A BundleDeploymentReview proves who made it only while the shipped admission policies are in force, which the room
`admission` finds out. `review_rules` says what counts (pure), and `delivery` does the rest. Whatever is recorded goes
through services.review, which asks Kubernetes again.
"""

from approvals.kubectl_reviews.delivery import count, note_gone, note_seen, pending_clusters

__all__ = ["count", "note_gone", "note_seen", "pending_clusters"]
