"""People whom a proxy in front has signed in."""
