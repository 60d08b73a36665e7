"""What ``audit`` and ``export`` do with preference data: votes on texts, each of which is hardly ever seen again."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairduel.cli import output
from fairduel.cli.folders import check_folder
from fairduel.cli.votes import recorded_votes as recorded
from fairduel.errors import BadInputError
from fairduel.report.text_table import TextTable
from fairduel.votes.rewards.embedding import Encoder, file_encoder, sentence_encoder
from fairduel.votes.rewards.pairs import PreferencePairs, is_preference_data, read_pairs

if TYPE_CHECKING:
    from fairduel.votes.exporting import Exported, Format
    from fairduel.votes.rewards.preference_audit import PreferenceAudit

_PANEL = "Preference data"
_STEPS = 5


class KindOption(StrEnum):
    """What kind of votes a file has."""

    POLL = "poll"
    PREFERENCES = "preferences"


class LabelsOption(StrEnum):
    """What becomes of labels that may be wrong."""

    WEIGH = "weigh"
    RELABEL = "relabel"
    DROP = "drop"


Labels = Annotated[
    LabelsOption,
    typer.Option(
        metavar="weigh|relabel|drop", rich_help_panel=_PANEL, help="What becomes of labels that may be wrong."
    ),
]
Known = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", rich_help_panel=_PANEL, show_default=False, help="Pairs whose better text is known, as chosen."
    ),
]


@dataclass(frozen=True)
class PreferenceOptions:
    """How to read preference data; each field is an option of ``audit`` and ``export``."""

    kind: Annotated[
        KindOption | None,
        typer.Option(
            "--as",
            metavar="poll|preferences",
            rich_help_panel=_PANEL,
            show_default="by content",
            help="Read votes between items that meet again and again, or preferences between texts.",
        ),
    ] = None
    embeddings: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=_PANEL,
            show_default="from the words",
            help="Embeddings of the texts: .npz, .npy or .parquet.",
        ),
    ] = None
    embed: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", rich_help_panel=_PANEL, show_default=False, help="Local model of sentence-transformers."
        ),
    ] = None

    def expected(self, file: recorded.VoteFile) -> bool:
        """Whether a file has preference data: as the user says, or by its content."""
        if self.kind is not None:
            return self.kind == KindOption.PREFERENCES
        return bool(self.embeddings or self.embed) or is_preference_data(file.votes, file.choices["columns"])

    def encoder(self) -> Encoder | None:
        """Return what encodes the texts; None for the words themselves."""
        if self.embeddings and self.embed:
            raise BadInputError("give either --embeddings or --embed, not both.")
        if self.embeddings:
            return file_encoder(self.embeddings)
        return sentence_encoder(self.embed, cache_folder()) if self.embed else None


def cache_folder() -> Path:
    """Return where the numbers of encoded texts are kept between runs."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "fairduel" / "embeddings"


def read_and_audit(
    file: recorded.VoteFile, command: str, options: PreferenceOptions, *, level: float, known: Path | None
) -> tuple["PreferenceAudit", Path]:
    """Read preference data and audit it; return the findings, and the output folder, which is not touched yet."""
    from fairduel.votes.rewards.preference_audit import audit_preferences  # noqa: PLC0415  # scikit-learn is slow

    encoder = options.encoder()
    folder = file.out or recorded.default_folder(command, file.votes)
    check_folder(folder, command)
    with output.notices.status("Reading …"):
        pairs = read_pairs(file.votes, encoder=encoder, cache=cache_folder(), **file.choices)
        answers = None if known is None else read_pairs(known, encoder=pairs.encoder)
    with output.progress_bar("Audit", _STEPS, unit="steps", on_stop=recorded.NO_REPORT) as done:
        return audit_preferences(pairs, level=level, known=answers, progress=done), folder


