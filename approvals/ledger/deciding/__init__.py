"""What is kept of objects that say how requests are decided: copies, confirmations, runs of checks, and rows of
policies."""
