// The page: who answers, how it is, and the view that the address names.
import type { JSX } from "preact";
import { render } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Actions } from "./action";
import type { List, Status, Worker } from "./api";
import { Events } from "./events";
import { duration, plural } from "./format";
import { type Answer, useEvents, usePoll, useStatus } from "./live";
import { Overview } from "./overview";
import { clusters } from "./picture";
import { Missing, troubled } from "./parts";
import { type Place, usePlace } from "./place";
import "./style.css";
import { Topic } from "./topic";
import { Topics } from "./topics";
import { now } from "./api";
import { Workers } from "./workers";

const views: [string, string][] = [
  ["", "Overview"],
  ["topics", "Topics"],
  ["events", "Events"],
  ["workers", "Workers"],
];

function Page(): JSX.Element {
  const place = usePlace();
  const { data: status, fault, since } = useStatus();
  const view = place.path[0] ?? "";
  const title = place.path[1] ?? views.find(([path]) => path === view)?.[1] ?? "Nothing here";
  const heading = useRef<HTMLHeadingElement>(null);
  const first = useRef(true);
  const [source, target] = status ? clusters(status.route.name) : ["", ""];
  useEffect(() => {
    document.title = `${title} · ${status ? `${source} → ${target} · ` : ""}Causeway`;
  }, [title, source, target]);
  useEffect(() => {
    if (!first.current) heading.current?.focus(); // who does not see is told where the link led
    first.current = false;
  }, [title]);
  return (
    <>
      <a class="skip" href="#main" onClick={(e) => (e.preventDefault(), heading.current?.focus())}>
        To the content
      </a>
      <header class="top">
        <strong class="brand">Causeway</strong>
        {status && (
          <span class="route" title={status.route.name}>
            {source} → {target}
          </span>
        )}
        <nav aria-label="Views">
          {views.map(([path, name]) => (
            <a key={path} href={"#/" + path} aria-current={view === path ? "page" : undefined}>
              {name}
            </a>
          ))}
        </nav>
      </header>
      <main id="main">
        <Verdict status={status} silent={fault ? `${fault.message}; the last answer came ${duration((now() - since) / 1000)} ago` : ""} />
        <h1 ref={heading} tabIndex={-1} class={place.path.length > 1 ? undefined : "unseen"}>
          {title}
        </h1>
        {status ? <View status={status} place={place} /> : <Missing fault={undefined} />}
      </main>
      <footer>
        <a href="../api/v1/openapi.yaml">API</a> <a href="../metrics">Metrics</a> <a href="../readyz">Readiness</a> <a href="licenses.txt">Licences of what this page uses</a>
        {status && (
          <span>
            {status.role} {status.version}
          </span>
        )}
      </footer>
      <Actions />
    </>
  );
}

/** The one line that says whether all is well. It stands on every view. */
function Verdict({ status, silent }: { status: Status | undefined; silent: string }): JSX.Element {
  const [kind, text] = silent ? ["bad", "No answer: " + silent + "."] : status ? judge(status) : ["soon", "Asking …"];
  return (
    <div class={"verdict " + kind} role="status">
      <span aria-hidden="true">{{ good: "✓", bad: "✕", soon: "…", odd: "!" }[kind]}</span> {text}
      {status && status.leader_address !== "" && (
        <>
          {" "}
          <a href={status.leader_address + "/ui/" + location.hash}>To the leader's page</a>
        </>
      )}
    </div>
  );
}

function judge(s: Status): [string, string] {
  const { route } = s;
  const total = Object.values(route.partitions).reduce((a, b) => a + b, 0);
  const because = route.reason ? ": " + route.reason : "";
  if (s.role === "controller" && s.leader === "") return ["bad", "No controller leads: nothing is moved or changed until one does."];
  if (s.leader_address !== "") return ["odd", `This controller stands by; ${s.leader} leads. Totals and events are there, and only it changes anything.`];
  if (route.state === "halted" || route.state === "degraded" || route.state === "stopped" || route.state === "suspended") return ["bad", `The route is ${route.state}${because}.`];
  const wrong = troubled.filter((t) => route.partitions[t]).map((t) => `${route.partitions[t]} ${t}`);
  if (wrong.length > 0) return [route.partitions.halted ? "bad" : "odd", `Of ${plural(total, "partition")}: ${wrong.join(", ")}.`];
  if (route.state !== "mirroring") return ["soon", `The route is ${route.state}${because}.`];
  const paused = route.partitions.paused ?? 0;
  if (paused > 0) return ["odd", `${plural(paused, "partition")} of ${total} paused by an operator; nothing else is wrong.`];
  return ["good", `All is well: ${plural(total, "partition")}.`];
}

function View({ status, place }: { status: Status; place: Place }): JSX.Element {
  const workers = useWorkers(status);
  const events = useEvents();
  const [view = "", name] = place.path;
  if (view === "") return <Overview status={status} events={events} workers={workers.data ?? []} />;
  if (view === "topics" && name !== undefined) return <Topic key={name} name={name} status={status} workers={workers.data ?? []} place={place} />;
  if (view === "topics") return <Topics status={status} place={place} />;
  if (view === "events") return <Events events={events} place={place} />;
  if (view === "workers") return <Workers status={status} workers={workers} events={events} />;
  return <p>There is no such view.</p>;
}

/** The workers of the cluster; where there is none, the process itself. */
function useWorkers(status: Status): Answer<Worker[]> {
  const { data, fault } = usePoll<List<Worker>>(status.role === "controller" ? "workers?limit=1000" : null);
  if (status.role === "controller") return { data: data?.items, fault };
  const { route, leader } = status;
  const partitions = Object.values(route.partitions).reduce((a, b) => a + b, 0);
  const itself: Worker = { id: leader, state: "active", partitions, records_per_second: route.records_per_second, bytes_per_second: route.bytes_per_second };
  return { data: [itself], fault: undefined };
}

render(<Page />, document.getElementById("app")!);
