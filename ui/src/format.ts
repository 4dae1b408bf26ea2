// How numbers and times are written.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

function scaled(n: number, step: number, units: string[]): string {
  let i = 0;
  for (; Math.abs(n) >= step * 0.9995 && i < units.length - 1; i++) n /= step;
  return short.format(n) + units[i];
}

/** 9,999 · 12.3 k · 4.56 M; "unknown" below 0. */
export function count(n: number): string {
  if (n < 0) return "unknown";
  return n < 10_000 ? whole.format(n) : scaled(n, 1000, ["", " k", " M", " G", " T"]);
}

/** 1 record · 12.3 k records; "unknown" below 0. */
export const records = (n: number): string => (n < 0 ? "unknown" : `${count(n)} ${n === 1 ? "record" : "records"}`);

export const exact = (n: number): string => (n < 0 ? "unknown" : whole.format(n));
export const perSecond = (n: number): string => (n > 0 && n < 10 ? short.format(n) : count(n)) + " /s";
export const bytes = (n: number): string => scaled(n, 1000, [" B", " kB", " MB", " GB", " TB"]);
export const bytesPerSecond = (n: number): string => bytes(n) + "/s";

/** 0.4 s · 12 s · 3 min · 2 h 5 min · 4 d. */
export function duration(seconds: number): string {
  if (seconds < 1) return seconds <= 0 ? "0 s" : short.format(Math.round(seconds * 10) / 10) + " s";
  if (seconds < 120) return Math.round(seconds) + " s";
  if (seconds < 7200) return Math.floor(seconds / 60) + " min";
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return Math.floor(seconds / 86_400) + " d";
}

/** For how long something is behind; of a lag that is not known (-1) nobody can say that it is 0. */
export const behind = (lag: number, seconds: number): string => (lag < 0 && seconds === 0 ? "unknown" : duration(seconds));

const two = (n: number): string => String(n).padStart(2, "0");

/** The browser's time zone; with the date unless it is today's. */
export function clock(text: string, today: Date): string {
  const t = new Date(text);
  const time = `${two(t.getHours())}:${two(t.getMinutes())}:${two(t.getSeconds())}`;
  return t.toDateString() === today.toDateString() ? time : `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())} ${time}`;
}

export const minute = (seconds: number): string => {
  const t = new Date(seconds * 1000);
  return `${two(t.getHours())}:${two(t.getMinutes())}`;
};

export const plural = (n: number, one: string, many = one + "s"): string => `${whole.format(n)} ${n === 1 ? one : many}`;
