"""Voters who sign in: one account is one voter, by OpenID Connect or by a link in a mail, and what attackers try."""

import base64
import json
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey
from starlette.testclient import TestClient

from fairduel.errors import BadInputError
from fairduel.service.api.app import create_app
from fairduel.service.api.limits import RateLimit, unlimited
from fairduel.service.commands import team
from fairduel.service.keys import Tickets
from fairduel.service.notices import MailServer
from fairduel.service.service import Service
from fairduel.service.sign_in import _ALGORITHMS, Provider, SignIn, canonical_email
from fairduel.service.work import solve_challenge
from helpers.accounts import CLIENT, CREDENTIALS, account_provider, mail_server
from helpers.waiting import wait_for

STUDY = {"question": "Which?", "items": [{"name": name} for name in ("tea", "milk", "water")], "repeat_pairs": True}
HERE = "http://localhost/"


@pytest.fixture(scope="module")
def running():
    """An OpenID Connect provider and a mail server."""
    with account_provider() as provider, mail_server() as (smtp, box):
        yield provider, smtp, box


@pytest.fixture
def provider(running):
    provider = running[0]
    fresh = type(provider)()
    for name in ("user", "forge", "about"):
        setattr(provider, name, getattr(fresh, name))
    return provider


@pytest.fixture
def box(running):
    running[2].mails.clear()
    return running[2]


@pytest.fixture
def service(tmp_path, running, provider):
    service = Service(tmp_path / "store")
    issuer = provider.url.replace("http://", f"http://{CREDENTIALS}@")
    service.offer(SignIn(HERE, Provider(issuer), MailServer(running[1])))
    yield service
    service.close()


@pytest.fixture
def browser(service):
    app = create_app(service, limits=unlimited())
    return lambda **headers: TestClient(app, base_url="http://localhost", headers=headers, follow_redirects=False)


@pytest.fixture
def operator(service, browser):
    return browser(Authorization=f"Bearer {service.ledger.run(team.ensure_operator)}")


def new_study(operator, **settings):
    return operator.post("/api/studies", json=STUDY | settings).raise_for_status().json()["study"]


def begin(client, study, **body):
    return client.post(f"/api/studies/{study}/sign-in", json=body)


def go(client, study):
    """Begin to sign in; return the address that the provider leads back to."""
    there = begin(client, study).raise_for_status().json()["location"]
    return httpx.get(there).headers["location"]


def come_back(client, address):
    """Return where the server leads a browser that the provider sent back."""
    return client.get(address).headers["location"]


def redeem(client, link, **more):
    return client.post("/api/session", json={"key": link.partition("#")[2], **more})


def sign_in(client, study):
    """Sign in as whoever the provider says; return the voter."""
    link = come_back(client, go(client, study))
    assert link.startswith(f"../vote/{study}#fds_"), link
    assert redeem(client, link).json()["scope"] == "voter"
    return client.get(f"/api/studies/{study}/receipt").raise_for_status().json()["voter"]


def fails(client, address, code="sign-in-failed"):
    return come_back(client, address).endswith(f"?sign_in={code}")


def voters(operator, study):
    return operator.get(f"/api/studies/{study}/voters").raise_for_status().json()["voters"]


def mailed(client, box, study, email, **more):
    """Ask for a link and return it."""
    count = len(box.mails)
    assert begin(client, study, email=email, **more).json() == {"location": None, "minutes": 15}
    wait_for(lambda: len(box.mails) > count)
    return box.links()[-1]


