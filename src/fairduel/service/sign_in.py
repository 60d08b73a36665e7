"""Sign-in of voters, so that one account is one voter: by OpenID Connect, or by a link sent to an e-mail address.

Of an account, a keyed hash is stored, different in each study; its e-mail address only if the study says so.
"""

import asyncio
import base64
import hashlib
import hmac
import logging
import os
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import Any, NamedTuple
from urllib.parse import unquote, urlencode, urlsplit

from fairduel.errors import BadInputError
from fairduel.service.api.limits import RateLimit
from fairduel.service.keys import Tickets, account_id
from fairduel.service.notices import SMTP, MailServer, is_safe_address
from fairduel.service.problems import Problem, overloaded
from fairduel.service.server_log import log, log_failure
from fairduel.service.study.study import SIGN_INS, NewStudy, catalogue

OIDC = SIGN_INS["openid"]
LINK = "fds_"
"""How the key in a link begins that signs a voter in, once."""
MINUTES = 15
"""How long a sign-in may take, and a link in a mail works."""
_SECONDS = 10.0  # that the provider has to answer
_FRESH = 3600.0  # seconds that what the provider says about itself is kept
_LEEWAY = 60  # seconds that clocks may differ
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA"]
"""With public keys only: "none", and codes by a shared secret, are no signatures."""
_MOST_WAITING = 1000  # mails
_ADDRESS = re.compile(r"[A-Za-z0-9.#$&'*+/^_{|}~-]{1,64}@([A-Za-z0-9-]+(?:[.][A-Za-z0-9-]+)+)")
"""Without what makes a second spelling of a mailbox: = and ? encode words (RFC 2047), % and ! may name another host."""
Json = dict[str, Any]


class Account(NamedTuple):
    """An account of someone who has signed in."""

    kind: str
    """Who says so: "email", or the issuer."""
    name: str
    """By which the account is the same each time."""
    email: str | None
    """The address, if it was verified."""


class Provider:
    """An OpenID Connect provider; everything it says is checked.

    Args:
        url: Its issuer, with the client's id and secret that it gave to this server, both percent-encoded.
    """

    def __init__(self, url: str) -> None:
        found = urlsplit(url)
        self.issuer = found._replace(netloc=found.netloc.rpartition("@")[2]).geturl()
        self._client, self._secret = unquote(found.username or ""), unquote(found.password or "")
        if not self._client or not is_safe_address(self.issuer) or found.query or found.fragment:
            raise BadInputError(f"{OIDC}: write https://CLIENT_ID:SECRET@accounts.example.org, the issuer's address.")
        self._known: tuple[float, Json] = (0.0, {})
        self._keys: tuple[float, Any] = (0.0, None)

    async def address(self, attempt: str, state: str, back: str, *, wants_email: bool) -> str:
        """Return where a voter signs in; they come ``back`` with a code, and the state."""
        asked = {
            "response_type": "code",
            "client_id": self._client,
            "redirect_uri": back,
            "scope": "openid email" if wants_email else "openid",
            "state": state,
            "nonce": derived(attempt, "nonce"),
            "code_challenge": _encoded(hashlib.sha256(derived(attempt, "verifier").encode()).digest()),
            "code_challenge_method": "S256",
        }
        where = str((await self._about())["authorization_endpoint"])
        return f"{where}{'&' if '?' in where else '?'}{urlencode(asked)}"

    async def account(self, attempt: str, back: str, code: str) -> Account:
        """Exchange a code for the account of who signed in; raise an exception if anything is not as it should be."""
        import httpx  # noqa: PLC0415  # slow: a server should be ready soon

        about = await self._about()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": back,
            "code_verifier": derived(attempt, "verifier"),
        }
        methods = about.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        proof: httpx.BasicAuth | None = None
        if self._secret and "client_secret_basic" in methods:
            proof = httpx.BasicAuth(*(urlencode({"": each})[1:] for each in (self._client, self._secret)))
        else:
            form |= {"client_id": self._client} | ({"client_secret": self._secret} if self._secret else {})
        async with httpx.AsyncClient(timeout=_SECONDS, auth=proof) as client:
            reply = await client.post(about["token_endpoint"], data=form)
        token = reply.raise_for_status().json()["id_token"]
        return self._verified(token, await self._public_keys(token), derived(attempt, "nonce"))

    def _verified(self, token: str, keys: Any, nonce: str) -> Account:
        """Return whom a token is about, after the checks of OpenID Connect Core 1.0, section 3.1.3.7."""
        from joserfc import jwt  # noqa: PLC0415  # needs the signin extra

        claims = jwt.decode(token, keys, algorithms=_ALGORITHMS).claims
        jwt.JWTClaimsRegistry(
            leeway=_LEEWAY,
            iss={"essential": True, "value": self.issuer},
            aud={"essential": True, "value": self._client},
            nonce={"essential": True, "value": nonce},
            exp={"essential": True},
            iat={"essential": True},
            sub={"essential": True},
        ).validate(claims)
        several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
        if claims.get("azp", None if several else self._client) != self._client:
            raise ValueError("the token is for another client")
        is_verified = claims.get("email_verified") is True and isinstance(claims.get("email"), str)
        return Account(self.issuer, claims["sub"], claims["email"] if is_verified else None)

    async def _about(self) -> Json:
        """Return what the provider says about itself."""
        if self._known[0] < time.monotonic():
            found = await _fetched(f"{self.issuer.rstrip('/')}/.well-known/openid-configuration")
            if found["issuer"] != self.issuer:
                raise ValueError(f"the provider calls itself {found['issuer']!r}, not {self.issuer!r}")
            if not all(is_safe_address(found[f"{name}_endpoint"]) for name in ("authorization", "token")):
                raise ValueError("the provider's endpoints are not https")
            self._known = (time.monotonic() + _FRESH, found)
        return self._known[1]

    async def _public_keys(self, token: str) -> Any:
        """Return the provider's keys, anew if they are old or do not have the one that signed a token."""
        from joserfc import jwk, jws  # noqa: PLC0415  # needs the signin extra

        until, keys = self._keys
        wanted = jws.extract_compact(token.encode()).headers().get("kid")
        is_new = keys is not None and wanted is not None and wanted not in {each.kid for each in keys.keys}
        now = time.monotonic()
        if now > until or (is_new and now > until - _FRESH + _LEEWAY):  # so that tokens cannot make us ask all the time
            where = str((await self._about())["jwks_uri"])
            if not is_safe_address(where):
                raise ValueError("the provider's keys are not at an https address")
            keys = jwk.KeySet.import_key_set(await _fetched(where))  # type: ignore[arg-type]
            self._keys = (now + _FRESH, keys)
        return keys


