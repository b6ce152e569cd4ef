"""Checks of webhooks, policies and API services, and of what they reach."""
