"""Create, update, patch, apply and delete: what the API server does to an object on its way in."""
