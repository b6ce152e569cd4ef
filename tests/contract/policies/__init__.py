"""What the shipped admission policies admit and refuse, on a real API server."""