async def _fetched(address: str) -> Json:
    import httpx  # noqa: PLC0415  # slow: a server should be ready soon

    async with httpx.AsyncClient(timeout=_SECONDS) as client:
        found: Json = (await client.get(address)).raise_for_status().json()
    return found


class SignIn:
    """The ways in which voters can sign in at a server.

    Args:
        here: The server's address on the web. It is not that of a request, whose host name anyone may have made up.
        provider: The OpenID Connect provider.
        mails: The mail server.
    """

    def __init__(self, here: str = "", provider: Provider | None = None, mails: MailServer | None = None) -> None:
        self.here, self._provider, self._mails = here, provider, mails
        self._attempts, self._links = Tickets(60.0 * MINUTES), Tickets(60.0 * MINUTES)
        self._sender = ThreadPoolExecutor(1, "fairduel-mail")
        self._waiting = threading.BoundedSemaphore(_MOST_WAITING)
        self._per_recipient, self._all = RateLimit(1 / 1200.0, 3.0), RateLimit(1.0, 300.0)

    @classmethod
    def configured(cls, here: str) -> "SignIn":
        """Return what the environment names."""
        oidc, smtp = os.environ.get(OIDC), os.environ.get(SMTP)
        if oidc and find_spec("joserfc") is None:
            raise BadInputError(f"{OIDC} needs the extra signin: pip install 'fairduel[signin]'.")
        if oidc and "*" in here:
            raise BadInputError(f"{OIDC} needs the name under which voters reach the server: --host-name NAME.")
        return cls(here, Provider(oidc) if oidc else None, MailServer(smtp) if smtp and "*" not in here else None)

    @property
    def kinds(self) -> frozenset[str]:
        """The values of ``access`` that studies may have because voters can sign in."""
        kinds = {"openid": self._provider, "email": self._mails}
        return frozenset(name for name, each in kinds.items() if each is not None)

    def close(self) -> None:
        """Send no more mails."""
        self._sender.shutdown(cancel_futures=True)

    # ---------------------------------------------------------------- OpenID Connect

    async def begin(self, study: str, about: NewStudy) -> tuple[str, str]:
        """Begin an attempt; return what the browser has to keep, and where the voter signs in."""
        if self._provider is None or about.access != "openid":
            raise _no_sign_in()
        attempt = self._attempts.new(study)
        try:
            state = f"{study}.{derived(attempt, 'state')}"
            async with asyncio.timeout(_SECONDS):
                where = await self._provider.address(attempt, state, self._back, wants_email=_wants_email(about))
        except Exception as error:
            raise _failed(error) from error
        return attempt, where

    async def end(self, study: str, attempt: str, state: str, code: str, issuer: str | None) -> Account:
        """End an attempt that this browser began for a study; return who signed in."""
        if (
            self._provider is None
            or self._attempts.spend(attempt) != [study]
            or not hmac.compare_digest(state.encode(), f"{study}.{derived(attempt, 'state')}".encode())
            or issuer not in {None, self._provider.issuer}
        ):
            raise Problem(409, "sign-in-failed", "This sign-in is over, or began in another browser; please try again.")
        try:
            async with asyncio.timeout(_SECONDS):
                return await self._provider.account(attempt, self._back, code)
        except Exception as error:
            raise _failed(error) from error

    @property
    def _back(self) -> str:
        return f"{self.here}api/sign-in"

    # ---------------------------------------------------------------- links

    def link(self, secret: bytes, study: str, about: NewStudy, account: Account, attempt: str | None = None) -> str:
        """Return what follows a server's address in the link by which an account votes, once and for a short time.

        After an ``attempt``, it works in the browser that made it; nobody can make others vote as themselves.
        """
        if about.email_domains and _domain(account.email) not in about.email_domains:
            raise Problem(403, "not-allowed", f"This study is for addresses at {' or '.join(about.email_domains)}.")
        shown = account.email if about.keep_email else None
        bound = None if attempt is None else derived(attempt, "link")
        ticket = self._links.new(bound, study, account_id(secret, study, account.kind, account.name), shown)
        return f"vote/{study}#{LINK}{ticket}"

    def redeem(self, key: str, browser: str | None, attempt: str) -> list[Any]:
        """Return the study, the account's id there, and the address to store, of a link's key; it works once."""
        bound, *carried = self._links.spend(key.removeprefix(LINK), browser or "") or [""]
        if bound is not None and not hmac.compare_digest(bound, derived(attempt, "link")):
            raise Problem(401, "link-used", "This link was used, is too old, or is another browser's; sign in again.")
        return carried

    def mail(self, secret: bytes, study: str, about: NewStudy, email: str, language: str) -> None:
        """Send a link to an address, unless it got some lately; the caller learns nothing about the address."""
        if self._mails is None or about.access != "email":
            raise _no_sign_in()
        name = canonical_email(email)
        link = self.here + self.link(secret, study, about, Account("email", name, email))
        try:
            self._per_recipient.take(name)
        except Problem:
            return
        self._all.take("")
        words = catalogue(language) | about.page.words
        values = {"question": about.question, "link": link, "minutes": str(MINUTES)}
        subject, text = (
            re.sub(r"\{(\w+)\}", lambda hit: values[hit[1]], words[part]) for part in ("mail_subject", "mail_text")
        )
        if not self._waiting.acquire(blocking=False):
            raise overloaded()
        self._sender.submit(self._send, self._mails, email, subject, text)

    def _send(self, mails: MailServer, email: str, subject: str, text: str) -> None:
        try:
            mails.send(email, subject, text)
        except Exception as error:  # noqa: BLE001  # the voter can ask for another link
            log(
                logging.ERROR, "a voter's link was not sent", error=type(error).__name__
            )  # its text may have the address
        finally:
            self._waiting.release()


