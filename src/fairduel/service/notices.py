"""Tell others what happens, by signed webhooks and by e-mail: in order, at least once, and no vote waits for it.

Notices follow from the log, and how far someone was told is stored, so a restart loses none. Only whoever starts the
server says whom to tell: nobody can make it call addresses through its web interface.
"""

import hashlib
import hmac
import logging
import os
import smtplib
import ssl
import threading
import time
from abc import ABC, abstractmethod
from email.message import EmailMessage
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from sqlalchemy import insert, select, update

from fairduel.errors import BadInputError
from fairduel.service.commands.team import name_of
from fairduel.service.events import schema
from fairduel.service.events.kinds import read_event
from fairduel.service.events.ledger import Ledger
from fairduel.service.events.log import KINDS, Body, Event, Json, canonical
from fairduel.service.keys import webhook_key
from fairduel.service.server_log import log, log_failure
from fairduel.service.study.study import SIGN_INS

SMTP = SIGN_INS["email"]
_SECONDS = 10.0  # that a receiver has to answer
_PAUSE = 1.0  # seconds between two looks at the log
_LONGEST_PAUSE = 300.0  # seconds between two attempts
_GIVE_UP = 86_400.0  # seconds after which a notice is dropped
_SCHEMES = {"smtp": 587, "smtps": 465}
_HERE = {"localhost", "127.0.0.1", "::1"}


class Target(ABC):
    """Whom to tell."""

    name: str
    """The address."""

    @abstractmethod
    def send(self, notice: Json, key: bytes) -> None:
        """Tell them, or raise an exception."""


class Webhook(Target):
    """An address, https or on this machine, to which each notice is posted with its HMAC-SHA256."""

    def __init__(self, url: str) -> None:
        if not is_safe_address(url):
            raise BadInputError(f"--webhook {url}: give an address that begins with https://.")
        self.name = url

    def send(self, notice: Json, key: bytes) -> None:
        """Post it; anything but success raises an exception."""
        import httpx  # noqa: PLC0415  # slow: a server should be ready soon

        content = canonical(notice).encode()
        signed = webhook_signature(key, int(time.time()), content)
        headers = {"Content-Type": "application/json", "Fairduel-Signature": signed}
        httpx.post(self.name, content=content, headers=headers, timeout=_SECONDS).raise_for_status()


def is_safe_address(url: str) -> bool:
    """Whether nobody in between can read what is sent there.

    >>> is_safe_address("https://example.org"), is_safe_address("http://example.org"), is_safe_address("http://[::1]:80")
    (True, False, True)
    """
    found = urlsplit(url)
    return bool(found.hostname) and (found.scheme == "https" or (found.scheme == "http" and found.hostname in _HERE))


def webhook_signature(key: bytes, at: int, content: bytes) -> str:
    """Return what proves that a notice is ours: the time, and the HMAC-SHA256 of ``time.content``.

    >>> webhook_signature(b"key", 1700000000, b"{}")[:27]
    't=1700000000,sha256=9d713ed'
    """
    return f"t={at},sha256={hmac.new(key, f'{at}.'.encode() + content, hashlib.sha256).hexdigest()}"


class MailServer:
    """A server that sends mails.

    Args:
        url: Its address, with a user and their password, and ``?from=`` the sender if the user is no mail address.
    """

    def __init__(self, url: str | None) -> None:
        found = urlsplit(url or "")
        if found.scheme not in _SCHEMES or not found.hostname:
            raise BadInputError(f"mails need a mail server: set {SMTP}=smtp://user:password@mail.example.org:587.")
        self._server, self._host, self._user = found, found.hostname, unquote(found.username or "")
        (self._sender,) = parse_qs(found.query).get("from", [self._user if "@" in self._user else ""])

    def send(self, address: str, subject: str, text: str) -> None:
        """Send a mail, or raise an exception."""
        server, user = self._server, self._user
        message = EmailMessage()
        message["Subject"] = " ".join(subject.split())
        message["To"], message["From"] = address, self._sender or address
        message.set_content(f"{text}\n")
        port, context = server.port or _SCHEMES[server.scheme], ssl.create_default_context()
        is_safe = server.scheme == "smtps"
        kind = smtplib.SMTP_SSL if is_safe else smtplib.SMTP
        settings: dict[str, Any] = {"context": context} if is_safe else {}
        with kind(self._host, port, timeout=_SECONDS, **settings) as connection:
            if not is_safe and connection.has_extn("starttls"):
                connection.starttls(context=context)
                is_safe = True
            if not is_safe and self._host not in _HERE:  # whoever is in between could have hidden that it encrypts
                raise smtplib.SMTPNotSupportedError("the mail server does not encrypt")
            if user:
                connection.login(user, unquote(server.password or ""))
            connection.send_message(message, to_addrs=[address])


