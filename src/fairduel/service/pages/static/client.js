// Calls to the server, shared by all pages.

/** Where the service is: the pages may sit under a subpath. */
export const root = new URL("..", import.meta.url);

/** The address of a file that the API serves. */
export const fileUrl = (path) => new URL(`api/${path}`, root).href;

export class Problem extends Error {
  constructor(status, body, wait) {
    super(body.detail ?? "Something went wrong.");
    Object.assign(this, { status, code: body.code ?? "", errors: body.errors ?? [], wait });
  }
}

/** Call the API and return the reply's JSON; throw a Problem if the server refuses, or a TypeError if unreachable. */
export async function call(method, path, body, headers = {}) {
  const json = body !== undefined && !(body instanceof Blob);
  if (json) headers = { ...headers, "Content-Type": "application/json" };
  const reply = await fetch(new URL("api/" + path, root), {
    method,
    headers,
    // oxlint-disable-next-line unicorn/no-invalid-fetch-options -- undefined in a GET
    body: json ? JSON.stringify(body) : body,
    credentials: "same-origin",
  });
  const text = await reply.text();
  let content = {};
  try {
    content = text ? JSON.parse(text) : {};
  } catch {
    /* a proxy's error page */
  }
  if (!reply.ok) throw new Problem(reply.status, content, Number(reply.headers.get("Retry-After")) || 1);
  return content;
}

/**
 * Log in with the key after "#", if there is one, and remove it from the address once the server has said what it
 * thinks of it; `more` goes with it.
 */
export async function login(more = {}) {
  const key = location.hash.slice(1);
  if (!key) return;
  const forget = () => history.replaceState(null, "", location.pathname + location.search);
  try {
    await call("POST", "session", { key, ...more });
  } catch (error) {
    if (error.status < 500 && error.status !== 429) forget();
    throw error;
  }
  forget();
}

export const pause = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));

/** A random name that nobody else chooses; crypto.randomUUID needs https. */
export const randomName = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
