"""Device, precision, and running an objective on a batch."""
