"""Models in from elsewhere, and out to the Hub."""
