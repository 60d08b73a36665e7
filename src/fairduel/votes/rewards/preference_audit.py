"""Audit preference data: who votes against the rest, what they prefer, which labels are wrong, and what that costs.

A reward model that never saw the voter nor the prompt predicts each vote (``held_out``); evidence against voters is
measured by these predictions (``evidence``). A label is probably wrong if the prediction z and the votes on the pair,
by the truthfulness r of their voters, say so: its log-odds are z ± Σ ½ log(r/(1 − r)).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy import sparse, special
from sklearn.linear_model import LogisticRegression

from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError
from fairduel.votes.auditing.camps import Camp, Camps, Kind
from fairduel.votes.auditing.known_answers import KnownAnswers, RightAnswers
from fairduel.votes.auditing.voters import Evidence
from fairduel.votes.notebook import Result, clipped
from fairduel.votes.rewards.campaigns import Rule
from fairduel.votes.rewards.certified import Certificates, CertifiedRewards, usual_groups
from fairduel.votes.rewards.evidence import Traits, preference_evidence, traits_of
from fairduel.votes.rewards.heads import RewardHead
from fairduel.votes.rewards.held_out import held_out_margins
from fairduel.votes.rewards.model import RobustRewardModel
from fairduel.votes.rewards.pairs import PreferencePairs
from fairduel.votes.rewards.text_statistics import STATISTICS
from fairduel.votes.rewards.truthfulness import Preferred
from fairduel.votes.votes import Indices, Mask, sums
from fairduel.words import counted_noun, listed

WRONG = 0.9
"""Probability from which a label is reported as probably wrong."""
_MOST_WRONG = 20  # that are shown with their texts
_LEAST_TRUTH, _MOST_TRUTH = 0.05, 0.95  # of a voter, when labels are judged
_MOST_COUNTED = 20_000  # votes from which the cost is estimated
_LEAST_TELLING, _CLEAR = 20, 4.0  # votes, and standard errors, by which a camp prefers something
_SHARES, _MOST_EVIDENCE = (0.02, 0.1, 0.3), 30.0  # of voters who may invert; log E of one voter
_MOST_TRAITS = 3
_EXAMPLES = 3
_RULE = 0.9
_LONGEST = 300  # characters of a text


class Preference(NamedTuple):
    """What the voters of a camp choose more often than the rest."""

    what: str
    share: float
    """Of their votes in which the two texts differ in it."""
    rest: float
    """The same of the rest."""
    votes: int

    @property
    def sentence(self) -> str:
        """It in words."""
        return f"{self.what} in {self.share:.0%} of their votes (the rest: {self.rest:.0%})"


class Example(NamedTuple):
    """A vote, with its texts."""

    row: int
    voter: str
    prompt: str
    chosen: str
    rejected: str
    probability: float
    """That the label is wrong."""
    certificate: str = ""
    """Which text is preferred, and how many voters must lie to change that."""


class Cost(NamedTuple):
    """What votes against the rest do to a reward model."""

    with_all: float
    """Share of the other voters' votes, on prompts not seen, that a plain reward model predicts which believes all."""
    without: float
    """The same of one that leaves out the votes against the rest."""
    error: float
    """Standard error of the difference, by prompts."""
    votes: int

    @property
    def sentence(self) -> str:
        """What they cost, in words."""
        lost = 100.0 * (self.without - self.with_all)
        how = "They cost" if lost > 200.0 * self.error else "They cost no measurable accuracy:"
        much = f" {lost:.1f} ± {196.0 * self.error:.1f} points of accuracy:" if lost > 200.0 * self.error else ""
        return (
            f"{how}{much} a plain reward model predicts {self.with_all:.1%} of the other voters' votes on new prompts, "
            f"and {self.without:.1%} without theirs."
        )


