"""Several servers of one PostgreSQL database: one leads, the others forward to it and are ready to take over."""

import logging
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from sqlalchemy import URL

from fairduel.service.logs import log, log_failure
from fairduel.service.postgres import Leader, PostgresStore, Session
from fairduel.service.service import Service, warm_up

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]
_POLL_SECONDS = 0.25
_ANY = {"0.0.0.0", "::"}  # noqa: S104  # not to listen there, but to see that someone does


class Member:
    """One of the servers of a database.

    Args:
        url: The database.
        address: Address on which this server listens.
        port: Its port.
        lead: Called with the service each time this server becomes the leader; returns the application.

    Raises:
        BadInputError: The database cannot be used.
    """

    def __init__(self, url: URL, address: str, port: int, lead: Callable[[Service], App]) -> None:
        self.app: App | None = None
        """The application while this server leads."""
        self.leader: Leader | None = None
        """Who leads, or did last."""
        self._url, self._address, self._port, self._lead = url, address, port, lead
        self._session: Session | None = None
        self._service: Service | None = None
        self._failure = ""
        self._stop = threading.Event()
        try:
            self._step()
        except BaseException:
            self._step_down()
            raise
        self._thread = threading.Thread(target=self._work, name="fairduel-member", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop, and let another server lead."""
        self._stop.set()
        self._thread.join()
        self._step_down()

    def _work(self) -> None:
        if self.app is None:
            warm_up()  # so that taking over does not take longer than reading the log
        while not self._stop.wait(_POLL_SECONDS):
            try:
                self._step()
                self._failure = ""
            except Exception as error:  # noqa: BLE001  # the database may come back
                self._step_down()
                if str(error) != self._failure:
                    self._failure = str(error)
                    log_failure("no connection to the database", error)

    def _step(self) -> None:
        """Lead if nobody does, or else see who does."""
        if self._service is not None:
            if self._session is None or not self._session.is_lost:
                return
            log(logging.WARNING, "no longer leads")
            self._step_down()
        if self._session is None:
            self._session = Session(self._url)
        if self._session.try_to_lead():
            self._step_up(self._session)
        else:
            self.leader = self._session.leader()

    def _step_up(self, session: Session) -> None:
        host = session.own_address() if self._address in _ANY else self._address
        store = PostgresStore(session, f"http://{f'[{host}]' if ':' in host else host}:{self._port}")
        self._service = Service(store)
        self._service.ledger.run(lambda ledger: session.limit_silence(ledger.connection()))
        self.leader, self.app = store.leader, self._lead(self._service)
        log(logging.WARNING, "leads", term=store.leader.term)

    def _step_down(self) -> None:
        self.app = None
        if self._service is not None:
            self._service.close()
            self._service = None
        if self._session is not None:
            self._session.close()
            self._session = None
