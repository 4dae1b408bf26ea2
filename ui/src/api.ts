// The API as this page asks it. Paths are relative to /ui/, so that a proxy may put the whole below a prefix.

export type State = "starting" | "mirroring" | "paused" | "suspended" | "draining" | "halted" | "degraded" | "stopped" | "unassigned";

export interface Status {
  role: "standalone" | "worker" | "controller";
  version: string;
  leader: string;
  leader_address: string; // where another process answers for the route
  route: Route;
  workers: number;
  uptime_seconds: number;
}

export interface Route {
  name: string;
  state: State | "standby"; // the latter on a controller that another one leads
  reason: string;
  partitions: Partial<Record<State, number>>;
  lag_records: number;
  records_per_second: number;
  bytes_per_second: number;
}

export interface Topic {
  topic: string;
  target_topic: string;
  partition_count: number;
  states: Partial<Record<State, number>>;
  lag_records: number;
  lag_seconds: number;
  records_per_second: number;
  bytes_per_second: number;
  trend?: (number | null)[]; // oldest first
}

export interface Partition {
  topic: string;
  partition: number;
  target_topic: string;
  target_partition: number;
  worker: string;
  state: State;
  reason: string;
  source_start: number;
  source_end: number;
  position: number;
  acked: number;
  committed: number;
  target_end: number;
  lag_records: number; // -1: not known
  lag_seconds: number;
  records_per_second: number;
  bytes_per_second: number;
  path: string;
  last_error: string;
}

export interface Happening {
  id: number;
  time: string;
  type: string;
  severity: "info" | "warning" | "error";
  topic?: string;
  partition?: number;
  worker?: string;
  message: string;
  first_offset?: number;
  last_offset?: number;
  reason?: string;
}

export interface Worker {
  id: string;
  state: "active" | "standby" | "draining" | "silent" | "gone";
  partitions: number;
  records_per_second: number;
  bytes_per_second: number;
}

export interface List<T> {
  items: T[];
  next: string;
}

export interface History {
  items: { time: string; value: number }[];
}

/** An answer that is an error: what the server says, or why there was no answer (status 0). */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

let skew = 0; // milliseconds from this machine's clock to the server's

/** The server's time in milliseconds; small differences are none. */
export const now = (): number => Date.now() + skew;

const patience = 15_000;

async function call(method: string, path: string, init: RequestInit, wait = 0): Promise<Response> {
  let answer: Response;
  const limits = [AbortSignal.timeout(patience + wait)];
  if (init.signal) limits.push(init.signal);
  try {
    answer = await fetch("../api/v1/" + path, { ...init, method, cache: "no-store", signal: AbortSignal.any(limits) });
  } catch (err) {
    throw new Refusal(0, err instanceof DOMException && err.name === "TimeoutError" ? "no answer in time" : "the process can't be reached");
  }
  const told = Date.parse(answer.headers.get("Date") ?? "");
  if (!Number.isNaN(told)) skew = Math.abs(told - Date.now()) > 3000 ? told - Date.now() : 0;
  if (answer.ok) return answer;
  let message = `${answer.status} ${answer.statusText}`;
  try {
    message = ((await answer.json()) as { message: string }).message;
  } catch {
    // A proxy's answer need not be JSON.
  }
  throw new Refusal(answer.status, message);
}

/** Reads; `wait` is how long in milliseconds the server may keep the answer back by what was asked. */
export async function read<T>(path: string, signal?: AbortSignal, wait = 0): Promise<T> {
  const answer = await call("GET", path, { signal: signal ?? null }, wait);
  return (await answer.json()) as T;
}

/** Changes something. The token goes along if there is one. */
export async function write(method: string, path: string, body: unknown, token: string): Promise<void> {
  const headers: Record<string, string> = {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (token !== "") headers["Authorization"] = "Bearer " + token;
  await call(method, path, { headers, redirect: "error", ...(body !== undefined && { body: JSON.stringify(body) }) });
}

export const partitionPath = (p: Partition): string => `topics/${encodeURIComponent(p.topic)}/partitions/${p.partition}`;
export const topicPath = (topic: string): string => `topics/${encodeURIComponent(topic)}`;
