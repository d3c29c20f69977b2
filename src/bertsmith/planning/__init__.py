"""What a model or a run will be and cost, told beforehand."""
