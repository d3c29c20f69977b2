"""The one training loop: step, optimizer, schedule, observers."""