@dataclass(frozen=True, eq=False, repr=False)
class PreferenceAudit(Result):
    """The findings of an audit of preference data.

    Created by :func:`audit_preferences`.
    """

    pairs: PreferencePairs
    model: RobustRewardModel
    """Fitted to all votes; each voter counts by their truthfulness."""
    margin: Vector
    """What the reward model predicts for each vote without its voter and prompt, in log-odds, shape ``(n,)``."""
    evidence: Evidence | None
    """None if the file does not say who voted."""
    truth: Vector
    """The probability that each voter says what they believe rather than the opposite, shape ``(V,)``.

    ½ for voters who follow a rule, whose votes say nothing.
    """
    opposed: Mask
    """Who mostly votes against what the others' votes suggest, or by a rule, shape ``(V,)``."""
    wrong: Vector
    """The probability that each label is wrong, shape ``(n,)``."""
    prefers: Sequence[Preference]
    """What those who vote against the rest prefer."""
    examples: Sequence[Example]
    """Votes of theirs."""
    doubtful: Sequence[Example]
    """The labels that are most probably wrong, of other voters first."""
    cost: Cost | None
    """None if nobody clearly votes against the rest."""
    gold: int
    """Number of known answers that were given."""
    certificates: Certificates | None
    """Which text of each pair separate groups of voters prefer; None with fewer than three such groups."""

    @property
    def undecided(self) -> bool:
        """Whether two camps are so alike in size that nobody can know from the votes which one is right."""
        return self.model.camps_of_like_size and self.model.gold_margin_ is None

    @property
    def someone_flagged(self) -> bool:
        """Whether any voter is flagged."""
        return self.evidence is not None and bool(self.evidence.flagged.any())

    @property
    def voters(self) -> pl.DataFrame | None:
        """One row per voter, most evidence first; None if the file does not say who voted."""
        if self.evidence is None:
            return None
        truth = pl.DataFrame({"voter": self.pairs.voters, "truthfulness": self.truth})
        return self.evidence.to_frame().join(truth, on="voter", how="left", maintain_order="left")

    @property
    def flagged_votes(self) -> Mask:
        """Which votes were cast by flagged voters, shape ``(n,)``."""
        if self.evidence is None or self.pairs.voter is None:
            return np.zeros(len(self.pairs), dtype=np.bool_)
        return self.evidence.flagged[self.pairs.voter]

    def flagged_rows(self) -> pl.DataFrame:
        """Return the file row and the voter of each vote cast by a flagged voter."""
        rows = {"row": self.pairs.row[self.flagged_votes]}
        if self.pairs.voter is None:
            return pl.DataFrame(rows)
        names = pl.Series(self.pairs.voters, dtype=pl.String)
        return pl.DataFrame(rows | {"voter": names.gather(self.pairs.voter[self.flagged_votes])})

    def headlines(self) -> list[str]:
        """Return the verdict."""
        if self.evidence is None:
            return ["The file does not say who voted, so no voter was checked."]
        if self.undecided:
            return [
                f"Two camps of like size contradict each other: {self.model.against_:.0%} of the votes are against the "
                "rest. The votes cannot tell which camp is right; a few known answers can (--known)."
            ]
        flagged, voters = int(self.evidence.flagged.sum()), counted_noun(len(self.pairs.voters), "voter")
        if not flagged:
            return [
                f"None of the {voters} is flagged." if len(self.pairs.voters) > 1 else "The only voter is not flagged."
            ]
        share = float(self.flagged_votes.mean())
        return [
            f"{flagged:,} of {voters} {'is' if flagged == 1 else 'are'} flagged; they cast {share:.0%} of the votes."
        ]

    def summary(self) -> list[str]:
        """Summarise the findings in a few sentences, conclusion first."""
        said = self.headlines()
        if self.evidence is None:
            said += self.model.sentences()
        if self.gold and self.model.gold_margin_ is not None:
            clear = "They clearly favour" if abs(self.model.gold_margin_) > np.log(20.0) else "They hardly favour"
            said.append(f"{counted_noun(self.gold, 'known answer')} decided which camp is believed. {clear} that camp.")
        said += [] if self.evidence is None else self.camp_sentences()
        if self.cost is not None:
            said.append(self.cost.sentence)
        said.append(self.wrong_sentence)
        return said if self.certificates is None else [*said, self.certificates.sentence]

    def camp_sentences(self) -> list[str]:
        """Say who votes against the rest, and what they prefer."""
        camps = Camps((), np.ones(0), ()) if self.evidence is None else self.evidence.camps
        if camps is None or not camps.found:
            return ["No camp votes against the rest."]
        *about, on_truth = camps.sentences()
        they = "They" if len(about) == 1 else "Together, they"
        if not self.prefers:
            prefer = "Nothing that can be counted in the texts tells their choices from those of the rest."
        elif self.prefers[0].share >= _RULE:
            prefer = f"{they} choose {self.prefers[0].sentence}, which explains most of what they do."
        else:
            prefer = f"{they} choose {listed([each.sentence for each in self.prefers])}."
        return [*about, prefer, on_truth]

    @property
    def wrong_sentence(self) -> str:
        """How many labels are probably wrong."""
        count = int((self.wrong >= WRONG).sum())
        if not count:
            return f"No label is wrong with a probability of {WRONG:.0%} or more."
        are = "label is" if count == 1 else "labels are"
        return f"{count:,} of {len(self.pairs):,} {are} wrong with a probability of {WRONG:.0%} or more (labels.csv)."

    def advice(self) -> list[str]:
        """Recommend what to do."""
        if self.undecided:
            return ["Label 20 or more pairs yourself, and audit again with --known FILE."]
        found = []
        if self.someone_flagged:
            found.append("Read some pairs of the flagged voters, and ask them, before you leave them out.")
        if self.someone_flagged or (self.wrong >= WRONG).any():
            found.append(f"For training: fairduel export {self.pairs.name} --format trl --labels weigh")
        if self.evidence is None:
            found.append("Name the column that says who voted (--voter): it protects far more than a robust loss.")
        return found

    def labels(self) -> pl.DataFrame:
        """Return one row per vote, the label that is most probably wrong first."""
        order = np.argsort(-self.wrong, kind="stable")
        columns: dict[str, Any] = {"row": self.pairs.row[order]}
        if self.pairs.voter is not None:
            columns["voter"] = pl.Series(self.pairs.voters, dtype=pl.String).gather(self.pairs.voter[order])
        columns |= {"probably_wrong": self.wrong[order], "predicted": special.expit(self.margin[order])}
        if self.certificates is not None:
            columns["preferred"] = np.where(self.certificates.side > 0.0, "chosen", "rejected")[order]
            columns["least_liars"] = self.certificates.least[order]
        return pl.DataFrame(columns)

    def to_frame(self) -> pl.DataFrame:
        """Return one row per voter, most evidence first; one per vote if voters are unknown."""
        return self.labels() if self.voters is None else self.voters

    def brief(self) -> str:
        """Return the verdict."""
        return self.headlines()[0]

    def record(self) -> dict[str, Any]:
        """Return the findings as plain values, for JSON."""
        found: dict[str, Any] = {"summary": self.summary(), "advice": self.advice()}
        found["camps_of_like_size"] = self.model.camps_of_like_size
        found["undecided"] = self.undecided
        found["share_against"] = self.model.against_
        if self.voters is not None and self.evidence is not None:
            found["flagged"] = self.voters.filter("flagged").to_dicts()
            members = [name for name, opposed in zip(self.pairs.voters, self.opposed, strict=True) if opposed]
            camps = [] if self.evidence.camps is None else self.evidence.camps.record()
            found["camps"] = [{**camp, "members": members} for camp in camps]
        found["prefers"] = [{**each._asdict(), "sentence": each.sentence} for each in self.prefers]
        found["examples"] = [each._asdict() for each in self.examples]
        found["probably_wrong"] = [each._asdict() for each in self.doubtful]
        if (of := self.certificates) is not None:
            about = {"voters": of.voters, "groups": of.groups, "least_liars": of.aim, "share": of.share}
            found["certificates"] = {**about, "sentence": of.sentence}
        found["cost"] = None if self.cost is None else {**self.cost._asdict(), "sentence": self.cost.sentence}
        return found

    @property
    def settings(self) -> dict[str, Any]:
        """All settings behind the numbers."""
        evidence = {} if self.evidence is None else {"evidence": self.evidence.settings}
        return {
            "encoder": self.pairs.encoder.name,
            "features": int(self.pairs.features.shape[1]),
            "ridge": self.model.ridge_,
            "known_answers": self.gold,
            **evidence,
        }