def test_one_account_is_one_voter_in_any_browser(browser, operator, provider):
    study, other = (new_study(operator, access="openid") for _ in range(2))
    ann, again = sign_in(browser(), study), sign_in(browser(), study)
    provider.user = provider.user | {"sub": "bob"}
    bob = sign_in(browser(), study)
    assert ann == again != bob
    sign_in(browser(), other)
    ids = [row["participant"] for name in (study, other) for row in voters(operator, name)]
    assert len(set(ids)) == 3  # the same account has another id in another study
    assert [row["name"] for row in voters(operator, study)] == [None, None]
    assert {asked["scope"] for asked in provider.asked} == {"openid"}
    assert browser().post(f"/api/studies/{study}/voters", json={}).json()["code"] == "not-invited"
    for signature in ({}, {"signature": "0" * 64}):
        made_up = browser().post(f"/api/studies/{study}/voters", json={"participant": ids[0], **signature})
        assert made_up.json()["code"] == "not-invited"
    # Whoever may sign links of participants may not make up accounts.
    assert operator.post(f"/api/studies/{study}/participants", json={"participants": ["x"]}).status_code == 409


def test_addresses_are_on_disk_only_if_a_study_asks_for_them(browser, operator, service, box):
    def stored():
        files = [file.read_bytes() for file in Path(service.ledger.store.where).iterdir() if file.is_file()]
        return any(b"ann@" in content.lower() for content in files)

    client = browser()
    redeem(client, mailed(client, box, new_study(operator, access="email"), "Ann@Example.org"))
    sign_in(client, new_study(operator, access="openid"))
    assert not stored()
    study = new_study(operator, access="openid", keep_email=True)
    sign_in(client, study)
    assert [row["name"] for row in voters(operator, study)] == ["Ann@Example.org"]
    assert stored()


@pytest.mark.parametrize(
    "change",
    [
        {"iss": "https://elsewhere.example"},
        {"aud": "another client"},
        {"aud": [CLIENT, "another client"]},  # and nobody says for whom
        {"azp": "another client"},
        {"nonce": "of another sign-in"},
        {"exp": 1_700_000_000},
        {"sub": ""},
        {"sub": 3},
        {"sub": None},
        {"nonce": None},
        {"exp": None},
        {"iat": None},
        {"aud": None},
    ],
    ids=str,
)
def test_tokens_with_wrong_claims_admit_nobody(browser, operator, provider, change):
    study, client = new_study(operator, access="openid"), browser()

    def forge(header, claims, key):
        changed = {name: value for name, value in (claims | change).items() if value is not None}
        return jwt.encode(header, changed, key)

    provider.forge = forge
    assert fails(client, go(client, study))
    assert voters(operator, study) == []


def unsigned(header, claims, _):
    parts = [{**header, "alg": "none"}, claims]
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join([*encoded, ""])


def with_the_public_key_as_secret(header, claims, key):
    return jwt.encode({**header, "alg": "HS256"}, claims, OctKey.import_key(key.as_pem(private=False)))


def with_another_key(header, claims, _):
    return jwt.encode(header, claims, RSAKey.generate_key(2048, {"kid": header["kid"]}))


def changed_afterwards(header, claims, key):
    head, _, code = jwt.encode(header, claims, key).split(".")
    other = base64.urlsafe_b64encode(json.dumps(claims | {"sub": "eve"}).encode()).decode().rstrip("=")
    return f"{head}.{other}.{code}"


def with_a_key_of_its_own(header, claims, _):
    key = RSAKey.generate_key(2048)
    return jwt.encode({**header, "kid": "other", "jwk": key.as_dict(private=False)}, claims, key)


FORGERIES = [unsigned, with_the_public_key_as_secret, with_another_key, changed_afterwards, with_a_key_of_its_own]


@pytest.mark.parametrize("forge", FORGERIES, ids=lambda forge: forge.__name__)
def test_tokens_with_wrong_signatures_admit_nobody(browser, operator, provider, forge):
    study, client = new_study(operator, access="openid"), browser()
    provider.forge = forge
    assert not [each for each in _ALGORITHMS if each == "none" or each.startswith("HS")]
    assert fails(client, go(client, study))
    assert voters(operator, study) == []