def derived(attempt: str, what: str) -> str:
    """Return the state, nonce or verifier of an attempt; who does not know the attempt can guess none from another.

    >>> derived("attempt", "state")
    'SAToMEhWwPd0yXV4We9m_5qyPDbVHHzTxRI2r4yb4z8'
    """
    return _encoded(hmac.new(attempt.encode(), what.encode(), hashlib.sha256).digest())


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def canonical_email(email: str) -> str:
    """Return what is the same for all spellings of an address that reach one mailbox, or refuse it.

    >>> canonical_email("Ann+poll@Example.org")
    'ann@example.org'
    """
    if len(email) > 254 or _ADDRESS.fullmatch(email) is None:
        raise Problem(422, "invalid", "This is no e-mail address.")
    box, _, domain = email.lower().rpartition("@")
    box = box.partition("+")[0] or box
    if domain in {"gmail.com", "googlemail.com"}:
        box, domain = box.replace(".", ""), "gmail.com"
    return f"{box}@{domain}"


def _domain(email: str | None) -> str:
    return (email or "").lower().rpartition("@")[2]


def _wants_email(about: NewStudy) -> bool:
    return about.keep_email or bool(about.email_domains)


def _no_sign_in() -> Problem:
    return Problem(409, "no-sign-in", "Voters of this study do not sign in like this.")


def _failed(error: Exception) -> Problem:
    log_failure("sign-in failed", error)
    return Problem(502, "sign-in-failed", "The sign-in failed; please try again.")
