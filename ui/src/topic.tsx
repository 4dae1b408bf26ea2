// One topic and its partitions.
import type { JSX } from "preact";
import { Act } from "./action";
import type { List, Partition, Status, Topic as TopicAnswer, Worker } from "./api";
import { Chart } from "./chart";
import * as deeds from "./deeds";
import { behind, bytesPerSecond, count, duration, exact, perSecond, records } from "./format";
import { usePoll } from "./live";
import { Badge, Figure, Missing, Pager, Panel, StateBar } from "./parts";
import { Header } from "./topics";
import { type Place, setQuery } from "./place";

const size = 100;

const columns: [string, string?][] = [
  ["Partition", "topic"],
  ["State", "state"],
  ["Lag", "-lag_records"],
  ["Behind", "-lag_seconds"],
  ["Records", "-records_per_second"],
  ["Acked / end of source"],
  ["Worker"],
  ["Actions"],
];

export function Topic({ name, status, workers, place }: { name: string; status: Status; workers: Worker[]; place: Place }): JSX.Element {
  const can = deeds.powers(status);
  const sort = place.query.get("sort") ?? "";
  const pages = (place.query.get("after") ?? "").split("\n").filter(Boolean);
  const ask = new URLSearchParams({ topic: name, limit: String(size), sort, after: pages.at(-1) ?? "" });
  const { data, fault } = usePoll<List<Partition>>("partitions?" + ask.toString());
  const { data: topic, fault: unknown } = usePoll<List<TopicAnswer>>("topics?topic=" + encodeURIComponent(name));
  const totals = topic?.items[0];
  if (topic && !totals) return <Missing fault={unknown} empty={`Topic “${name}” is not mirrored here.`} />;
  return (
    <>
      <Panel title="Topic" id="topic" aside={<TopicActions name={name} can={can} />}>
        {totals ? <Totals of={totals} /> : <Missing fault={unknown} />}
      </Panel>
      <Panel title="Lag" id="lag">
        <Chart key={name} metric="lag_records" topic={name} name="records behind" format={count} />
      </Panel>
      <Panel title="Partitions" id="partitions">
        {fault && data && <Missing fault={fault} />}
        {data ? (
          <div class="scroll">
            <table class="wide">
              <thead>
                <tr>
                  {columns.map(([title, key]) =>
                    title === "Actions" && !can.topics ? null : (
                      <Header key={title} name={title} sorts={key} sort={sort} onSort={(to) => setQuery(place, { sort: to, after: "" })} />
                    ),
                  )}
                </tr>
              </thead>
              <tbody>
                {data.items.map((p) => (
                  <Row key={p.partition} of={p} can={can} workers={workers} />
                ))}
              </tbody>
            </table>
          </div>
        ) : (
          <Missing fault={fault} />
        )}
        <Pager
          back={pages.length > 0}
          next={Boolean(data?.next)}
          onBack={() => setQuery(place, { after: pages.slice(0, -1).join("\n") })}
          onNext={() => setQuery(place, { after: [...pages, data!.next].join("\n") })}
        />
      </Panel>
    </>
  );
}

function TopicActions({ name, can }: { name: string; can: deeds.Powers }): JSX.Element | null {
  if (!can.topics) return null;
  return (
    <span class="buttons">
      <Act label="Pause" of={name} action={() => deeds.pauseTopic(name)} />
      <Act label="Resume" of={name} action={() => deeds.resumeTopic(name)} />
      {can.fleet && <Act label="Remove" of={name} action={() => deeds.removeTopic(name)} />}
    </span>
  );
}

function Totals({ of: t }: { of: TopicAnswer }): JSX.Element {
  return (
    <>
      <dl class="figures">
        <Figure name="Lag" value={records(t.lag_records)} note={t.lag_seconds > 0 ? `for ${duration(t.lag_seconds)}` : undefined} />
        <Figure name="Records" value={perSecond(t.records_per_second)} />
        <Figure name="Bytes" value={bytesPerSecond(t.bytes_per_second)} />
        <Figure name="On the target" value={t.target_topic || "not known here"} />
      </dl>
      <StateBar of={t.states} />
    </>
  );
}

function Row({ of: p, can, workers }: { of: Partition; can: deeds.Powers; workers: Worker[] }): JSX.Element {
  const trouble = [...new Set([p.reason, p.last_error])].filter(Boolean).join("; last error: ");
  return (
    <tr>
      <th scope="row">
        {p.partition}
        {p.target_partition !== p.partition && <small>→ {p.target_partition}</small>}
      </th>
      <td data-label="State" class="whole">
        <Badge state={p.state} />
        {trouble && <small class="why">{trouble}</small>}
      </td>
      <td data-label="Lag" class="number" title={exact(p.lag_records)}>
        {count(p.lag_records)}
      </td>
      <td data-label="Behind" class="number">
        {behind(p.lag_records, p.lag_seconds)}
      </td>
      <td data-label="Records" class="number">
        {perSecond(p.records_per_second)}
      </td>
      <td data-label="Acked / end" class="number whole">
        {exact(p.acked)} / {exact(p.source_end)}
      </td>
      <td data-label="Worker" class="number">{p.worker || "–"}</td>
      {can.topics && (
        <td class="whole">
          <Menu of={p} can={can} workers={workers} />
        </td>
      )}
    </tr>
  );
}

/** What can be done to a partition, behind a summary: a hundred rows of buttons would hide the figures. */
function Menu({ of: p, can, workers }: { of: Partition; can: deeds.Powers; workers: Worker[] }): JSX.Element {
  const name = `${p.topic}-${p.partition}`;
  const ready = workers.filter((w) => w.state === "active" || w.state === "standby").map((w) => w.id);
  return (
    <details class="menu">
      <summary aria-label={`Actions of partition ${p.partition}`}>Do …</summary>
      <span class="buttons">
        {p.state === "paused" ? (
          <Act label="Resume" of={name} action={() => deeds.resumePartition(p)} />
        ) : (
          <Act label="Pause" of={name} action={() => deeds.pausePartition(p)} />
        )}
        {p.state === "halted" && <Act label="Retry" of={name} action={() => deeds.retryPartition(p)} />}
        <Act label="Reset" of={name} action={() => deeds.resetPartition(p)} />
        {can.fleet && <Act label="Move" of={name} action={() => deeds.movePartition(p, ready)} />}
      </span>
    </details>
  );
}