def test_a_sign_in_ends_once_and_in_the_browser_that_began_it(browser, operator):
    study, other = (new_study(operator, access="openid") for _ in range(2))
    ann, eve = browser(), browser()
    back = go(ann, study)
    assert fails(eve, back)  # a link that Ann follows, so that she votes as Eve, or whose code Eve has seen
    cookie = ann.cookies["fairduel_sign_in"]
    link = come_back(ann, back)
    assert link.startswith(f"../vote/{study}#fds_")
    code = {"Cookie": f"fairduel_sign_in={cookie}"}
    assert browser(**code).get(back).headers["location"] == f"../vote/{study}?sign_in=sign-in-failed"  # repeated
    there = begin(ann, study).json()["location"]
    state = parse_qs(urlsplit(there).query)["state"][0]
    for wrong in (f"{study}.wrong", f"{study}.", state + "x", f"{study}.ä"):
        attacked = browser()
        begin(attacked, study)
        assert fails(attacked, f"{HERE}api/sign-in?code=x&state={wrong}")
    assert fails(ann, httpx.get(there).headers["location"].replace(study, other))  # for another study
    assert fails(ann, go(ann, study).replace("&iss=", "x&iss="))  # the right code with another state
    back = go(ann, study)
    assert fails(ann, back.partition("&iss=")[0] + "&iss=https://elsewhere.example")
    begin(ann, study)
    assert fails(ann, f"{HERE}api/sign-in?error=access_denied&state={state}")
    assert browser().get(f"{HERE}api/sign-in").status_code == 404
    assert browser().get(f"{HERE}api/sign-in?state=//elsewhere.example/x.y&code=x").status_code == 404
    assert voters(operator, study) == []


def test_the_link_after_a_sign_in_makes_nobody_else_vote_as_that_account(browser, operator):
    study, eve, ann = new_study(operator, access="openid"), browser(), browser()
    link = come_back(eve, go(eve, study))
    assert redeem(ann, link).json()["code"] == "link-used"
    begin(ann, study)  # not even if Ann is signing in herself
    assert redeem(ann, come_back(eve, go(eve, study))).json()["code"] == "link-used"
    assert voters(operator, study) == []


def test_signing_in_needs_the_work_that_joining_needs_and_an_open_study(browser, operator, box):
    study, client = new_study(operator, access="email", proof_of_work=8), browser()
    assert begin(client, study, email="ann@example.org").json()["code"] == "new-challenge"
    challenge = client.get(f"/api/studies/{study}/ballot").json()["work"]["challenge"]
    work = {"challenge": challenge, "answer": solve_challenge(challenge, 8)}
    assert mailed(client, box, study, "ann@example.org", work=work)
    assert begin(client, study, email="ann@example.org", work=work).json()["code"] == "new-challenge"  # works once
    operator.patch(f"/api/studies/{study}", json={"state": "closed"}).raise_for_status()
    assert begin(client, study, email="bob@example.org").json()["code"] == "not-open"
    assert len(box.mails) == 1


def test_who_asks_for_one_address_again_and_again_takes_no_mail_from_others(browser, operator, service, box):
    study, client = new_study(operator, access="email"), browser()
    service.sign_in._all = RateLimit(0.0, 5.0)
    for _ in range(20):
        assert begin(client, study, email="eve@example.org").status_code == 200
    assert begin(client, study, email="ann@example.org").status_code == 200
    wait_for(lambda: [to for (to,), _ in box.mails] == ["eve@example.org"] * 3 + ["ann@example.org"])


def test_a_question_of_two_lines_is_one_line_in_the_subject(browser, operator, box):
    study = new_study(operator, access="email", question="Tea\u2028or milk?")
    assert mailed(browser(), box, study, "ann@example.org")


def test_the_verifier_and_the_nonce_are_of_one_attempt(browser, operator):
    study, client = new_study(operator, access="openid"), browser()
    addresses = [begin(client, study).json()["location"] for _ in range(2)]  # two tabs: the second one counts
    asked = [parse_qs(urlsplit(address).query) for address in addresses]
    for name in ("state", "nonce", "code_challenge"):
        assert asked[0][name] != asked[1][name]
    first, second = (parse_qs(urlsplit(httpx.get(address).headers["location"]).query) for address in addresses)
    swapped = f"{HERE}api/sign-in?code={first['code'][0]}&state={second['state'][0]}"
    assert fails(client, swapped)  # the code of one attempt with the state of the other: PKCE
    cookie = client.cookies.get("fairduel_sign_in") or ""
    assert asked[1]["nonce"][0] not in cookie


