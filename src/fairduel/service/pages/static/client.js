// Calls to the server, shared by all pages.

/** Where the service is: the pages may sit under a subpath. */
export const root = new URL("..", import.meta.url);

export class Problem extends Error {
  constructor(status, body, wait) {
    super(body.detail ?? "Something went wrong.");
    Object.assign(this, { status, code: body.code ?? "", errors: body.errors ?? [], wait });
  }
}

/** Call the API and return the reply's JSON; throw a Problem that the server explained, or a TypeError if unreachable. */
export async function call(method, path, body, headers = {}) {
  const json = body !== undefined && !(body instanceof Blob);
  if (json) headers = { ...headers, "Content-Type": "application/json" };
  const reply = await fetch(new URL("api/" + path, root), {
    method, headers, body: json ? JSON.stringify(body) : body, credentials: "same-origin",
  });
  const text = await reply.text();
  let content = {};
  try { content = text ? JSON.parse(text) : {}; } catch { /* a proxy's error page */ }
  if (!reply.ok) throw new Problem(reply.status, content, Number(reply.headers.get("Retry-After")) || 1);
  return content;
}

/** Log in with the key after "#", if there is one, and remove it from the address. */
export async function login() {
  const key = location.hash.slice(1);
  if (!key) return;
  history.replaceState(null, "", location.pathname + location.search);
  await call("POST", "session", { key });
}

export const byId = (id) => document.getElementById(id);
export const pause = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));

/** Make an element: attributes as given, children as text or elements; text is never read as HTML. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

/** A random name that nobody else chooses; crypto.randomUUID needs https. */
export const randomName = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
