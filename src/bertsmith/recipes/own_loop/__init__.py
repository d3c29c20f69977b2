"""What a training loop of a person's own is made of: torch modules out of a model folder, and examples to train on."""