def audit_preferences(
    pairs: PreferencePairs,
    *,
    level: float = 0.05,
    known: PreferencePairs | None = None,
    progress: Callable[[int], None] | None = None,
) -> PreferenceAudit:
    """Audit preference data.

    Args:
        pairs: The preferences, from :func:`read_pairs`.
        level: Maximum probability of any flag if all voters are honest.
        known: Pairs whose better text is known, read with the encoder of ``pairs``. Votes on them are evidence of
            their own, and decide which camp is believed.
        progress: Called with 1 after each of five steps.

    Returns:
        The findings.
    """
    done = progress or (lambda _: None)
    features = pairs.features
    answers, right = _known_answers(pairs, known)
    model = _fitted(pairs, features, known)
    done(1)
    margin = _held_out(pairs, features, model)
    done(1)
    evidence, traits, truth = None, None, np.ones(0)
    opposed = np.zeros(0, dtype=np.bool_)
    if pairs.voter is not None:
        camps, truth, opposed = _camps(pairs, margin, model)
        traits = traits_of(pairs, margin)
        if known is None:
            evidence = preference_evidence(pairs, margin, level=level, traits=traits)
        else:  # known answers are evidence of their own
            asked = right == 0.0
            evidence = preference_evidence(pairs.select(asked), margin[asked], level=level, known=answers)
        evidence = replace(evidence, camps=camps)
    done(1)
    wrong = _probably_wrong(pairs, margin, truth, right)
    against = np.zeros(len(pairs), np.bool_) if pairs.voter is None else opposed[pairs.voter]
    prefers = [] if traits is None else _prefers(traits, against)
    cost = _cost(pairs, features, against, model.ridge_) if _is_clear(evidence, model, level) else None
    done(1)
    certificates = _certificates(pairs, features)
    found = PreferenceAudit(
        pairs, model, margin, evidence, truth, opposed, wrong, prefers,
        _examples(pairs, _telling(margin, against, traits, prefers), wrong, certificates),
        _examples(pairs, _doubtful(wrong, against), wrong, certificates),
        cost, 0 if known is None else len(known), certificates,
    )  # fmt: skip
    done(1)
    return found


