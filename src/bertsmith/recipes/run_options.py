"""Options of the commands and functions that train, by their names: each one's setting in a run's config stands here
once."""

_SHARED = {
    "max_length": "max_length",
    "epochs": "length.epochs",
    "steps": "length.steps",
    "minutes": "length.minutes",
    "device": "runtime.device",
    "precision": "runtime.precision",
    "threads": "runtime.threads",
    "seed": "training.seed",
}
PRETRAINING_SETTINGS = _SHARED | {
    "sources": "sources",
    "tokenizer": "tokenizer_folder",
    "model": "model.start",
    "objective": "objective",
    "extend_vocabulary": "extend_vocabulary",
    "batch_tokens": "training.batch_tokens",
}
FINETUNING_SETTINGS = _SHARED | {
    "task": "task",
    "train": "train",
    "model": "model",
    "validation": "validation",
    "text": "data.text",
    "pair": "data.pair",
    "label": "data.label",
    "strict": "data.strict",
    "encoding": "data.encoding",
    "batch_size": "training.batch_size",
    "learning_rate": "training.optimizer.learning_rate",
    "seeds": "seeds",
}
