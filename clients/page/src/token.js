// The token that the page sends. It comes in the address behind '#token=', which browsers don't send to servers, and stays
// in this tab: it survives a reload, and no other tab has it.

const KEY = "rejoin-token";

/** The headers of every request. */
export function tokenHeaders() {
  const given = /^#token=(.+)$/.exec(location.hash)?.[1];
  if (given !== undefined) {
    keep(decodeURIComponent(given));
    // It must not stay in the history, nor in what somebody copies out of the address bar.
    history.replaceState(null, "", location.pathname + location.search);
  }
  const token = given === undefined ? kept() : decodeURIComponent(given);
  return token ? { Authorization: `Bearer ${token}` } : {};
}

/** A browser may forbid even to look: then the token is good for this page only. */
function kept() {
  try {
    return sessionStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function keep(token) {
  try {
    sessionStorage.setItem(KEY, token);
  } catch {
    // See above.
  }
}
