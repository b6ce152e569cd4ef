"""The whole service on a cluster: in one process that takes its steps (`DeployedSite`), or in processes of its own (`Machine`)."""
