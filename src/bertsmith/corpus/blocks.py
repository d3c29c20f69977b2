"""Blocks of documents: cut from the stream, tokenized as a whole, handed to the writer as flat arrays."""

import dataclasses
import hashlib
import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from jaxtyping import Bool, Int, UInt

from bertsmith.foundation.random_streams import derived_seed
from bertsmith.text.documents import Document
from bertsmith.text.sentences import split_sentences
from bertsmith.tokenization.tokenizer import Tokenizer

BLOCK_CHARACTERS = 1_000_000
# One call of the tokenizer holds about a hundred bytes a token until its ids are read: small calls keep workers small.
_CALL_CHARACTERS = 65_536


@dataclasses.dataclass(frozen=True)
class TokenBlock:
    """The tokens of some documents in their order, with every bound as a count.

    Args:
        token_ids: uint16 or uint32, all sentences one after another.
        sentence_lengths: tokens of each sentence, at least one.
        sentence_characters: code points of each sentence.
        sentence_bytes: UTF-8 bytes of each sentence.
        document_sentences: sentences of each document; 0 where no sentence gave a token.
        document_keys: 64 bits that are a pure function of the seed and the document's text.
    """

    token_ids: UInt[np.ndarray, " tokens"]
    sentence_lengths: Int[np.ndarray, " sentences"]
    sentence_characters: Int[np.ndarray, " sentences"]
    sentence_bytes: Int[np.ndarray, " sentences"]
    document_sentences: Int[np.ndarray, " documents"]
    document_keys: UInt[np.ndarray, " documents"]

    @property
    def num_documents(self) -> int:
        """Documents in the block, those without a token included."""
        return len(self.document_keys)

    def where(self, chosen: Bool[np.ndarray, " documents"]) -> "TokenBlock":
        """The block of the chosen documents, in the same order."""
        sentences = np.repeat(chosen, self.document_sentences)
        return dataclasses.replace(
            self,
            token_ids=self.token_ids[np.repeat(sentences, self.sentence_lengths)],
            sentence_lengths=self.sentence_lengths[sentences],
            sentence_characters=self.sentence_characters[sentences],
            sentence_bytes=self.sentence_bytes[sentences],
            document_sentences=self.document_sentences[chosen],
            document_keys=self.document_keys[chosen],
        )

    def then(self, later: "TokenBlock") -> "TokenBlock":
        """This block and a later one as one block."""
        return dataclasses.replace(
            self,
            **{
                field.name: np.concatenate([getattr(self, field.name), getattr(later, field.name)])
                for field in dataclasses.fields(self)
            },
        )

    def cut(self, num_sentences: int) -> tuple["TokenBlock", "TokenBlock"]:
        """The block's only document as two documents: its first `num_sentences` sentences, and the others."""
        total = int(self.document_sentences[0])
        halves = dataclasses.replace(
            self,
            document_sentences=np.array([num_sentences, total - num_sentences], dtype=np.int64),
            document_keys=np.repeat(self.document_keys, 2),
        )
        return halves.where(np.array([True, False])), halves.where(np.array([False, True]))


def document_blocks(documents: Iterable[Document]) -> Iterator[list[str]]:
    """Group the texts of documents into blocks of at most `BLOCK_CHARACTERS`, or of one longer document."""
    block: list[str] = []
    characters = 0
    for document in documents:
        if block and characters + len(document.text) > BLOCK_CHARACTERS:
            yield block
            block, characters = [], 0
        block.append(document.text)
        characters += len(document.text)
    if block:
        yield block


def token_dtype(vocab_size: int) -> str:
    """Name of the smallest of uint16 and uint32 that holds every token id."""
    return "uint16" if vocab_size <= 1 << 16 else "uint32"


def tokenize_block(texts: Sequence[str], tokenizer: Tokenizer, *, seed: int) -> TokenBlock:
    """Split the documents of one block into sentences and tokenize them; sentences without a token are left out."""
    by_document = [split_sentences(text) for text in texts]
    sentences = list(itertools.chain.from_iterable(by_document))
    dtype = token_dtype(tokenizer.vocab_size)
    found = [tokenizer.flat_piece_ids(call) for call in _calls(sentences)]
    lengths = np.concatenate([np.empty(0, dtype=np.int64), *(lengths for _, lengths in found)])
    kept = lengths > 0
    document_of = np.repeat(np.arange(len(texts)), [len(found) for found in by_document])
    return TokenBlock(
        token_ids=np.concatenate([np.empty(0, dtype=dtype), *(token_ids.astype(dtype) for token_ids, _ in found)]),
        sentence_lengths=lengths[kept],
        sentence_characters=np.fromiter(map(len, sentences), np.int64, len(sentences))[kept],
        sentence_bytes=np.fromiter((len(_utf8(text)) for text in sentences), np.int64, len(sentences))[kept],
        document_sentences=np.bincount(document_of[kept], minlength=len(texts)).astype(np.int64),
        document_keys=_keys(texts, seed),
    )


def _keys(texts: Sequence[str], seed: int) -> UInt[np.ndarray, " documents"]:
    secret = derived_seed(seed, "validation").to_bytes(8, "little")
    digests = [hashlib.blake2b(_utf8(text), digest_size=8, key=secret).digest() for text in texts]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def _utf8(text: str) -> bytes:
    # JSON can smuggle in half a surrogate pair, which has no UTF-8 form of its own.
    return text.encode("utf-8", "surrogatepass")


def _calls(sentences: list[str]) -> Iterator[list[str]]:
    call: list[str] = []
    characters = 0
    for sentence in sentences:
        call.append(sentence)
        characters += len(sentence)
        if characters >= _CALL_CHARACTERS:
            yield call
            call, characters = [], 0
    if call:
        yield call