class Mail(Target):
    """Someone with an e-mail address.

    Args:
        address: The address.
        server: The mail server, as a URL.
    """

    def __init__(self, address: str, server: str | None) -> None:
        if "@" not in address or not address.isprintable() or " " in address:
            raise BadInputError(f"--mail {address}: this is no e-mail address.")
        self.name, self._server = address, MailServer(server)

    def send(self, notice: Json, key: bytes) -> None:  # noqa: ARG002  # mail servers sign in their own way
        """Send it."""
        self._server.send(self.name, f"fairduel: {notice['title'] or 'server'}", notice["sentence"])


def targets(webhooks: list[str], mails: list[str]) -> list[Target]:
    """Return whom to tell."""
    return [*map(Webhook, webhooks), *(Mail(each, os.environ.get(SMTP)) for each in mails)]


class Courier:
    """A thread that tells one target what happens."""

    def __init__(self, ledger: Ledger, target: Target) -> None:
        self._ledger, self._target = ledger, target
        self._id = hashlib.sha256(target.name.encode()).hexdigest()
        self._key = webhook_key(ledger.secret)
        self._stop, self._changed = threading.Event(), threading.Event()
        self._told = ledger.run(self._begin)
        ledger.listen(lambda *_: self._changed.set())
        self._changed.set()
        self._thread = threading.Thread(target=self._work, name="fairduel-courier", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop; what was not delivered is delivered after the next start."""
        self._stop.set()
        self._changed.set()
        self._thread.join(_SECONDS)

    def _begin(self, ledger: Ledger) -> int:
        table = schema.deliveries
        found = ledger.connection().execute(select(table.c.position).where(table.c.target == self._id)).scalar()
        if found is None:
            found = ledger.state.position
            ledger.connection().execute(insert(table), {"target": self._id, "position": found})
        return int(found)

    def _work(self) -> None:
        pause = _PAUSE
        while not self._stop.is_set():
            self._changed.wait()
            self._changed.clear()
            try:
                self._deliver()
                pause = _PAUSE
            except Exception as error:  # noqa: BLE001  # it is tried again
                log_failure("notice not delivered", error)
                self._changed.set()
                pause = min(2.0 * pause, _LONGEST_PAUSE)
            self._stop.wait(pause)

    def _deliver(self) -> None:
        events = schema.events
        kinds = [name for name, kind in KINDS.items() if kind.notice is not Body.notice]
        query = select(events).where(events.c.kind.in_(kinds), events.c.position > self._told)
        with self._ledger.store.engine.connect() as connection:
            news = [read_event(*row) for row in connection.execute(query.order_by(events.c.position))]
        for event in news:
            notice = self._ledger.run(lambda ledger, event=event: noticed(ledger, event))  # type: ignore[misc]
            if notice is not None:
                try:
                    self._target.send(notice, self._key)
                except Exception:
                    if self._stop.is_set() or time.time() - event.at < _GIVE_UP:
                        raise
                    log(logging.ERROR, "notice dropped after a day", position=event.position)
            self._told = event.position
            self._ledger.run(self._note)

    def _note(self, ledger: Ledger) -> None:
        table = schema.deliveries
        told = update(table).where(table.c.target == self._id).values(position=self._told)
        ledger.connection().execute(told)


def noticed(ledger: Ledger, event: Event[Any]) -> Json | None:
    """Return what to tell about an event, or None if it is no news."""
    study = ledger.state.studies.get(event.study)
    by = name_of(ledger, event.by) or "The server"
    sentence = event.body.notice(study, by)
    if not sentence:
        return None
    title = None if study is None else study.about.title or study.about.question
    return {
        "event": event.body.kind,
        "position": event.position,
        "at": event.at,
        "by": name_of(ledger, event.by),
        "study": event.study or None,
        "title": title,
        "sentence": f"{title}: {sentence}" if title else sentence,
    }
