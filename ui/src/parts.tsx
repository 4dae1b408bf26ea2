// The small parts that all views share.
import type { ComponentChildren, JSX } from "preact";
import type { Happening, Refusal, State } from "./api";
import { clock, count, plural } from "./format";
import { now } from "./api";

/** States in the order in which they worry. */
export const states: State[] = ["halted", "degraded", "unassigned", "suspended", "stopped", "starting", "draining", "paused", "mirroring"];

/** What needs somebody, or will soon. */
export const troubled: State[] = ["halted", "degraded", "unassigned", "suspended"];

const signs: Record<string, string> = {
  halted: "✕",
  error: "✕",
  gone: "✕",
  degraded: "!",
  warning: "!",
  suspended: "!",
  unassigned: "?",
  stopped: "■",
  starting: "…",
  draining: "↓",
  paused: "‖",
  standby: "–",
  mirroring: "✓",
  active: "✓",
  info: "·",
};

/** A state as sign and word: colour alone tells nobody anything. */
export function Badge({ state, n }: { state: string; n?: number | undefined }): JSX.Element {
  return (
    <span class={"badge " + state}>
      <span aria-hidden="true">{signs[state] ?? "·"}</span> {n !== undefined && count(n) + " "}
      {state}
    </span>
  );
}

export function StateCounts({ of }: { of: Partial<Record<State, number>> }): JSX.Element {
  return (
    <span class="badges">
      {states.map((s) => (of[s] ? <Badge key={s} state={s} n={of[s]} /> : null))}
    </span>
  );
}

/** Partitions by state: a bar, and the same in words. */
export function StateBar({ of }: { of: Partial<Record<State, number>> }): JSX.Element {
  const shown = states.filter((s) => of[s]);
  return (
    <div>
      <div class="bar" aria-hidden="true">
        {shown.map((s) => (
          <span key={s} class={"part " + s} style={{ flexGrow: of[s] }} />
        ))}
      </div>
      {shown.length > 0 ? <StateCounts of={of} /> : <p class="quiet">No partitions.</p>}
    </div>
  );
}

export function Figure({ name, value, note }: { name: string; value: string; note?: string | undefined }): JSX.Element {
  return (
    <div class="figure">
      <dt>{name}</dt>
      <dd>{value}</dd>
      {note !== undefined && <dd class="quiet">{note}</dd>}
    </div>
  );
}

export function Panel({ title, id, children, aside }: { title: string; id: string; children: ComponentChildren; aside?: ComponentChildren }): JSX.Element {
  return (
    <section class="panel" aria-labelledby={id}>
      <header>
        <h2 id={id}>{title}</h2>
        {aside}
      </header>
      {children}
    </section>
  );
}

/** What takes the place of something that is not there yet, or could not be had. */
export function Missing({ fault, empty }: { fault: Refusal | undefined; empty?: string | undefined }): JSX.Element {
  if (fault) return <p class="fault">{fault.message}</p>;
  return <p class="quiet">{empty ?? "Asking …"}</p>;
}

/** What stands below an event: its reason; of a rebalance a line for each kind of move, who gave what to whom and why. */
function reasons(e: Happening): string[] {
  if (!e.reason) return [];
  return e.type === "rebalance_started" ? e.reason.split("; ") : [e.reason];
}

/** One event as a line of a list. */
export function EventLine({ of: e }: { of: Happening }): JSX.Element {
  return (
    <li class={"event " + e.severity}>
      <time dateTime={e.time}>{clock(e.time, new Date(now()))}</time>
      <Badge state={e.severity} />
      <span class="what">
        <code>{e.type}</code>{" "}
        {e.topic && (
          <a href={"#/topics/" + encodeURIComponent(e.topic)}>
            {e.topic}
            {e.partition !== undefined && "-" + e.partition}
          </a>
        )}{" "}
        {e.message}
        {e.first_offset !== undefined && ` (offsets ${e.first_offset} to ${e.last_offset})`}
        {reasons(e).map((reason) => (
          <span key={reason} class="why">
            {reason}
          </span>
        ))}
      </span>
    </li>
  );
}

/** A sparkline of numbers, oldest first; null where there is none. */
export function Spark({ of }: { of: (number | null)[] }): JSX.Element {
  const known = of.filter((v): v is number => v !== null);
  if (known.length < 2) return <span class="quiet">–</span>;
  const most = Math.max(...known);
  const [width, height] = [96, 22];
  let path = "";
  let pen = "M";
  of.forEach((v, i) => {
    if (v === null) {
      pen = "M";
      return;
    }
    path += `${pen}${((i / (of.length - 1)) * width).toFixed(1)} ${(height - 1 - (most > 0 ? v / most : 0) * (height - 3)).toFixed(1)}`;
    pen = "L";
  });
  return (
    <svg class="spark" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`up to ${plural(Math.round(most), "record")} behind in the last 15 minutes`}>
      <path d={path} />
    </svg>
  );
}

/** The pages of a list: back over the cursors that were used, forth by the answer's. */
export function Pager({ back, next, onBack, onNext }: { back: boolean; next: boolean; onBack: () => void; onNext: () => void }): JSX.Element | null {
  if (!back && !next) return null;
  return (
    <nav class="pager" aria-label="Pages">
      <button type="button" disabled={!back} onClick={onBack}>
        ← Back
      </button>
      <button type="button" disabled={!next} onClick={onNext}>
        More →
      </button>
    </nav>
  );
}