def settings_of(file: Path, found: "PreferenceAudit") -> output.Record:
    """What was read and how, for the record."""
    pairs = found.pairs
    return {
        "file": str(file),
        "kind": "preferences",
        "columns": dict(pairs.columns),
        "where": dict(pairs.where) or None,
        "rows": pairs.rows,
        "preferences": len(pairs),
        "prompts": len(set(pairs.prompt.tolist())),
        "voters": len(pairs.voters) or None,
        "unused": dict(pairs.unused),
        "set_aside": dict(pairs.problems),
        "warnings": list(pairs.warnings),
        **found.settings,
    }


def audit_preference_file(
    file: recorded.VoteFile, options: PreferenceOptions, *, level: float, known: Path | None
) -> output.Record:
    """Audit preference data, write its report and print it."""
    from fairduel.report.votes.preference_page import preference_sections  # noqa: PLC0415  # plotting is slow

    found, folder = read_and_audit(file, "audit", options, level=level, known=known)
    recorded.claim_for(folder, "audit", file.votes, found.pairs)
    recorded.write_csv(folder / "labels.csv", found.labels())
    recorded.write_voters(folder, found.voters, None if found.voters is None else found.flagged_rows())
    record = {"settings": settings_of(file.votes, found), **found.record()}
    title = f"Audit of {file.votes.name}"
    written = recorded.write_report(folder, "audit", title, found.pairs, preference_sections(found), record)
    output.say(*found.summary())
    recorded.print_flagged(found.voters, folder)
    output.say_report(
        written["report"], *_unused(found.pairs), *recorded.problem_sentences(found.pairs), *found.advice()
    )
    return written


def _unused(pairs: PreferencePairs) -> list[str]:
    return [f"Not used: {count:,} {reason}." for reason, count in pairs.unused.items()]


_CONTENTS = {
    "votes": "prompt, chosen, rejected, margin, weight, …",
    "trl": "prompt, chosen, rejected, margin, weight, …",
    "kto": "prompt, completion, label, weight, …",
}


def export_preference_file(
    file: recorded.VoteFile,
    options: PreferenceOptions,
    formats: Sequence["Format"],
    *,
    labels: LabelsOption,
    level: float,
    known: Path | None,
) -> output.Record:
    """Audit preference data and write it for training."""
    from fairduel.votes.rewards.handing_on import export_preferences  # noqa: PLC0415  # scikit-learn is slow

    found, folder = read_and_audit(file, "export", options, level=level, known=known)
    recorded.claim_for(folder, "export", file.votes, found.pairs)
    remove_old(folder)
    exported = export_preferences(found, folder, formats=tuple(formats), labels=labels.value)
    preferences = exported.preferences
    summary = [*found.summary()]
    settings = {**settings_of(file.votes, found), "level": level, "formats": list(formats), "labels": labels.value}
    record: output.Record = {"settings": settings, "summary": summary, "files": exported.files}
    if preferences is not None:
        summary.append(preferences.brief())
        record["left_out"] = dict(preferences.left_out)
        record["relabelled"] = int(preferences.frame["relabelled"].sum())
    written = output.record(**record)
    output.write_record(folder / "export.json", written)
    output.say(*summary)
    print_files(exported, folder, _CONTENTS)
    if problems := recorded.problem_sentences(found.pairs):
        output.say("", *problems)
    return written


def remove_old(folder: Path) -> None:
    """Remove the files of an earlier export."""
    from fairduel.votes.exporting import FILES  # noqa: PLC0415  # imports the audit

    for old in FILES:
        (folder / old).unlink(missing_ok=True)


def print_files(exported: "Exported", folder: Path, contents: Mapping[str, str]) -> None:
    """Print which files were written, and what is in them, by the start of their names."""
    cells = [
        {"file": str(folder / file), "rows": f"{rows:,}", "contents": contents[Path(file).stem]}
        for file, rows in exported.files.items()
    ]
    output.print_table(TextTable.of(cells, ("file", "rows", "contents")), text=["file", "contents"])
