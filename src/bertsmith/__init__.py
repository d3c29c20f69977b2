"""bertsmith: make, adapt and use BERT encoders on your own text, on the machine you have.

    import bertsmith

    run = bertsmith.pretrain(["corpus/"], out="my-bert", minutes=30)
    fill = bertsmith.load("my-bert/model")
    fill(["The [MASK] statement ends a loop."])

The names below are loaded when they are first used, so that importing the package stays light.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bertsmith.api import (
        AlignedLabels,
        Encoder,
        InputError,
        MaskedBatch,
        NextSentenceExample,
        PackedTokens,
        Plan,
        Prediction,
        Report,
        Run,
        Stopped,
        TaskModel,
        TaskOutput,
        Tokenizer,
        aligned_labels,
        attention,
        compare,
        draw_head,
        evaluate,
        export,
        finetune,
        generate,
        import_model,
        info,
        load,
        masked_batch,
        next_sentence_example,
        plan,
        prepare,
        pretrain,
        profile,
        push,
        train_tokenizer,
        verify,
    )

__version__ = "0.1.0"

__all__ = [
    "AlignedLabels",
    "Encoder",
    "InputError",
    "MaskedBatch",
    "NextSentenceExample",
    "PackedTokens",
    "Plan",
    "Prediction",
    "Report",
    "Run",
    "Stopped",
    "TaskModel",
    "TaskOutput",
    "Tokenizer",
    "aligned_labels",
    "attention",
    "compare",
    "draw_head",
    "evaluate",
    "export",
    "finetune",
    "generate",
    "import_model",
    "info",
    "load",
    "masked_batch",
    "next_sentence_example",
    "plan",
    "prepare",
    "pretrain",
    "profile",
    "push",
    "train_tokenizer",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from bertsmith import api

        return getattr(api, name)
    raise AttributeError(f"module 'bertsmith' has no attribute {name!r}")


def __dir__() -> list[str]:
    # So that names show up where they are looked for before they are loaded.
    return sorted({*globals(), *__all__})
