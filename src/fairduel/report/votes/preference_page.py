"""The sections of the page of an audit of preference data."""

from collections.abc import Callable, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from fairduel.report.drawing import STYLE, WIDTH
from fairduel.report.page import Drawn, Section
from fairduel.report.text_table import TextTable
from fairduel.report.votes.audit_page import advice_section, evidence_section
from fairduel.votes.rewards.preference_audit import Example, PreferenceAudit

_THEIRS, _REST = "#D55E00", "#0072B2"
_EVIDENCE = (
    "Evidence of 1,000 means: an honest voter would reach evidence this strong with a probability of at most 1 in "
    "1,000. It compares a voter's choices with what all others' votes on other prompts predict. Honest voters may be "
    "careless, and may have a taste for anything that can be counted in a text; how much tastes differ is estimated "
    "from this file."
)
_CERTIFICATES = (
    "The voters are divided into {groups} groups, and each group has a reward model of its own; the majority of the "
    "models decides which text is preferred. Whoever lies changes one model at most, whatever they say and know. This "
    "is proven for the pairs that they judged; false accounts beyond the {voters:,} voters are not counted. "
    "labels.csv has the number for every pair."
)
_LABELS = (
    "The probability weighs the reward model's prediction, which never saw the voter nor the prompt, and all votes on "
    "the pair, by how truthful their voters are. Voters of the majority are listed first."
)


def draw_preferences(audit: PreferenceAudit) -> Figure:
    """Draw how often those who vote against the rest choose what they prefer, and how often the rest do."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 1.3 + 0.45 * len(audit.prefers)), layout="constrained")
        axis = figure.subplots()
        heights = np.arange(len(audit.prefers))[::-1]
        axis.hlines(heights, [p.rest for p in audit.prefers], [p.share for p in audit.prefers], color="#999999", lw=2)
        axis.plot([p.rest for p in audit.prefers], heights, "D", color=_REST, mfc="none", ms=7, label="the rest")
        axis.plot([p.share for p in audit.prefers], heights, "o", color=_THEIRS, ms=7, label="against the rest")
        axis.axvline(0.5, color="#999999", ls="--", lw=1)
        axis.set_yticks(heights, [p.what for p in audit.prefers])
        axis.set_ylim(-0.6, len(audit.prefers) - 0.4)
        axis.set_xlim(-0.02, 1.02)
        axis.xaxis.set_major_formatter(PercentFormatter(1.0))
        axis.set_xlabel("share of votes in which they choose it, if the two texts differ in it")
        figure.legend(loc="outside lower center", ncols=2, fontsize=9)
        return figure


def examples_table(examples: Sequence[Example], caption: str) -> TextTable:
    """Tabulate votes with their texts."""
    cells = [
        {
            "row": f"{each.row:,}",
            "voter": each.voter or "–",
            "prompt": each.prompt or "–",
            "chosen": each.chosen,
            "rejected": each.rejected,
            "wrong": f"{min(each.probability, 0.99):.0%}",
            "certificate": each.certificate,
        }
        for each in examples
    ]
    columns = ["voter", "prompt", "chosen", "rejected", "certificate", "row", "wrong"]
    if not any(each.certificate for each in examples):
        columns.remove("certificate")
    return TextTable.of(cells, columns, caption, text=len(columns) - 2)


def label_voters_section(audit: PreferenceAudit) -> Section | None:
    """Build the evidence on voters, or None if the file does not say who voted."""
    if audit.evidence is None or audit.voters is None:
        return None
    explained = [_EVIDENCE]
    if untested := audit.evidence.settings["voters_not_tested"]:
        least = audit.evidence.settings["needed_votes"]
        explained.append(
            f"{untested:,} voters with fewer than {least} votes cannot be flagged, but count in the camps."
        )
    caption = "Every voter: evidence of unusual votes, and agreement with what the others' votes predict."
    return evidence_section(audit.evidence, audit.voters, explained, caption, audit.headlines()[0])


def camp_section(audit: PreferenceAudit) -> Section | None:
    """Build what those who vote against the rest prefer, with examples."""
    if audit.evidence is None or not audit.opposed.any():
        return None
    tables = [examples_table(audit.examples, "Votes of theirs")] if audit.examples else []
    figures = []
    if audit.prefers:
        figures = [
            Drawn(
                "What they choose more often than the rest.",
                draw_preferences(audit),
                alt=" ".join(each.sentence for each in audit.prefers),
                name="preferences",
            )
        ]
    costs = [] if audit.cost is None else [audit.cost.sentence]
    return Section(
        "Who votes against the rest, and what they prefer", [*audit.camp_sentences(), *costs], tables, figures
    )


def labels_section(audit: PreferenceAudit) -> Section:
    """Build the labels that are probably wrong."""
    tables = [examples_table(audit.doubtful, "Labels that are probably wrong")] if audit.doubtful else []
    return Section("Labels that are probably wrong", [audit.wrong_sentence, _LABELS], tables)


def certificates_section(audit: PreferenceAudit) -> Section | None:
    """Build how many voters must lie to change the preferences, or None with too few voters."""
    of = audit.certificates
    if of is None:
        return None
    explained = _CERTIFICATES.format(groups=of.groups, voters=of.voters)
    return Section("How many voters must lie to change a preference", [of.sentence, explained])


PREFERENCE_SECTIONS: list[Callable[[PreferenceAudit], Section | None]] = [
    advice_section,
    camp_section,
    label_voters_section,
    labels_section,
    certificates_section,
]
"""The sections of the page, in order."""


def preference_sections(audit: PreferenceAudit) -> list[Section]:
    """Build all sections that have something to say."""
    return [section for build in PREFERENCE_SECTIONS if (section := build(audit)) is not None]
