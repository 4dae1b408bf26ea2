// Who copies what, who left whom, and why.
import type { JSX } from "preact";
import { Act } from "./action";
import type { Happening, Status, Worker } from "./api";
import { drainWorker, enableWorker, powers, rebalance } from "./deeds";
import { bytesPerSecond, count, perSecond } from "./format";
import type { Answer } from "./live";
import { Badge, EventLine, Missing, Panel } from "./parts";

const moves = new Set(["rebalance_started", "rebalance_finished", "worker_joined", "worker_lost", "leader_changed", "lease_lost", "drain_incomplete"]);
const shown = 50;

export function Workers({ status, workers, events }: { status: Status; workers: Answer<Worker[]>; events: Answer<Happening[]> }): JSX.Element {
  const can = powers(status).fleet;
  const happened = (events.data ?? []).filter((e) => moves.has(e.type)).slice(0, shown);
  const most = Math.max(1, ...(workers.data ?? []).map((w) => w.partitions));
  return (
    <>
      <Panel title="Workers" id="workers" aside={can && <Act label="Rebalance" action={rebalance} />}>
        {workers.data && workers.data.length > 0 ? (
          <div class="scroll">
            <table class="wide">
              <thead>
                <tr>
                  {["Worker", "State", "Partitions", "Records", "Bytes", ...(can ? ["Actions"] : [])].map((name) => (
                    <th key={name} scope="col">
                      {name}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {workers.data.map((w) => (
                  <tr key={w.id}>
                    <th scope="row">{w.id}</th>
                    <td data-label="State">
                      <Badge state={w.state} />
                    </td>
                    <td data-label="Partitions">
                      <meter min={0} max={most} value={w.partitions} aria-hidden="true" /> {count(w.partitions)}
                    </td>
                    <td data-label="Records" class="number">
                      {perSecond(w.records_per_second)}
                    </td>
                    <td data-label="Bytes" class="number">
                      {bytesPerSecond(w.bytes_per_second)}
                    </td>
                    {can && (
                      <td data-label="Actions">
                        {w.state === "draining" ? <Act label="Enable" of={w.id} action={() => enableWorker(w.id)} /> : <Act label="Drain" of={w.id} action={() => drainWorker(w.id)} />}
                      </td>
                    )}
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        ) : (
          <Missing fault={workers.fault} empty={workers.data && "No worker has joined this cluster yet."} />
        )}
        {status.role !== "controller" && (
          <p class="quiet">
            {status.role === "standalone" ? "One process copies everything." : "This is one worker of a cluster; its controller's page has the others, and what can be changed."}
          </p>
        )}
      </Panel>
      {status.role === "controller" && (
        <Panel title="Rebalances" id="rebalances">
          {happened.length > 0 ? (
            <ul class="events">
              {happened.map((e) => (
                <EventLine key={e.id} of={e} />
              ))}
            </ul>
          ) : (
            <Missing fault={events.fault} empty={events.data && "Nobody came, went or moved since this process started."} />
          )}
        </Panel>
      )}
    </>
  );
}
