// What happened, newest first, as it happens.
import type { JSX } from "preact";
import type { Happening } from "./api";
import { plural } from "./format";
import type { Answer } from "./live";
import { EventLine, Missing, Panel } from "./parts";
import { type Place, setQuery } from "./place";

const shown = 200;
const ranks = ["info", "warning", "error"];

export function Events({ events, place }: { events: Answer<Happening[]>; place: Place }): JSX.Element {
  const filter = place.query.get("filter") ?? "";
  const least = place.query.get("severity") ?? "info";
  const text = filter.toLowerCase();
  const all = events.data ?? [];
  const found = all.filter(
    (e) => ranks.indexOf(e.severity) >= ranks.indexOf(least) && `${e.type} ${e.topic ?? ""} ${e.worker ?? ""} ${e.message} ${e.reason ?? ""}`.toLowerCase().includes(text),
  );
  return (
    <Panel title="Events" id="events">
      <div class="filter">
        <label>
          Filter <input type="search" value={filter} placeholder="type, topic, text" onInput={(e) => setQuery(place, { filter: e.currentTarget.value }, true)} />
        </label>
        <label>
          Severity{" "}
          <select value={least} onChange={(e) => setQuery(place, { severity: e.currentTarget.value === "info" ? "" : e.currentTarget.value }, true)}>
            <option value="info">all</option>
            <option value="warning">warnings and errors</option>
            <option value="error">errors</option>
          </select>
        </label>
        {events.data && <span class="quiet">{found.length > shown ? `the newest ${shown} of ` : ""}{plural(found.length, "event")}</span>}
      </div>
      {events.fault && <p class="fault">New events are missed at the moment: {events.fault.message}. It is tried again.</p>}
      {found.length > 0 ? (
        <ul class="events" aria-live="off">
          {found.slice(0, shown).map((e) => (
            <EventLine key={e.id} of={e} />
          ))}
        </ul>
      ) : (
        <Missing fault={undefined} empty={events.data && (all.length > 0 ? "None of the newest is like that." : "None since this process started.")} />
      )}
    </Panel>
  );
}
