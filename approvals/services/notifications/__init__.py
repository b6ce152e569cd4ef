"""Notification targets: who may have which, their secrets, and sending to them by hand."""
