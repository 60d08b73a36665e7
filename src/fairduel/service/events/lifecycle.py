"""Kinds of events about operators, and about the beginning, growth and end of studies."""

from dataclasses import dataclass
from typing import Any, Literal

from fairduel.service.events.log import Body, Event, Json, recorded
from fairduel.service.events.state import Operator, State, Stopped, StudyState
from fairduel.service.keys import Role
from fairduel.service.study.study import NewStudy

Reason = Literal["time", "votes", "verdict"]


@recorded("operator added")
class OperatorAdded(Body):
    """Someone may operate the server, or look at all its studies."""

    operator: str
    name: str
    role: Role

    def notice(self, study: StudyState | None, by: str) -> str:
        return f"{self.name} was added by {by}, with the role {self.role}."

    def apply(self, state: State, event: Event[Any]) -> None:
        state.operators[self.operator] = Operator(self.operator, self.name, self.role, event.at)


@recorded("operator removed")
class OperatorRemoved(Body):
    """An operator's keys work no longer; what they did stays under their name."""

    operator: str

    def apply(self, state: State, event: Event[Any]) -> None:
        state.operators[self.operator].is_removed = True
        state.keys = {key: holder for key, holder in state.keys.items() if holder.operator != self.operator}


@recorded("study opened")
class StudyOpened(Body):
    """A study opened at the time that its settings gave."""

    def notice(self, study: StudyState | None, by: str) -> str:
        return "It opened at its time."

    def change(self, study: StudyState, event: Event[Any]) -> None:
        study.about = study.about.model_copy(update={"state": "open", "opens": None})
        study.enter(event.at)


_STOPPED = {
    "time": "It closed at its time.",
    "votes": "It closed because it has as many votes as it was to have.",
    "verdict": "It closed because the verdict is certain.",
}


@recorded("study stopped")
class StudyStopped(Body):
    """A study closed by itself, as its settings said; that setting has had its effect."""

    reason: Reason

    def notice(self, study: StudyState | None, by: str) -> str:
        return _STOPPED[self.reason]

    def change(self, study: StudyState, event: Event[Any]) -> None:
        used: dict[str, Json] = {
            "time": {"closes": None},
            "votes": {"stop_at_votes": None},
            "verdict": {"stop_when_decided": False},
        }
        study.about = study.about.model_copy(update={"state": "closed", **used[self.reason]})
        study.enter(event.at)
        study.stopped = Stopped(self.reason, event.at)


@recorded("verdict changed")
class Decided(Body):
    """The verdict on a group of items changed to a tie or a winner, or back to neither."""

    group: str
    state: str
    leader: str | None
    headline: str
    votes: int

    @property
    def verdict(self) -> tuple[str, str | None]:
        """What to compare with the next verdict."""
        return (self.state, self.leader) if self.state in {"won", "tie"} else ("", None)

    def change(self, study: StudyState, event: Event[Any]) -> None:
        study.decided[self.group] = self.verdict

    def notice(self, study: StudyState | None, by: str) -> str:
        return self.headline


@recorded("item added")
class ItemAdded(Body):
    """A study has one more item; ``contents`` are its answers by the names of contexts."""

    item: Json
    contents: dict[str, str]
    features: dict[str, list[float]]
    """Those of its answers, if answers have features."""

    def change(self, study: StudyState, event: Event[Any]) -> None:
        study.about = with_item(study.about, self)
        study.enabled.append(True)
        study.shown.append(0)


def with_item(about: NewStudy, added: ItemAdded) -> NewStudy:
    """Return a study with one more item, checked as a new study is."""
    values = about.model_dump()
    values["items"].append(added.item)
    name = added.item["name"]
    for context in values["contexts"]:
        if context["name"] in added.contents:
            context["contents"][name] = added.contents[context["name"]]
        if context["name"] in added.features:
            context["features"] = (context["features"] or {}) | {name: added.features[context["name"]]}
    return NewStudy.model_validate(values)


@recorded("study deleted")
class StudyDeleted(Body):
    """A study is gone; of its events, the hashes stay."""

    def notice(self, study: StudyState | None, by: str) -> str:
        return f"{by} deleted a study."

    def apply(self, state: State, event: Event[Any]) -> None:
        state.studies.pop(event.study, None)
        state.deleted.add(event.study)
        state.keys = {key: holder for key, holder in state.keys.items() if holder.study != event.study}


@dataclass(frozen=True, slots=True)
class Deleted(Body):
    """What is left of an event of a deleted study: its kind."""

    kind: str  # type: ignore[misc]  # of each event its own

    def apply(self, state: State, event: Event[Any]) -> None:
        pass
