// All topics: a page of them at a time, sorted and filtered by the server, so that thousands are as quick as ten.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Act } from "./action";
import type { List, Status, Topic } from "./api";
import { addTopic, powers } from "./deeds";
import { behind, bytesPerSecond, count, exact, perSecond } from "./format";
import { usePoll } from "./live";
import { Missing, Pager, Panel, Spark, StateCounts, states } from "./parts";
import { type Place, setQuery } from "./place";

const size = 50;

/** Headers of columns; those with a key can be sorted by. */
const columns: [string, string?][] = [
  ["Topic", "topic"],
  ["Partitions"],
  ["Lag", "-lag_records"],
  ["15 min"],
  ["Behind", "-lag_seconds"],
  ["Records", "-records_per_second"],
  ["Bytes", "-bytes_per_second"],
];

export function Topics({ status, place }: { status: Status; place: Place }): JSX.Element {
  const filter = place.query.get("filter") ?? "";
  const sort = place.query.get("sort") ?? "";
  const pages = (place.query.get("after") ?? "").split("\n").filter(Boolean); // the cursors that led here
  const ask = new URLSearchParams({ limit: String(size), trend: "lag_records", filter, sort, after: pages.at(-1) ?? "" });
  const { data, fault } = usePoll<List<Topic>>("topics?" + ask.toString());
  return (
    <Panel title="Topics" id="topics" aside={powers(status).fleet && <Act label="Add a topic" action={addTopic} />}>
      <Filter place={place} value={filter} />
      {fault && data && <Missing fault={fault} />}
      {data && data.items.length > 0 ? (
        <Table place={place} sort={sort} topics={data.items} />
      ) : (
        <Missing fault={fault} empty={data && (filter ? "No topic has this in its name or a partition in this state." : "Nothing is mirrored yet.")} />
      )}
      <Pager
        back={pages.length > 0}
        next={Boolean(data?.next)}
        onBack={() => setQuery(place, { after: pages.slice(0, -1).join("\n") })}
        onNext={() => setQuery(place, { after: [...pages, data!.next].join("\n") })}
      />
    </Panel>
  );
}

function Filter({ place, value }: { place: Place; value: string }): JSX.Element {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text === value) return;
    const typed = setTimeout(() => setQuery(place, { filter: text, after: "" }, true), 200);
    return () => clearTimeout(typed);
  }, [text]);
  const state = (states as string[]).includes(text) ? text : "";
  return (
    <div class="filter">
      <label>
        Filter <input type="search" value={text} placeholder="name or state" onInput={(e) => setText(e.currentTarget.value)} />
      </label>
      <label>
        State{" "}
        <select value={state} onChange={(e) => setText(e.currentTarget.value)}>
          <option value="">any</option>
          {states.map((s) => (
            <option key={s}>{s}</option>
          ))}
        </select>
      </label>
    </div>
  );
}

function Table({ place, sort, topics }: { place: Place; sort: string; topics: Topic[] }): JSX.Element {
  return (
    <div class="scroll">
      <table class="wide">
        <thead>
          <tr>
            {columns.map(([name, key]) => (
              <Header key={name} name={name} sorts={key} sort={sort} onSort={(to) => setQuery(place, { sort: to, after: "" })} />
            ))}
          </tr>
        </thead>
        <tbody>
          {topics.map((t) => (
            <tr key={t.topic}>
              <th scope="row">
                <a href={"#/topics/" + encodeURIComponent(t.topic)}>{t.topic}</a>
                {t.target_topic && t.target_topic !== t.topic && <small>→ {t.target_topic}</small>}
              </th>
              <td data-label="Partitions" class="whole">
                <StateCounts of={t.states} />
              </td>
              <td data-label="Lag" class="number" title={exact(t.lag_records)}>
                {count(t.lag_records)}
              </td>
              <td data-label="15 min">
                <Spark of={t.trend ?? []} />
              </td>
              <td data-label="Behind" class="number">
                {behind(t.lag_records, t.lag_seconds)}
              </td>
              <td data-label="Records" class="number">
                {perSecond(t.records_per_second)}
              </td>
              <td data-label="Bytes" class="number">
                {bytesPerSecond(t.bytes_per_second)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A column's header: a button if the list can be sorted by it, a second press turns the order around. */
export function Header(p: { name: string; sorts: string | undefined; sort: string; onSort: (to: string) => void }): JSX.Element {
  if (p.sorts === undefined) return <th scope="col">{p.name}</th>;
  const field = p.sorts.replace("-", "");
  const sorted = p.sort === "" ? (field === "topic" ? "ascending" : "none") : p.sort === field ? "ascending" : p.sort === "-" + field ? "descending" : "none";
  const turned = p.sort === p.sorts ? (p.sorts.startsWith("-") ? field : "-" + field) : p.sorts;
  return (
    <th scope="col" aria-sort={sorted}>
      <button type="button" onClick={() => p.onSort(turned)}>
        {p.name} <span aria-hidden="true">{sorted === "ascending" ? "▲" : sorted === "descending" ? "▼" : "↕"}</span>
      </button>
    </th>
  );
}
