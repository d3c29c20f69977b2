"""Training state on disk: written whole, sealed, kept and chosen."""