def _fitted(pairs: PreferencePairs, features: Matrix, known: PreferencePairs | None) -> RobustRewardModel:
    voters = None if pairs.voter is None else pairs.voter
    if known is None:
        return RobustRewardModel().fit(features, sample_weight=pairs.weight, voters=voters, prompts=pairs.prompt)
    if known.meaning.shape[1] != pairs.meaning.shape[1]:
        raise BadInputError("the known answers need embeddings of the same kind as the votes.")
    count = len(known)
    return RobustRewardModel().fit(
        np.vstack([features, known.features]),
        sample_weight=np.concatenate([pairs.weight, np.ones(count)]),
        voters=None if voters is None else np.concatenate([voters, np.full(count, len(pairs.voters))]),
        prompts=np.concatenate([pairs.prompt, pairs.prompt.max() + 1 + known.prompt]),
        gold=np.repeat([False, True], [len(pairs), count]),
    )


def _held_out(pairs: PreferencePairs, features: Matrix, model: RobustRewardModel) -> Vector:
    """Return the margin of each vote by fits without its voter and prompt, turned as the model is, (n,)."""
    ahead = RewardHead.of("linear", features, 0).ahead(features)
    voter = None if pairs.voter is None else pairs.voter.astype(np.int64)
    votes = Preferred.by(ahead, voter, len(pairs.voters))
    if model.campaigns_:
        votes = votes._replace(rules=np.column_stack([rule.of(features) for rule, _ in model.campaigns_]))
    weight = pairs.weight.astype(ahead.dtype)
    margin = np.asarray(held_out_margins(votes, weight, pairs.prompt, model.ridge_), dtype=np.float64)
    own = model.margins(features)[0]
    return margin if float(own @ margin) >= 0.0 else -margin


def _camps(pairs: PreferencePairs, margin: Vector, model: RobustRewardModel) -> tuple[Camps, Vector, Mask]:
    """Return the camps, each voter's truthfulness, and who opposes the rest or follows a rule, both (V,)."""
    assert pairs.voter is not None
    voters = len(pairs.voters)
    known = model.voters_ < voters  # the others gave the known answers
    place = model.voters_[known].astype(np.int64)
    truth = np.full(voters, float(np.mean(model.truthfulness_)))
    truth[place] = model.truthfulness_[known]
    follows = np.zeros((voters, model.membership_.shape[1]))
    follows[place] = model.membership_[known]
    of_rule = follows > 0.5
    truth[of_rule.any(axis=1)] = 0.5
    against = truth < 0.5

    def camp(kind: Kind, membership: Vector, target: str = "") -> Camp:
        theirs = (membership > 0.5)[pairs.voter]
        agreement = float((margin[theirs] > 0.0).mean()) if theirs.any() else 0.0
        return Camp(kind, membership, voters, (), agreement, target)

    found = [camp("against", against.astype(np.float64))] if against.any() else []
    for number, (rule, _) in enumerate(model.campaigns_):
        if of_rule[:, number].any():
            found.append(camp("rule", follows[:, number], _named(rule)))
    camps = sorted(found, key=lambda each: -each.size)
    return Camps(tuple(camps), np.ones(len(pairs)), pairs.voters), truth, against | of_rule.any(axis=1)


