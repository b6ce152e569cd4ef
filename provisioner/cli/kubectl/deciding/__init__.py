"""Commands about what says how requests are decided, where `kubectl` alone is not enough."""
