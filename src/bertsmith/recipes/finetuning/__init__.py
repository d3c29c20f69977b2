"""Fine-tuning: rows with labels become a model that does a job."""
