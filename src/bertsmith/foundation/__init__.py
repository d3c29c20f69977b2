"""What every other package stands on: errors, strict configs, random streams and files that are whole or absent."""
