"""From what a person named to a corpus: files are read, a tokenizer is found or trained, tokens are written."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from bertsmith.corpus.config import CorpusConfig
from bertsmith.corpus.corpus import Corpus
from bertsmith.corpus.manifest import describe_sources
from bertsmith.corpus.prepare import prepare_corpus
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import MANIFEST, new_folder
from bertsmith.text.documents import Document, TextConfig, read_documents
from bertsmith.tokenization.config import TokenizerConfig
from bertsmith.tokenization.domain_words import domain_words
from bertsmith.tokenization.tokenizer import Tokenizer
from bertsmith.tokenization.training import VocabularyTooLarge, VocabularyTooSmall, train_tokenizer


def is_corpus(source: str) -> bool:
    """Whether a source is a prepared corpus."""
    return (Path(source) / MANIFEST).is_file() and (Path(source) / "train").is_dir()


def automatic_vocab_size(files: Sequence[Path]) -> int:
    """A vocabulary that the files can fill, by their size."""
    from bertsmith.planning.choice import text_vocab_size  # Loads torch, which preparing a corpus does without.

    return text_vocab_size(sum(path.stat().st_size for path in files))


def new_tokenizer(
    files: Sequence[Path], text: TextConfig, config: TokenizerConfig, *, room: int | None = None
) -> Tokenizer:
    """Train a tokenizer on files; where the config does not say how large, as large as their size suggests.

    Args:
        files: the text.
        text: how the files are read.
        config: what to train.
        room: entries at most that such a size may have, since a model has no more embeddings.
    """

    def texts() -> Iterator[str]:
        return (document.text for document in read_documents(files, text))

    if "vocab_size" in config.model_fields_set:
        return train_tokenizer(texts, config)
    vocab_size = automatic_vocab_size(files) if room is None else min(automatic_vocab_size(files), room)
    try:
        return train_tokenizer(texts, config.model_copy(update={"vocab_size": vocab_size}))
    except VocabularyTooLarge as error:
        # Nobody asked for a size that the text, short or of few words, cannot fill.
        return train_tokenizer(texts, config.model_copy(update={"vocab_size": error.num_pieces}))
    except VocabularyTooSmall as error:
        if vocab_size != room:
            raise
        received = f"{error.received}, as the model has {room:,} embeddings"
        raise InputError(error.rule, received, f"{error.do.rstrip('.')} in the model's config.json.") from None


def tokenizer_for(
    files: Sequence[Path], text: TextConfig, config: TokenizerConfig, folder: Path, *, room: int | None = None
) -> Tokenizer:
    """The tokenizer that stands in `folder`, or one from `new_tokenizer` written there."""
    if (folder / MANIFEST).is_file():
        return Tokenizer.from_folder(folder)
    tokenizer = new_tokenizer(files, text, config, room=room)
    with new_folder(folder, seal={"kind": "tokenizer"}) as temporary:
        tokenizer.save(temporary)
    return tokenizer


def extended_tokenizer(
    tokenizer: Tokenizer, files: Sequence[Path], text: TextConfig, count: int, folder: Path
) -> Tokenizer:
    """The tokenizer that stands in `folder`, or `tokenizer` with words of the files added and written there.

    Args:
        tokenizer: of the model that is adapted.
        files: the domain's text.
        text: how the files are read.
        count: how many words, those that save the most pieces; fewer where the text has no more.
        folder: where the extended tokenizer belongs.
    """
    if (folder / MANIFEST).is_file():
        return Tokenizer.from_folder(folder)
    words = domain_words(tokenizer, (document.text for document in read_documents(files, text)), count)
    extended = tokenizer.with_words(words)
    with new_folder(folder, seal={"kind": "tokenizer"}) as temporary:
        extended.save(temporary)
    return extended


def prepare_files(
    files: Sequence[Path],
    tokenizer: Tokenizer,
    out: Path,
    *,
    text: TextConfig,
    config: CorpusConfig,
    on_progress: Callable[[int], None] | None = None,
) -> Corpus:
    """Tokenize files into a corpus folder."""
    return prepare_corpus(
        read_documents(files, text),
        tokenizer,
        out,
        config,
        sources=describe_sources(files),
        reading=text,
        on_progress=on_progress,
    )


def refuse_mixed_sources(sources: Sequence[str]) -> None:
    """Raise an `InputError` where a prepared corpus stands beside other sources."""
    if len(sources) > 1 and any(is_corpus(source) for source in sources):
        raise InputError(
            "A prepared corpus must be the only source",
            ", ".join(sources),
            "Name the corpus alone, or prepare all text into one.",
        )


def refuse_settings_of_text(
    sources: Sequence[str],
    *,
    tokenizer_folder: str | None,
    tokenizer: TokenizerConfig,
    text: TextConfig,
    corpus: CorpusConfig = CorpusConfig(),
) -> None:
    """Raise an `InputError` where a prepared corpus stands beside settings that it has decided already.

    A setting that is as where nothing is given passes, since a run writes down all of them; and so do settings of the
    tokenizer that the corpus's own was trained with, which a published config names whatever the sources are.
    """
    if not is_corpus(sources[0]):
        return
    given = {
        "--tokenizer": tokenizer_folder is not None,
        "tokenizer": bool(_other_settings(Tokenizer.from_folder(Corpus.open(sources[0]).tokenizer_folder), tokenizer)),
        "text": text != TextConfig(),
        "corpus": corpus.recorded != CorpusConfig().recorded,
    }
    names = [name if name.startswith("-") else f"settings of {name}" for name, is_given in given.items() if is_given]
    if names:
        raise InputError(
            "A prepared corpus brings its tokenizer and how its text was read",
            f"{sources[0]} and {', '.join(names)}",
            "Leave these out, or name the text in place of the corpus.",
        )


def given_tokenizer(sources: Sequence[str], folder: str | None, config: TokenizerConfig) -> Tokenizer | None:
    """The tokenizer of a prepared corpus or of the folder that was named; None where one will be trained.

    Raises:
        InputError: if it cannot be read, or settings of training one stand beside the folder.
    """
    if is_corpus(sources[0]):
        return Tokenizer.from_folder(Corpus.open(sources[0]).tokenizer_folder)
    if folder is None:
        return None
    tokenizer = Tokenizer.from_folder(folder)
    refuse_settings_of_tokenizer(tokenizer, config, brought_by=f"--tokenizer {folder}")
    return tokenizer


def refuse_settings_of_tokenizer(tokenizer: Tokenizer, config: TokenizerConfig, *, brought_by: str) -> None:
    """Raise an `InputError` where settings of training a tokenizer stand beside one that exists.

    What passes beside a prepared corpus passes here too.

    Args:
        tokenizer: the one that exists.
        config: the settings.
        brought_by: the option that names it, as it was given.
    """
    if others := _other_settings(tokenizer, config):
        raise InputError(
            "Settings of a tokenizer must be given where one is trained",
            f"{', '.join(others)}, and {brought_by}",
            "Leave these settings out, or let a tokenizer be trained.",
        )


def _other_settings(tokenizer: Tokenizer, config: TokenizerConfig) -> list[str]:
    """Settings that were given, and that a tokenizer was not trained with or says nothing of."""
    if config == TokenizerConfig() and "vocab_size" not in config.model_fields_set:
        return []
    made = tokenizer.config
    given = {name: getattr(config, name) for name in TokenizerConfig.model_fields if name in config.model_fields_set}
    return [
        f"tokenizer.{name}={str(value).lower()}"
        for name, value in given.items()
        if (made is None and (name == "vocab_size" or value != TokenizerConfig.model_fields[name].default))
        or (made is not None and value != getattr(made, name))
    ]


def write_documents(documents: Iterable[Document], path: Path) -> None:
    """Write documents as a text file, parted by blank lines."""
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for document in documents:
            lines = [line for line in document.text.split("\n") if line.strip()]
            file.write("\n".join(lines) + "\n\n")
