"""What people do and see with kubectl: reviews, known authors, mirrored requests."""
