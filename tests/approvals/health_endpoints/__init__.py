"""What a process tells an operator beside its checks."""
