"""Hand audited preference data on to whoever trains with it: weighed, relabelled, or without doubtful labels.

With p the probability that a label is right (1 − ``wrong`` of the audit), a row has

- ``"weigh"``: the weight max(0, 2p − 1), so that a label no better than a coin counts nothing;
- ``"relabel"``: the weight |2p − 1|, with the two texts exchanged where p < ½;
- ``"drop"``: the weight 1 if p ≥ ½ and its voter is not flagged; other rows are left out.

2p − 1 is the factor of a vote's gradient at the start of training if its label is right with probability p.
"""

from pathlib import Path
from typing import Literal, get_args

import numpy as np
import polars as pl

from fairduel.errors import BadInputError, unknown_name
from fairduel.votes.exporting import Exported, Format, Preferences, write_tables
from fairduel.votes.rewards.preference_audit import PreferenceAudit

Labels = Literal["weigh", "relabel", "drop"]


def audited_preferences(audit: PreferenceAudit, *, labels: Labels = "weigh") -> Preferences:
    """Return the preferences of an audit for training.

    The **margin** is max(0, z) with z the log-odds by which a reward model that never saw the voter nor the prompt
    favours the chosen text.

    Args:
        audit: From :func:`audit_preferences`.
        labels: What becomes of labels that may be wrong; see the top of this file.

    Returns:
        The preferences, and what was left out.
    """
    if labels not in get_args(Labels):
        raise unknown_name("treatment of labels", str(labels), get_args(Labels))
    pairs, right = audit.pairs, 1.0 - audit.wrong
    texts = pairs.texts(np.arange(len(pairs))) if len(pairs) else pl.DataFrame()
    swap = (right < 0.5) & (labels == "relabel")
    kept, left_out = np.ones(len(pairs), dtype=np.bool_), dict(pairs.unused)
    if labels == "drop":
        for reason, holds in {
            "by flagged voters": audit.flagged_votes,
            "with a label probably wrong": right < 0.5,
        }.items():
            left_out[reason] = int((kept & holds).sum())
            kept &= ~holds
    weight = np.ones(len(pairs)) if labels == "drop" else np.abs(2.0 * right - 1.0)
    if labels == "weigh":
        weight = np.maximum(2.0 * right - 1.0, 0.0)
    voter = [None] * len(pairs) if pairs.voter is None else pl.Series(pairs.voters, dtype=pl.String).gather(pairs.voter)
    frame = texts.select(
        "prompt",
        chosen=pl.when(pl.Series(swap)).then(pl.col("rejected")).otherwise(pl.col("chosen")),
        rejected=pl.when(pl.Series(swap)).then(pl.col("chosen")).otherwise(pl.col("rejected")),
        margin=np.maximum(np.where(swap, -audit.margin, audit.margin), 0.0),
        weight=pairs.weight * weight,
        flagged=audit.flagged_votes,
        relabelled=swap,
        probably_wrong=audit.wrong,
        voter=pl.Series(voter, dtype=pl.String),
        row=pairs.row,
    )
    return Preferences(frame.filter(kept), {reason: count for reason, count in left_out.items() if count})


def export_preferences(
    audit: PreferenceAudit, folder: Path | str, *, formats: tuple[Format, ...] = ("trl",), labels: Labels = "weigh"
) -> Exported:
    """Write audited preference data to a folder, in each of the ``formats``; see :func:`fairduel.votes.export`.

    ``"csv"`` and ``"parquet"`` hold the rows of ``"trl"``.
    """
    for name in formats:
        if name not in get_args(Format):
            raise unknown_name("format", str(name), get_args(Format))
    found = audited_preferences(audit, labels=labels)
    if not len(found.frame):
        raise BadInputError("no preference is left: weigh the labels instead of dropping them (--labels weigh).")
    tables = {
        "csv": ("votes.csv", found.to_frame),
        "parquet": ("votes.parquet", found.to_frame),
        "trl": ("trl.jsonl", found.to_frame),
        "kto": ("kto.jsonl", found.completions),
    }
    chosen = {file: make() for name, (file, make) in tables.items() if name in formats}
    return Exported(write_tables(chosen, Path(folder)), found)
