"""TRL trains on what the audit hands on, offline, and learns what honest voters prefer."""

import pytest


@pytest.mark.torch
@pytest.mark.filterwarnings("default")  # TRL's settings are deprecated in Transformers
def test_a_transformer_trained_on_audited_labels_does_better(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    from benchmarks.preferences.with_trl import compared  # noqa: PLC0415  # needs TRL

    found = compared(pairs=1500, epochs=3)
    assert found["audited"] > found["as voted"] + 0.05


@pytest.mark.torch
def test_the_loss_counts_each_pair_by_its_weight():
    import torch  # noqa: PLC0415
    from benchmarks.preferences.with_trl import WeightedTrainer, WithWeights  # noqa: PLC0415  # needs TRL

    class Model:
        def __call__(self, **given):
            return type("Found", (), {"logits": given["input_ids"][:, :1].float()})

    def pair(chosen, rejected, weight, margin):
        return {"chosen_ids": [chosen], "rejected_ids": [rejected], "weight": weight, "margin": margin}

    batch = WithWeights(pad_token_id=0)([pair(3, 1, 0.5, 0.25), pair(1, 2, 1.5, 0.0)])
    loss = WeightedTrainer.compute_loss(None, Model(), batch)
    each = -torch.nn.functional.logsigmoid(torch.tensor([3.0 - 1.0 - 0.25, 1.0 - 2.0]))
    assert float(loss) == pytest.approx(float((each * torch.tensor([0.5, 1.5])).sum() / 2.0))
