"""Objects of bundles that are not as they should be: changed by others, left out, or written and not heard of."""

from approvals.models.objects.drift import Drift
from approvals.models.objects.optional import OptionalObject
from approvals.models.objects.stray import Stray

__all__ = ["Drift", "OptionalObject", "Stray"]
