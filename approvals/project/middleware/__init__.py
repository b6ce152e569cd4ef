"""What every HTTP request passes through: whom a proxy vouches for, the log line, who is signed in, and rate limits."""
