"""What voters sign in with: a small OpenID Connect provider, and a mail server that keeps what it gets."""

import base64
import email.policy
import hashlib
import re
import secrets
import time
from contextlib import contextmanager
from urllib.parse import parse_qs, urlencode

from aiosmtpd.controller import Controller
from joserfc import jwt
from joserfc.jwk import RSAKey
from starlette.applications import Starlette
from starlette.responses import JSONResponse, RedirectResponse
from starlette.routing import Route

from fairduel.service.local import serving
from helpers.waiting import free_port

CLIENT, SECRET = "fairduel at home", "se:cret/%"
CREDENTIALS = "fairduel%20at%20home:se%3Acret%2F%25"


class AccountProvider:
    """Signs everyone in as ``user`` without asking; ``forge`` may change what it says and how it signs."""

    def __init__(self):
        self.url = ""
        self.user = {"sub": "ann", "email": "Ann@Example.org", "email_verified": True}
        self.forge = jwt.encode
        self.key = RSAKey.generate_key(2048, {"kid": "one"})
        self.codes, self.asked, self.fetched = {}, [], 0
        self.about = {}

    def app(self):
        routes = [
            Route("/.well-known/openid-configuration", self._describe),
            Route("/keys", self._keys),
            Route("/authorize", self._authorize),
            Route("/token", self._token, methods=["POST"]),
        ]
        return Starlette(routes=routes)

    async def _describe(self, _):
        ends = {
            f"{name}_endpoint": f"{self.url}/{path}"
            for name, path in (("authorization", "authorize"), ("token", "token"))
        }
        return JSONResponse({"issuer": self.url, "jwks_uri": f"{self.url}/keys", **ends, **self.about})

    async def _keys(self, _):
        self.fetched += 1
        return JSONResponse({"keys": [self.key.as_dict(private=False)]})

    async def _authorize(self, request):
        asked = dict(request.query_params)
        assert (asked["client_id"], asked["response_type"]) == (CLIENT, "code")
        assert asked["code_challenge_method"] == "S256"
        self.asked.append(asked)
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked
        back = {"code": code, "state": asked["state"], "iss": self.url}
        return RedirectResponse(f"{asked['redirect_uri']}?{urlencode(back)}", 303)

    async def _token(self, request):
        form = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        names = [next(iter(parse_qs(f"x={part}").values()))[0] for part in base64.b64decode(given).decode().split(":")]
        asked = self.codes.pop(form["code"], None)
        proof = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).decode().rstrip("=")
        if (
            kind != "Basic"
            or names != [CLIENT, SECRET]
            or asked is None
            or asked["code_challenge"] != proof
            or asked["redirect_uri"] != form["redirect_uri"]
        ):
            return JSONResponse({"error": "invalid_grant"}, 400)
        now = int(time.time())
        times = {"iat": now, "exp": now + 300}
        claims = {"iss": self.url, "aud": CLIENT, "nonce": asked["nonce"], **times, **self.user}
        token = self.forge({"alg": "RS256", "kid": self.key.kid}, claims, self.key)
        return JSONResponse({"access_token": "x", "token_type": "Bearer", "id_token": token})


@contextmanager
def account_provider():
    """Run a provider on this machine."""
    provider = AccountProvider()
    with serving(provider.app()) as url:
        provider.url = url
        yield provider


class Mailbox:
    """Keeps the mails that a server hands in."""

    def __init__(self):
        self.mails = []

    async def handle_DATA(self, _, __, envelope):  # noqa: N802  # as aiosmtpd calls it
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        self.mails.append((envelope.rcpt_tos, message.get_content()))
        return "250 OK"

    def links(self):
        """The links in the mails, in order."""
        return [re.search(r"http\S+#\S+", text)[0] for _, text in self.mails]


@contextmanager
def mail_server():
    """Run a mail server on this machine; yields its address and what it got."""
    box = Mailbox()
    controller = Controller(box, hostname="127.0.0.1", port=free_port())
    controller.start()
    try:
        yield f"smtp://127.0.0.1:{controller.port}?from=polls@example.org", box
    finally:
        controller.stop()
