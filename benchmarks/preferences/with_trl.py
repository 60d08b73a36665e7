"""Train TRL's RewardTrainer on audited preferences: ``python -m benchmarks.preferences.with_trl``; needs ``trl``.

Planted liars label 40% of the pairs of support mails. The model is a small transformer with random weights, so that
nothing is downloaded. Accuracy is that on new mails by honest voters.
"""

import argparse
import tempfile
from dataclasses import dataclass

import polars as pl
import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import LlamaConfig, LlamaForSequenceClassification, PreTrainedTokenizerFast, set_seed
from trl import RewardConfig, RewardTrainer
from trl.trainer.reward_trainer import DataCollatorForPreference

from fairduel.votes.rewards.handing_on import audited_preferences
from fairduel.votes.rewards.pairs import read_pairs
from fairduel.votes.rewards.planted import planted_preferences
from fairduel.votes.rewards.preference_audit import audit_preferences

_PAD, _UNKNOWN, _END = "[PAD]", "[UNK]", "[EOS]"


@dataclass
class WithWeights(DataCollatorForPreference):
    """TRL's collator, which hands the weights on."""

    def torch_call(self, examples):
        return super().torch_call(examples) | {"weight": torch.tensor([float(each["weight"]) for each in examples])}


class WeightedTrainer(RewardTrainer):
    """TRL's trainer, each pair counted by its weight."""

    def _set_signature_columns_if_needed(self):
        super()._set_signature_columns_if_needed()
        self._signature_columns = [*self._signature_columns, "weight"]  # TRL drops columns that it does not know

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):  # noqa: ARG002, FBT002  # TRL's
        weight, margin = inputs.pop("weight"), inputs.pop("margin", 0.0)
        found = model(**inputs, use_cache=False)
        chosen, rejected = found.logits.squeeze(-1).chunk(2)
        losses = -torch.nn.functional.logsigmoid(chosen - rejected - margin)
        loss = (weight * losses).sum() / weight.sum().clamp(min=1e-6)
        return (loss, found) if return_outputs else loss


def words(*tables: pl.DataFrame) -> PreTrainedTokenizerFast:
    """Return a tokenizer that knows every word of the tables."""
    texts = pl.concat([table[name] for table in tables for name in ("prompt", "chosen", "rejected")])
    split = pre_tokenizers.Sequence([pre_tokenizers.Whitespace()])
    known = {word for text in texts.unique() for word, _ in split.pre_tokenize_str(text)}
    places = {word: place for place, word in enumerate([_PAD, _UNKNOWN, _END, *sorted(known)])}
    made = Tokenizer(models.WordLevel(places, unk_token=_UNKNOWN))
    made.pre_tokenizer = split
    made.post_processor = processors.TemplateProcessing(single=f"$A {_END}", special_tokens=[(_END, 2)])
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token=_PAD, unk_token=_UNKNOWN, eos_token=_END)


def accuracy(table: pl.DataFrame, test: pl.DataFrame, *, epochs: int, seed: int) -> float:
    """Return in which share of the ``test`` a reward model prefers the chosen text, trained on a table with weights."""
    set_seed(seed)
    tokenizer = words(table, test)
    size = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = LlamaConfig(
        vocab_size=len(tokenizer), pad_token_id=0, eos_token_id=2, bos_token_id=2, num_labels=1, **size
    )
    columns = ["prompt", "chosen", "rejected", "weight"]
    with tempfile.TemporaryDirectory() as folder:
        settings = RewardConfig(
            output_dir=folder, num_train_epochs=epochs, per_device_train_batch_size=32, learning_rate=3e-3, seed=seed,
            save_strategy="no", report_to=[], logging_steps=10_000, use_cpu=True, bf16=False, disable_tqdm=True,
            gradient_checkpointing=False, dataset_num_proc=None,
        )  # fmt: skip
        trainer = WeightedTrainer(
            LlamaForSequenceClassification(config), settings, WithWeights(pad_token_id=0),
            Dataset.from_list(table.select(columns).to_dicts()), processing_class=tokenizer,
        )  # fmt: skip
        trainer.train()
    model = trainer.model.eval()

    def rewards(name: str) -> torch.Tensor:
        texts = [prompt + answer for prompt, answer in test.select("prompt", name).iter_rows()]
        given = tokenizer(texts, padding=True, return_tensors="pt", return_token_type_ids=False)
        with torch.no_grad():
            return model(**given).logits.squeeze(-1)

    return float((rewards("chosen") > rewards("rejected")).float().mean())


def compared(*, pairs: int = 3000, epochs: int = 3, seed: int = 0) -> dict[str, float]:
    """Return the accuracy with all votes, with weighed labels, and without liars."""
    table, liars = planted_preferences(pairs=pairs, lying=0.4, seed=seed)
    test, _ = planted_preferences(pairs=600, lying=0.0, seed=seed + 1)
    weighed = audited_preferences(audit_preferences(read_pairs(table)), labels="relabel").to_frame()
    honest = table.filter(~pl.col("annotator").is_in(list(liars)))
    one = pl.lit(1.0).alias("weight")
    sets = {"as voted": table.with_columns(one), "audited": weighed, "without liars": honest.with_columns(one)}
    return {name: accuracy(each, test, epochs=epochs, seed=seed) for name, each in sets.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    for number in range(parser.parse_args().seeds):
        print(number, *(f"{name}: {share:.3f}" for name, share in compared(seed=number).items()), flush=True)
