"""Whole journeys in real browsers: people in windows of their own, the machine between them, a cluster that answers."""
