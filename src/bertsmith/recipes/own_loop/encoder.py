"""The encoder of a model folder as a torch module."""

from pathlib import Path

from torch import Tensor

from bertsmith.folders.model_folder import read_model
from bertsmith.foundation.errors import InputError
from bertsmith.model import encoder as of_model
from bertsmith.model.attention import AttentionKind
from bertsmith.recipes.own_loop.padded import Padded
from bertsmith.recipes.predict import model_folder_of


class Encoder(of_model.Encoder):
    """A transformer encoder of any family, without a head: an ordinary torch module.

    `from_folder` opens one; ``encoder(token_ids, attention_mask, segment_ids)`` reads padded sequences, as people think
    of them, and `packed` those that `PackedTokens.build` made, without padding.
    """

    @classmethod
    def from_folder(cls, folder: str | Path, *, attention: AttentionKind = "fused") -> "Encoder":
        """Open the encoder of a model, in eval mode, in fp32 and on the CPU.

        Args:
            folder: a model folder, from here or from the Hub, or the folder of a finished run.
            attention: ``recording`` for an encoder whose `attention_weights` can be asked for; slower.

        Raises:
            InputError: if the folder holds no model, only a graph, or an ELMo, which is no transformer.
        """
        found = read_model(model_folder_of(folder), attention=attention).model.encoder
        if not isinstance(found, of_model.Encoder):
            raise InputError(
                "Encoder.from_folder opens a transformer",
                f"{folder}, an ELMo, which reads by LSTMs",
                "Use the folder of another family, or bertsmith.load(folder) for its vectors.",
            )
        # The same parts under this class, as torch itself makes a module out of a saved one.
        encoder = cls.__new__(cls)
        encoder.__setstate__(vars(found))
        return encoder.eval()

    def forward(
        self, token_ids: Tensor, attention_mask: Tensor | None = None, segment_ids: Tensor | None = None
    ) -> Tensor:
        """Encode padded sequences.

        Args:
            token_ids: whole numbers ``[batch, sequence]``, padded to one length.
            attention_mask: ``[batch, sequence]``, not 0 where a token is real; all are where not given.
            segment_ids: ``[batch, sequence]``; 0 where not given.

        Returns:
            the last layer's output, ``[batch, sequence, hidden]``; 0 where a token is padding.

        Raises:
            InputError: for another shape or type, an id that the encoder has no embedding for, or a sequence that is
                longer than its positions.
        """
        given = Padded.checked(self.config, token_ids, attention_mask, segment_ids)
        return super().forward(given.token_ids, given.real, given.segment_ids)
