"""What is kept of objects that say how requests are decided."""
