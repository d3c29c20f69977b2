"""Pre-training: what a run is made of, and running it."""