def test_providers_are_believed_only_about_themselves(browser, operator, provider):
    study, client = new_study(operator, access="openid"), browser()
    for wrong in ({"issuer": "https://elsewhere.example"}, {"token_endpoint": "http://elsewhere.example/token"}):
        provider.about = wrong
        assert begin(client, study).json()["code"] == "sign-in-failed"
    provider.about = {}
    assert begin(client, study).status_code == 200
    for wrong in ("https://accounts.example.org", "http://id:secret@accounts.example.org", "accounts"):
        with pytest.raises(BadInputError, match="FAIRDUEL_OIDC"):
            Provider(wrong)


def test_new_keys_are_fetched_but_not_for_every_token(browser, operator, provider, service, monkeypatch):
    study, client = new_study(operator, access="openid"), browser()
    sign_in(client, study)
    fetched, old = provider.fetched, provider.key
    for number in range(5):
        provider.forge = lambda header, claims, _, number=number: jwt.encode(
            header | {"kid": f"k{number}"}, claims, old
        )
        assert fails(client, go(client, study))
    assert provider.fetched == fetched
    provider.forge, provider.key = jwt.encode, RSAKey.generate_key(2048, {"kid": "two"})
    known = service.sign_in._provider
    monkeypatch.setattr(known, "_keys", (known._keys[0] - 100.0, known._keys[1]))  # fetched 100 s earlier
    sign_in(client, study)
    assert provider.fetched == fetched + 1


def test_a_link_in_a_mail_works_once(browser, operator, box):
    study = new_study(operator, access="email", question="Which drink?")
    ann, other, nonce = browser(), browser(), {"nonce": "0123456789abcdef"}
    link = mailed(ann, box, study, "Ann@Example.org", language="de")
    assert link.startswith(f"{HERE}vote/{study}#fds_")
    assert box.mails[0][0] == ["Ann@Example.org"]
    assert "Which drink?" in box.mails[0][1]
    assert "Hier stimmen Sie ab" in box.mails[0][1]
    first = redeem(ann, link, **nonce)
    assert first.json()["scope"] == "voter"
    assert redeem(ann, link, **nonce).status_code == 200  # the reply may have been lost
    for more in ({}, {"nonce": "f" * 16}):
        assert redeem(other, link, **more).json()["code"] == "link-used"
    for wrong in (link[:-1], link.replace("#fds_", "#fds_A"), "#fds_", "#fds_." + "0" * 64):
        assert redeem(other, wrong).json()["code"] == "link-used"
    second = mailed(browser(), box, study, "ann+again@example.org")
    redeem(other, second)
    assert len(voters(operator, study)) == 1
    assert other.get(f"/api/studies/{study}/receipt").json()["answers"] == []


def test_a_link_works_for_a_quarter_of_an_hour(monkeypatch):
    now = 1000.0
    monkeypatch.setattr("fairduel.service.keys.time.monotonic", lambda: now)
    tickets, others = Tickets(900.0), Tickets(900.0)
    early, late = tickets.new("study"), tickets.new("study")
    assert others.spend(early) is None
    now = 1899.0
    assert tickets.spend(early) == ["study"]
    now = 1901.0
    assert tickets.spend(late) is None
    assert tickets.spend(early, "someone") is None


def test_nobody_learns_who_has_an_account_or_fills_a_mailbox(browser, operator, box, service):
    study = new_study(operator, access="email")
    client = browser()
    redeem(client, mailed(client, box, study, "ann@example.org"))
    replies = [begin(browser(), study, email=email) for email in ["ann@example.org"] * 5 + ["nobody@example.org"]]
    assert {(reply.status_code, reply.text) for reply in replies} == {(200, replies[0].text)}
    wait_for(lambda: len(box.mails) == 4)
    assert [to for (to,), _ in box.mails].count("ann@example.org") == 3
    service.sign_in._all = RateLimit(1.0, 2.0)
    codes = [begin(browser(), study, email=f"p{number}@example.org").status_code for number in range(3)]
    assert codes == [200, 200, 429]


