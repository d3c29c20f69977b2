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
        Encoder,
        attention,
        compare,
        evaluate,
        export,
        finetune,
        generate,
        import_model,
        info,
        load,
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
    "Encoder",
    "attention",
    "compare",
    "evaluate",
    "export",
    "finetune",
    "generate",
    "import_model",
    "info",
    "load",
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
