// JSON Patch (RFC 6902) on plain values, without changing them in place.

/** The value after the patch. A patch that does not fit leaves the value as it was: all of it counts, or nothing. */
export function patched(value, operations) {
  try {
    return operations.reduce(apply, value);
  } catch {
    return value;
  }
}

function apply(root, { op, path, from, value }) {
  switch (op) {
    case "add":
      return put(root, tokens(path), value, true);
    case "replace":
      read(root, tokens(path));
      return put(root, tokens(path), value, false);
    case "remove":
      return remove(root, tokens(path));
    case "move":
      return put(remove(root, tokens(from)), tokens(path), read(root, tokens(from)), true);
    case "copy":
      return put(root, tokens(path), read(root, tokens(from)), true);
    case "test":
      if (!isEqual(read(root, tokens(path)), value)) throw new Error("the test failed");
      return root;
    default:
      throw new Error(`there is no operation ${op}`);
  }
}

/** RFC 6901: `~1` is a slash, `~0` a tilde. */
function tokens(pointer) {
  if (pointer === "") return [];
  if (!pointer.startsWith("/")) throw new Error("a pointer begins with a slash");
  return pointer
    .slice(1)
    .split("/")
    .map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function read(node, [token, ...rest]) {
  return token === undefined ? node : read(child(node, token), rest);
}

function child(node, token) {
  if (!Object.hasOwn(Object(node), token) || typeof node === "string") throw new Error(`there is no ${token}`);
  return node[token];
}

function put(node, [token, ...rest], value, inserts) {
  if (token === undefined) return value;
  const next = rest.length > 0 ? put(child(node, token), rest, value, inserts) : value;
  if (!Array.isArray(node)) return withMember(container(node), token, next);
  if (rest.length > 0 || !inserts) {
    const replaced = index(token, node.length - 1);
    return node.map((element, place) => (place === replaced ? next : element));
  }
  const place = token === "-" ? node.length : index(token, node.length);
  return [...node.slice(0, place), next, ...node.slice(place)];
}

function remove(node, [token, ...rest]) {
  if (token === undefined) return null;
  const below = child(node, token);
  if (rest.length > 0) return put(node, [token], remove(below, rest), false);
  if (Array.isArray(node)) return node.filter((_, place) => place !== index(token, node.length - 1));
  return Object.fromEntries(Object.entries(node).filter(([key]) => key !== token));
}

/** Entries, not assignment: a member may be called `__proto__`. */
function withMember(node, token, value) {
  return Object.fromEntries([...Object.entries(node).filter(([key]) => key !== token), [token, value]]);
}

function container(node) {
  if (typeof node !== "object" || node === null) throw new Error("only objects and arrays have members");
  return node;
}

function index(token, last) {
  const place = Number(token);
  if (!/^(0|[1-9]\d*)$/.test(token) || place > last) throw new Error(`there is no place ${token}`);
  return place;
}

function isEqual(left, right) {
  if (left === right) return true;
  if (typeof left !== "object" || typeof right !== "object" || left === null || right === null) return false;
  if (Array.isArray(left) !== Array.isArray(right)) return false;
  const keys = Object.keys(left);
  return keys.length === Object.keys(right).length && keys.every((key) => Object.hasOwn(right, key) && isEqual(left[key], right[key]));
}
