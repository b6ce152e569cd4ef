"""The whole service on a cluster: in one process that takes its steps (`Station`), or in processes of its own (`Machine`)."""