def _is_clear(evidence: Evidence | None, model: RobustRewardModel, level: float) -> bool:
    """Whether honest voters would hardly vote like those who vote against the rest.

    Those were chosen because the rest's votes contradict theirs, so leaving them out always seems to help the rest.
    """
    if evidence is None or evidence.flagged.any() or model.campaigns_:
        return evidence is not None
    more = np.expm1(np.minimum(evidence.log_evidence["inverts"], _MOST_EVIDENCE))
    together = max(float(np.log1p(share * more).sum()) for share in _SHARES)
    return bool(together > np.log(len(_SHARES) / level))


def _named(rule: Rule) -> str:
    """Say what a rule prefers."""
    if rule.feature < len(STATISTICS):
        return STATISTICS[rule.feature].more if rule.more else STATISTICS[rule.feature].less
    return (
        f"texts with {'more' if rule.more else 'less'} of number {rule.feature - len(STATISTICS) + 1} of the embedding"
    )


def _known_answers(pairs: PreferencePairs, known: PreferencePairs | None) -> tuple[KnownAnswers | None, Vector]:
    """Return how voters answered pairs with a known answer; and 1 for right votes, −1 for wrong ones, 0 if unknown."""
    right = np.zeros(len(pairs))
    if known is None:
        return None, right
    better = dict(zip(known.hashes.sum(axis=1).tolist(), known.hashes[:, 0].tolist(), strict=True))
    counted = dict[str, RightAnswers]()
    for place, (both, chosen) in enumerate(
        zip(pairs.hashes.sum(axis=1).tolist(), pairs.hashes[:, 0].tolist(), strict=True)
    ):
        if (best := better.get(both)) is None:
            continue
        right[place] = 1.0 if best == chosen else -1.0
        if pairs.voter is not None:
            name = pairs.voters[pairs.voter[place]]
            so_far, of = counted.get(name, (0, 0))
            counted[name] = RightAnswers(so_far + (best == chosen), of + 1)
    return counted, right


def _probably_wrong(pairs: PreferencePairs, margin: Vector, truth: Vector, right: Vector) -> Vector:
    """Return the probability that each label is wrong, (n,); see the top of this file."""
    told = np.clip(truth, _LEAST_TRUTH, _MOST_TRUTH)
    trust = np.full(len(pairs), np.log(3.0)) if pairs.voter is None else (special.logit(told) / 2.0)[pairs.voter]
    toward = pairs.way
    said = sums(pairs.pair, int(pairs.pair.max()) + 1, trust * toward)[pairs.pair] * toward
    return np.asarray(np.where(right != 0.0, right < 0.0, special.expit(-(margin + said))))


def _prefers(traits: Traits, against: Mask) -> list[Preference]:
    """Return what those who cast the votes ``against`` (n,) choose clearly more often than the rest, clearest first."""
    if not against.any() or against.all():
        return []
    count = traits.along.shape[1]
    more, differs = (sparse.csc_array(each) for each in (traits.along > 0.0, abs(traits.along)))
    theirs, rest = against.astype(np.float64), (~against).astype(np.float64)
    found = []
    n1, n0 = differs.T @ theirs, differs.T @ rest
    k1, k0 = more.T @ theirs, more.T @ rest
    for thing in range(count):
        if not traits.named[thing] or min(n1[thing], n0[thing]) < _LEAST_TELLING:
            continue
        p1, p0 = k1[thing] / n1[thing], k0[thing] / n0[thing]
        pooled = (k1[thing] + k0[thing]) / (n1[thing] + n0[thing])
        error = np.sqrt(max(pooled * (1.0 - pooled), 1e-9) * (1.0 / n1[thing] + 1.0 / n0[thing]))
        z = (p1 - p0) / error
        up = z > 0.0
        if abs(z) >= _CLEAR:
            name = traits.names[thing if up else thing + count]
            shares = (p1, p0) if up else (1.0 - p1, 1.0 - p0)
            found.append((abs(z), Preference(name, float(shares[0]), float(shares[1]), int(n1[thing]))))
    return [each for _, each in sorted(found, key=lambda pair: -pair[0])[:_MOST_TRAITS]]