def test_a_study_may_be_for_addresses_of_a_domain(browser, operator, box, provider):
    study = new_study(operator, access="email", email_domains=["example.org"])
    for stranger in ("eve@elsewhere.example", "eve@example.org.elsewhere.example", "example.org@elsewhere.example"):
        assert begin(browser(), study, email=stranger).json()["code"] == "not-allowed"
    assert mailed(browser(), box, study, "ANN@EXAMPLE.ORG")
    study = new_study(operator, access="openid", email_domains=["example.org"])
    sign_in(browser(), study)
    user = provider.user
    for changed in ({"email": "eve@elsewhere.example"}, {"email_verified": False}, {"email_verified": "true"}):
        provider.user = user | changed
        client = browser()
        assert fails(client, go(client, study), "not-allowed")
    assert len(voters(operator, study)) == 1


@pytest.mark.parametrize(
    "email",
    [
        *("", "ann", "a@b", "a b@example.org", "a@example.org\nBcc: x@y.z", "a,b@x.org", "<a@x.org>"),
        # Other spellings of a mailbox: encoded words (RFC 2047), and addresses that some servers send on.
        *("=?utf-8?q?=61nn?=@x.org", "=?utf-8?q?eve=40y.z=2Cx?=@x.org", "eve%y.z@x.org", "y.z!eve@x.org"),
    ],
)
def test_what_is_no_address_gets_no_mail(browser, operator, box, email):
    study = new_study(operator, access="email")
    assert begin(browser(), study, email=email).status_code == 422
    assert box.mails == []


def test_the_link_leads_here_even_if_a_request_names_another_host(service, operator, box):
    study = new_study(operator, access="email")
    limits = unlimited()
    limits.hosts = frozenset({"*"})
    stranger = TestClient(create_app(service, limits=limits), base_url="http://elsewhere.example")
    assert mailed(stranger, box, study, "ann@example.org").startswith(HERE)


def test_studies_need_a_server_where_voters_can_sign_in(tmp_path, operator, monkeypatch):
    for access, variable in (("openid", "FAIRDUEL_OIDC"), ("email", "FAIRDUEL_SMTP")):
        made = operator.post("/api/studies", json=STUDY | {"access": access})
        assert made.status_code == 201
        monkeypatch.delenv(variable, raising=False)
    plain = Service(tmp_path / "plain")
    try:
        plain.offer(SignIn.configured(HERE))
        key = plain.ledger.run(team.ensure_operator)
        client = TestClient(create_app(plain), base_url="http://localhost", headers={"Authorization": f"Bearer {key}"})
        refused = client.post("/api/studies", json=STUDY | {"access": "email"})
        assert refused.status_code == 422
        assert "FAIRDUEL_SMTP" in refused.json()["detail"]
        study = new_study(client)
        for body in ({}, {"email": "ann@example.org"}):
            assert begin(client, study, **body).json()["code"] == "no-sign-in"
    finally:
        plain.close()
    monkeypatch.setenv("FAIRDUEL_OIDC", f"https://{CREDENTIALS}@accounts.example.org")
    assert SignIn.configured(HERE).kinds == {"openid"}
    with pytest.raises(BadInputError, match="host-name"):
        SignIn.configured("http://*:8000/")
    monkeypatch.setattr("fairduel.service.sign_in.find_spec", lambda _: None)
    with pytest.raises(BadInputError, match="extra signin"):
        SignIn.configured(HERE)


def test_addresses_of_one_mailbox_are_one_account():
    assert canonical_email("a.n.n+x@googlemail.com") == canonical_email("Ann@gmail.com")
    assert canonical_email("a.nn@example.org") != canonical_email("ann@example.org")
