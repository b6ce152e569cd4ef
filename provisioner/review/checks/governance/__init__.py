"""Checks of what governs others: admission, quotas and the objects that the control plane goes by."""
