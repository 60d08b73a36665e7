"""Live voting: a log on disk, a learner that chooses duels, and HTTP around them.

**Words.** A *study* asks one question about *items*. Items may be compared in *contexts* (a prompt, with one answer per
item). A *duel* is one pair shown to one voter, in one context, on two sides. A *vote* answers it: left, right or tie; a
voter may also skip it. A *voter* has a key and answers duels. An *operator* creates studies and sees everything, an
*observer* sees the results of one study.

**One log.** Everything that happens is an event in an append-only log, each with the hash of the one before it
(:mod:`~fairduel.service.events.log`). A command decides which events follow from the current state; events change the
state, the tables and the learner, in the order of the log, and nothing else does; each kind of event says how
(:mod:`~fairduel.service.events.kinds`). So a restart, a replay
and the running server agree. One thread runs all commands and commits many at a time; a command is acknowledged after
its events are on disk (:mod:`~fairduel.service.events.ledger`). Times are recorded but decide no order.

**Two learners.** An agent chooses the next duel (:mod:`~fairduel.service.study.learner`): a fold of the log, saved now
and then, so that a restart reads the last save and the rest of the log. The results that people see come from the model
of recorded votes instead, in another process (:mod:`~fairduel.service.analysis.background`).

**What counts.** A duel counts at most once, by its first answer before its deadline. A voter's last vote can be undone
for a minute, and the agent learns it when that is over or the voter has answered another duel. Late, repeated and
undone answers, and those of voters set aside, are kept but neither learned nor ranked.

This package uses ``votes`` and ``agents``; only ``cli`` uses it. ``http.md`` beside this file lists the routes.
"""
