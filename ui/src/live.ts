// What is asked again and again, for as long as somebody looks.
import { useEffect, useState } from "preact/hooks";
import { type Happening, type List, now, read, Refusal, type Status } from "./api";

export interface Answer<T> {
  data: T | undefined; // the newest, also when the last call failed
  fault: Refusal | undefined; // of the last call
}

const refreshers = new Set<() => void>();

/** Asks everything anew: something was changed. */
export function refresh(): void {
  for (const again of refreshers) again();
}

/** Runs `look` at once, `every` milliseconds after its end, and when the page is looked at again; not while it is hidden. */
function useLoop(look: (signal: AbortSignal) => Promise<void>, every: number, keys: unknown[]): void {
  useEffect(() => {
    const gone = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let running = false;
    const again = (): void => {
      clearTimeout(timer);
      if (running || gone.signal.aborted || document.hidden) return;
      running = true;
      void look(gone.signal).finally(() => {
        running = false;
        if (!gone.signal.aborted) timer = setTimeout(again, every);
      });
    };
    again();
    refreshers.add(again);
    document.addEventListener("visibilitychange", again);
    return () => {
      gone.abort();
      clearTimeout(timer);
      refreshers.delete(again);
      document.removeEventListener("visibilitychange", again);
    };
  }, keys);
}

/** The answer of a path, kept fresh; null asks nothing. */
export function usePoll<T>(path: string | null, every = 3000): Answer<T> {
  const [answer, setAnswer] = useState<Answer<T> & { path: string | null }>({ path, data: undefined, fault: undefined });
  useLoop(
    async (signal) => {
      if (path === null) return;
      try {
        const data = await read<T>(path, signal);
        setAnswer({ path, data, fault: undefined });
      } catch (err) {
        if (signal.aborted) return;
        const fault = err as Refusal;
        setAnswer((old) => ({ path, data: old.path === path ? old.data : undefined, fault }));
      }
    },
    every,
    [path, every],
  );
  return path === null ? { data: undefined, fault: undefined } : answer;
}

export interface Moment {
  at: number; // seconds
  lag: number;
  records: number;
  bytes: number;
}

const recent: Moment[] = []; // of the last minute and a half, finer than the server's history

/** What was seen of the route since this page was opened, at most a minute and a half. */
export const seen = (): readonly Moment[] => recent;

/** The status, every two seconds. */
export function useStatus(): Answer<Status> & { since: number } {
  const [answer, setAnswer] = useState<Answer<Status> & { since: number }>({ data: undefined, fault: undefined, since: now() });
  useLoop(
    async (signal) => {
      try {
        const data = await read<Status>("status", signal);
        const at = now() / 1000;
        const { lag_records: lag, records_per_second: records, bytes_per_second: bytes } = data.route;
        recent.push({ at, lag, records, bytes });
        while (recent.length > 0 && recent[0]!.at < at - 90) recent.shift();
        setAnswer({ data, fault: undefined, since: now() });
      } catch (err) {
        if (!signal.aborted) setAnswer((old) => ({ ...old, fault: err as Refusal }));
      }
    },
    2000,
    [],
  );
  return answer;
}

/** A stretch of time in which the page is looked at: a hidden one must not hold one of the few connections that a browser has to a host. */
function lookedAt(gone: AbortSignal): { begins: Promise<void>; signal: AbortSignal; end: () => void } {
  const over = new AbortController();
  let resolve = (): void => undefined;
  const begins = new Promise<void>((r) => (resolve = r));
  let begun = false;
  const look = (): void => {
    if (gone.aborted || (begun && document.hidden)) over.abort();
    if (document.hidden && !gone.aborted) return;
    begun = true;
    resolve();
  };
  const end = (): void => {
    document.removeEventListener("visibilitychange", look);
    gone.removeEventListener("abort", look);
  };
  document.addEventListener("visibilitychange", look);
  gone.addEventListener("abort", look);
  look();
  return { begins, signal: over.signal, end };
}

const kept = 1000; // events in the page's memory

/** Events, newest first, as they happen: the newest ones, then a call that waits for more. */
export function useEvents(): Answer<Happening[]> {
  const [answer, setAnswer] = useState<Answer<Happening[]>>({ data: undefined, fault: undefined });
  useEffect(() => {
    const gone = new AbortController();
    void (async () => {
      let newest = -1;
      while (!gone.signal.aborted) {
        const turn = lookedAt(gone.signal);
        try {
          await turn.begins;
          const path = newest < 0 ? "events?sort=-id&limit=500" : `events?since=${newest}&limit=500&wait=25s`;
          const { items } = await read<List<Happening>>(path, turn.signal, 25_000);
          if (newest >= 0) items.reverse();
          newest = Math.max(newest, 0, ...items.map((e) => e.id));
          setAnswer((old) => ({ data: [...items, ...(old.data ?? [])].slice(0, kept), fault: undefined }));
        } catch (err) {
          if (turn.signal.aborted) continue;
          setAnswer((old) => ({ ...old, fault: err as Refusal }));
          await new Promise((wake) => setTimeout(wake, 2000));
        } finally {
          turn.end();
        }
      }
    })();
    return () => gone.abort();
  }, []);
  return answer;
}
