"""One file a job: wiring only."""
