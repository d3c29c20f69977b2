"""The demonstration: its text, its questions, its run."""
