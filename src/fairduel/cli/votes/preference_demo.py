"""``fairduel demo --preferences``: made-up preference data with planted liars."""

from collections import Counter
from pathlib import Path

from fairduel.cli.folders import claim
from fairduel.cli.output import Record, record, say, say_report
from fairduel.cli.votes.audit_command import audit_command
from fairduel.cli.votes.export_command import FormatOption, export_command
from fairduel.files import write_atomically
from fairduel.votes.rewards.planted import planted_preferences


def preference_demo(seed: int, out: Path) -> Record:
    """Audit and export made-up preference data with planted liars, step by step."""
    table, liars = planted_preferences(seed=seed)
    claim(out, "demo")
    file = out / "preferences.jsonl"
    write_atomically(file, table.write_ndjson().encode())
    rules = Counter(liars.values())
    say(
        f"{file} has {len(table):,} synthetic preferences by {table['annotator'].n_unique()} voters. Planted liars: "
        f"{rules['shorter']} always choose the shorter text, {rules['opposite']} the opposite of what they believe."
    )
    _say_step(f"fairduel audit {file}", "Who votes against the rest, what do they prefer, and what does it cost?")
    audited = audit_command(file, out=out / "audit")
    flagged = {row["voter"] for row in audited["flagged"]}
    against = {name for camp in audited["camps"] for name in camp["members"]}
    honest = table["annotator"].n_unique() - len(liars)
    say(
        f"We know who lies here: the audit flagged {len(flagged & set(liars))} of {len(liars)} liars and "
        f"{len(flagged - set(liars))} of {honest} honest voters; {len(against & set(liars))} liars and "
        f"{len(against - set(liars))} honest voters are in the camp against the rest.",
        style="bold",
    )
    _say_step(f"fairduel export {file} --format trl", "What should a reward model learn from?")
    exported = export_command(file, formats=[FormatOption.TRL], out=out / "export")
    say_report(out / "audit" / "report.html", "Start with the audit report:")
    return record(preferences=str(file), liars=liars, audit=audited, export=exported)


def _say_step(command: str, question: str) -> None:
    say("", f"$ {command}", style="bold")
    say(question, "")
