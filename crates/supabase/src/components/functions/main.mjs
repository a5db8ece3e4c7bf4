// What the edge runtime starts: looks at a request's token, and hands the request to the function that its path names.
// It needs nothing from the network.

const FOLDER = "/home/deno/functions";
const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]*$/;
const MEMORY_MB = 150;
const LIFE_MS = 60_000;

// Which signatures there are. A key is used for its own kind only, whatever a token says of itself.
const KINDS = {
  HS256: { name: "HMAC", hash: "SHA-256" },
  ES256: { name: "ECDSA", namedCurve: "P-256" },
};

const checks = Deno.env.get("VERIFY_JWT") === "true";
const keys = await Promise.all(JSON.parse(Deno.env.get("SUPABASE_JWKS")).keys.map(readKey));

async function readKey({ kty, alg, kid, k, crv, x, y }) {
  const jwk = kty === "oct" ? { kty, k } : { kty, crv, x, y };
  return { alg, kid, key: await crypto.subtle.importKey("jwk", jwk, KINDS[alg], false, ["verify"]) };
}

function bytes(text) {
  const plain = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (letter) => letter.charCodeAt(0));
}

function object(text) {
  return JSON.parse(new TextDecoder().decode(bytes(text)));
}

async function isGood(token) {
  const [head, body, signature, ...more] = token.split(".");
  if (!signature || more.length > 0) return false;
  const { alg, kid } = object(head);
  const { exp, nbf } = object(body);
  const now = Date.now() / 1000;
  if (!KINDS[alg] || (exp !== undefined && !(now < exp)) || (nbf !== undefined && !(now >= nbf))) return false;
  const signed = new TextEncoder().encode(`${head}.${body}`);
  // An id that nobody knows is somebody else's, and excludes no key.
  const isKnown = keys.some((known) => known.kid === kid);
  for (const known of keys) {
    if (known.alg !== alg || (isKnown && known.kid !== kid)) continue;
    const kind = { ...KINDS[alg], hash: "SHA-256" };
    if (await crypto.subtle.verify(kind, known.key, bytes(signature), signed)) return true;
  }
  return false;
}

function answer(status, message) {
  return new Response(JSON.stringify({ message, msg: message }), {
    status,
    headers: { "Content-Type": "application/json" },
  });
}

async function refusal(request) {
  const [scheme, token] = (request.headers.get("authorization") ?? "").split(" ");
  if (scheme !== "Bearer" || !token) return answer(401, "Missing authorization header");
  const good = await isGood(token).catch(() => false);
  return good ? null : answer(401, "Invalid JWT");
}

Deno.serve(async (request) => {
  const name = new URL(request.url).pathname.split("/")[1];
  if (name === "_internal") return answer(200, "ok");
  if (checks && request.method !== "OPTIONS") {
    const refused = await refusal(request);
    if (refused) return refused;
  }
  if (!NAME.test(name ?? "")) return answer(400, "missing function name in request");
  try {
    const worker = await EdgeRuntime.userWorkers.create({
      servicePath: `${FOLDER}/${name}`,
      memoryLimitMb: MEMORY_MB,
      workerTimeoutMs: LIFE_MS,
      noModuleCache: false,
      importMapPath: null,
      envVars: Object.entries(Deno.env.toObject()),
    });
    return await worker.fetch(request);
  } catch (error) {
    return answer(500, String(error));
  }
});