def _telling(margin: Vector, against: Mask, traits: Traits | None, prefers: Sequence[Preference]) -> Indices:
    """Return votes ``against`` (n,) that the others' votes contradict most, and that show what the camp prefers."""
    shows = against.copy()
    if traits is not None and prefers:
        place = traits.names.index(prefers[0].what)
        count = traits.along.shape[1]
        along = np.asarray(traits.along[:, [place % count]].toarray()).ravel()
        shows &= (along > 0.0) if place < count else (along < 0.0)
    places = np.flatnonzero(shows)
    return places[np.argsort(margin[places], kind="stable")][:_EXAMPLES]


def _doubtful(wrong: Vector, against: Mask) -> Indices:
    """Return the labels that are most probably wrong, those by voters of the majority first."""
    places = np.flatnonzero(wrong >= WRONG)
    return places[np.lexsort((-wrong[places], against[places]))][:_MOST_WRONG]


def _certificates(pairs: PreferencePairs, features: Matrix) -> Certificates | None:
    """Certify which text of each pair is preferred; a voter's contradicting votes on two texts count half each."""
    if pairs.voter is None or usual_groups(len(np.unique(pairs.voter))) == 1:
        return None
    said = pl.DataFrame({"voter": pairs.voter, "prompt": pairs.prompt, "pair": pairs.pair})
    weight = 1.0 / said.select(pl.len().over(said.columns)).to_series().to_numpy()
    fitted = CertifiedRewards.fit(features, np.ones(len(pairs)), pairs.voter, sample_weight=weight)
    return fitted.certificates(features)


def _examples(
    pairs: PreferencePairs, places: Indices, wrong: Vector, certificates: Certificates | None
) -> list[Example]:
    if not len(places):
        return []
    certified = [""] * len(places)
    if certificates is not None:
        shown = certificates._replace(side=certificates.side[places], least=certificates.least[places])
        certified = shown.sentences("chosen text", "rejected text")
    texts = pairs.texts(places)
    voters = [""] * len(places) if pairs.voter is None else [pairs.voters[pairs.voter[place]] for place in places]
    return [
        Example(
            row=int(pairs.row[place]),
            voter=voter,
            probability=float(wrong[place]),
            certificate=certificate,
            **{name: clipped(text, _LONGEST) for name, text in row.items()},
        )
        for place, voter, certificate, row in zip(places, voters, certified, texts.to_dicts(), strict=True)
    ]


def _cost(pairs: PreferencePairs, features: Matrix, against: Mask, ridge: float) -> Cost | None:
    """Return what the votes ``against`` (n,) cost a plain reward model, from at most 20,000 votes of whole prompts."""
    if not against.any() or against.all():
        return None
    rng = np.random.default_rng(0)
    prompts = int(pairs.prompt.max()) + 1
    order = rng.permutation(prompts)
    if prompts < 2:
        return None
    place = np.empty(prompts, dtype=np.int64)
    place[order] = np.arange(prompts)
    if prompts > 100:
        share = min(1.0, _MOST_COUNTED / len(pairs))
        used = np.flatnonzero(place[pairs.prompt] < max(2.0, share * prompts))
    else:
        used = np.sort(rng.choice(len(pairs), min(len(pairs), _MOST_COUNTED), replace=False))
    half = place[pairs.prompt[used]] % 2
    scale = np.sqrt(np.mean(np.square(features[used], dtype=np.float64), axis=0))
    ahead = features[used] / np.where(scale > 0.0, scale, 1.0).astype(np.float32)
    honest = ~against[used]
    right = np.zeros((2, len(used)))
    for side in (0, 1):
        for row, chosen in enumerate((half != side, (half != side) & honest)):
            if chosen.any():
                right[row, half == side] = ahead[half == side] @ _plain(ahead[chosen], ridge * chosen.mean()) > 0.0
    counted = np.flatnonzero(honest)
    if not len(counted):
        return None
    share, better = right[:, counted].mean(axis=1), right[1, counted] - right[0, counted]
    by_prompt = sums(pairs.prompt[used][counted], prompts, better - better.mean())
    error = float(np.sqrt((by_prompt**2).sum())) / len(counted)
    return Cost(float(share[0]), float(share[1]), error, len(counted))


def _plain(ahead: Matrix, ridge: float) -> Vector:
    """Return θ of a plain logistic reward model."""
    signs = np.where(np.arange(len(ahead)) % 2 == 0, 1.0, -1.0).astype(ahead.dtype)
    fit = LogisticRegression(C=1.0 / max(ridge, 1e-6), fit_intercept=False, tol=1e-3, max_iter=200)
    if len(ahead) < 2:
        return np.zeros(ahead.shape[1])
    return np.asarray(fit.fit(ahead * signs[:, None], signs).coef_[0])
