"""One file an objective: its loss, its metrics and its decoding."""
