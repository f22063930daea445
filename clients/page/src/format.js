// Numbers and times as people read them.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

/** Bytes, with three digits at most. */
export function bytes(count) {
  let unit = 0;
  let value = count;
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit > 0 && value < 10 ? value.toFixed(1) : Math.round(value)} ${UNITS[unit]}`;
}

/** A count, its thousands apart. */
export function count(value) {
  return Math.round(value).toLocaleString("en");
}

/** A rate per second: small ones with a decimal. */
export function rate(value) {
  return value > 0 && value < 10 ? value.toFixed(1) : count(value);
}

/** A duration in its two largest units. */
export function duration(ms) {
  const seconds = Math.floor(ms / 1000);
  const parts = [
    [Math.floor(seconds / 86_400), "d"],
    [Math.floor(seconds / 3600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "min"],
    [seconds % 60, "s"],
  ];
  const first = parts.findIndex(([value]) => value > 0);
  const shown = first === -1 ? parts.slice(-1) : parts.slice(first, first + 2);
  return shown.map(([value, unit]) => `${value} ${unit}`).join(" ");
}

/** A moment: the time of a day that is today, else the day. */
export function moment(ms, now = new Date()) {
  const date = new Date(ms);
  const today = date.toDateString() === now.toDateString();
  return today
    ? date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })
    : date.toLocaleDateString([], { day: "numeric", month: "short", year: "numeric" });
}

/** JSON as text for people, or the text itself if it is none. */
export function pretty(value) {
  if (typeof value !== "string") return JSON.stringify(value, null, 2) ?? "";
  try {
    return JSON.stringify(JSON.parse(value), null, 2);
  } catch {
    return value;
  }
}
