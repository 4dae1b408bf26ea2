// The route as a picture: the source, the workers, the target, and what flows between them.
import type { JSX } from "preact";
import { type Status, type Worker } from "./api";
import { bytesPerSecond, count, perSecond, plural, records } from "./format";
import { Badge } from "./parts";

const most = 6; // workers in the picture

/** The names of a route's clusters; it is written @source@target@id. */
export function clusters(name: string): [string, string] {
  const [, source = "source", target = "target"] = name.split("@");
  return [source, target];
}

export function Picture({ status, workers }: { status: Status; workers: Worker[] }): JSX.Element {
  const { route } = status;
  const [source, target] = clusters(route.name);
  const live = workers.filter((w) => w.state !== "gone");
  const flow = `${perSecond(route.records_per_second)}, ${bytesPerSecond(route.bytes_per_second)}`;
  return (
    <div class="picture">
      <div class="cluster">
        <small>source</small>
        <strong>{source}</strong>
        <span>{plural(Object.values(route.partitions).reduce((a, b) => a + b, 0), "partition")}</span>
      </div>
      <Arrow rate={route.bytes_per_second} text={bytesPerSecond(route.bytes_per_second)} says={`from ${source} to the workers: ${flow}`} />
      <ul class="crew" aria-label="Workers">
        {live.slice(0, most).map((w) => (
          <li key={w.id} class={w.state}>
            <strong>{w.id}</strong>
            {w.state !== "active" && <Badge state={w.state} />}
            <span>
              {plural(w.partitions, "partition")} · {perSecond(w.records_per_second)}
            </span>
          </li>
        ))}
        {live.length > most && (
          <li>
            <a href="#/workers">and {count(live.length - most)} more</a>
          </li>
        )}
        {live.length === 0 && <li class="gone">no worker</li>}
      </ul>
      <Arrow rate={route.bytes_per_second} text={perSecond(route.records_per_second)} says={`from the workers to ${target}: ${flow}`} />
      <div class="cluster">
        <small>target</small>
        <strong>{target}</strong>
        <span>{lacks(route.lag_records)}</span>
      </div>
    </div>
  );
}

function lacks(lag: number): string {
  if (lag < 0) return "lag unknown";
  return lag === 0 ? "has everything" : "lacks " + records(lag);
}

function Arrow({ rate, text, says }: { rate: number; text: string; says: string }): JSX.Element {
  return (
    <div class={rate > 0 ? "arrow flows" : "arrow"} role="img" aria-label={says}>
      <span>{text}</span>
      <i />
    </div>
  );
}
