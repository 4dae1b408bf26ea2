// What an operator sees first: is anything wrong, what, and since when.
import type { JSX } from "preact";
import { Act } from "./action";
import { type Happening, type List, type Partition, type Status, type Topic, type Worker } from "./api";
import { Chart } from "./chart";
import { powers, retryPartition } from "./deeds";
import { bytesPerSecond, count, duration, perSecond, records } from "./format";
import { type Answer, usePoll } from "./live";
import { Badge, EventLine, Figure, Missing, Panel, StateBar, troubled } from "./parts";
import { Picture } from "./picture";

export function Overview({ status, events, workers }: { status: Status; events: Answer<Happening[]>; workers: Worker[] }): JSX.Element {
  const { route } = status;
  return (
    <>
      <Trouble status={status} />
      <Panel title="Route" id="route">
        <Picture status={status} workers={workers} />
        <dl class="figures">
          <Figure name="Lag" value={records(route.lag_records)} />
          <Figure name="Records" value={perSecond(route.records_per_second)} />
          <Figure name="Bytes" value={bytesPerSecond(route.bytes_per_second)} note="as they go over the wire, compressed" />
          <Figure name="Up" value={duration(status.uptime_seconds)} note={`${status.role} ${status.version}`} />
        </dl>
      </Panel>
      <div class="columns">
        <Panel title="Lag" id="lag">
          <Chart metric="lag_records" name="records behind" format={count} live={(m) => m.lag} />
        </Panel>
        <Panel title="Throughput" id="throughput">
          <Chart metric="bytes_per_second" name="bytes" format={bytesPerSecond} live={(m) => m.bytes} />
        </Panel>
      </div>
      <div class="columns">
        <Panel title="Partitions" id="partitions">
          <StateBar of={route.partitions} />
          <Behind />
        </Panel>
        <Panel title="Recent events" id="recent" aside={<a href="#/events">All events</a>}>
          {events.data && events.data.length > 0 ? (
            <ul class="events">
              {events.data.slice(0, 8).map((e) => (
                <EventLine key={e.id} of={e} />
              ))}
            </ul>
          ) : (
            <Missing fault={events.fault} empty={events.data && "None since this process started."} />
          )}
        </Panel>
      </div>
    </>
  );
}

const shown = 10; // partitions of each kind of trouble

/** The partitions that need somebody, each with its reason. Nothing, if there are none. */
function Trouble({ status }: { status: Status }): JSX.Element | null {
  const kinds = troubled.filter((s) => status.route.partitions[s]);
  if (kinds.length === 0) return null;
  return (
    <Panel title="Needs attention" id="trouble">
      <ul class="trouble">
        {kinds.map((s) => (
          <Kind key={s} state={s} n={status.route.partitions[s] ?? 0} can={powers(status).topics} />
        ))}
      </ul>
    </Panel>
  );
}

function Kind({ state, n, can }: { state: (typeof troubled)[number]; n: number; can: boolean }): JSX.Element {
  // A filter finds names, too; in this order those in the state stand first.
  const order = state === "halted" || state === "degraded" ? "state" : "-state";
  const { data, fault } = usePoll<List<Partition>>(`partitions?filter=${state}&sort=${order}&limit=${shown}`);
  const found = data?.items.filter((p) => p.state === state) ?? [];
  return (
    <>
      {found.map((p) => (
        <li key={p.topic + "/" + p.partition}>
          <Badge state={state} />
          <a href={"#/topics/" + encodeURIComponent(p.topic)}>
            {p.topic}-{p.partition}
          </a>
          <span class="why">
            {p.reason || p.last_error || "no reason is known"}
            {p.lag_seconds > 0 && `; behind for ${duration(p.lag_seconds)}`}
            {p.worker && `; on ${p.worker}`}
          </span>
          {can && state === "halted" && <Act label="Retry" of={`${p.topic}-${p.partition}`} action={() => retryPartition(p)} />}
        </li>
      ))}
      {!data && (
        <li>
          <Missing fault={fault} />
        </li>
      )}
      {n > found.length && data && (
        <li>
          <a href={"#/topics?filter=" + state}>
            and {count(n - found.length)} more that {n - found.length === 1 ? "is" : "are"} {state}
          </a>
        </li>
      )}
    </>
  );
}

/** The topics that are furthest behind. */
function Behind(): JSX.Element {
  const { data, fault } = usePoll<List<Topic>>("topics?sort=-lag_seconds&limit=5");
  const late = data?.items.filter((t) => t.lag_seconds >= 1) ?? [];
  if (!data) return <Missing fault={fault} />;
  if (late.length === 0) return <p class="quiet">No topic is behind for a second or more.</p>;
  return (
    <>
      <h3>Furthest behind</h3>
      <ul class="behind">
        {late.map((t) => (
          <li key={t.topic}>
            <a href={"#/topics/" + encodeURIComponent(t.topic)}>{t.topic}</a>
            <span>
              {duration(t.lag_seconds)}, {records(t.lag_records)}
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}
