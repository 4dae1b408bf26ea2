// A metric over time.
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { type History, now } from "./api";
import { minute } from "./format";
import { type Moment, seen, usePoll } from "./live";

interface Props {
  metric: "lag_records" | "lag_seconds" | "records_per_second" | "bytes_per_second";
  topic?: string;
  name: string;
  format: (n: number) => string;
  live?: (m: Moment) => number; // of the whole route: goes on where the server's samples end
}

const height = 150;
const span = 15 * 60;
const scale = Array.from({ length: 13 }, (_, k) => [1, 2, 2.5, 5].map((m) => m * 10 ** k)).flat();
const steps = scale.filter(Number.isInteger); // half a record would be written as one

const colour = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name);

function options(p: Props, width: number): uPlot.Options {
  const grid = { stroke: colour("--line"), width: 1 };
  const axis = { stroke: colour("--quiet"), grid, ticks: grid, font: "12px system-ui, sans-serif" };
  return {
    width,
    height,
    cursor: { y: false },
    legend: { show: true, live: true },
    scales: {
      x: { time: true, range: () => [now() / 1000 - span, now() / 1000] },
      y: { range: (_u, _low, high) => [0, high > 0 ? high * 1.1 : 1] },
    },
    axes: [
      { ...axis, values: (_u, at) => at.map(minute), space: 60 },
      { ...axis, values: (_u, at) => at.map(p.format), incrs: steps, size: 76, space: 36 },
    ],
    series: [
      { label: "at", value: (u, at) => newest(u, 0, at, (s) => new Date(s * 1000).toLocaleTimeString("en-GB")) },
      { label: p.name, stroke: colour("--accent"), fill: colour("--wash"), width: 2, points: { show: false }, value: (u, v) => newest(u, 1, v, p.format) },
    ],
  };
}

/** The value below the cursor; without one the newest. */
function newest(u: uPlot, row: number, at: number | null, format: (n: number) => string): string {
  const value = at ?? u.data[row]!.at(-1);
  return value === undefined || value === null ? "–" : format(value);
}

function points(p: Props, history: History | undefined): uPlot.AlignedData {
  const at: number[] = [];
  const values: (number | null)[] = [];
  for (const s of history?.items ?? []) {
    at.push(Date.parse(s.time) / 1000);
    values.push(s.value);
  }
  const last = at.at(-1) ?? 0;
  if (p.live) {
    for (const m of seen()) {
      if (m.at <= last) continue;
      const value = p.live(m);
      at.push(m.at);
      values.push(value < 0 ? null : value); // a lag that is not known is a gap
    }
  }
  return [at, values];
}

/** The last 15 minutes of a metric: of the route, or of one topic. */
export function Chart(p: Props): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const topic = p.topic === undefined ? "" : "&topic=" + encodeURIComponent(p.topic);
  const { data, fault } = usePoll<History>(`history?metric=${p.metric}&since=15m${topic}`, 10_000);
  const drawn = points(p, data);
  const at = drawn[0];
  useEffect(() => {
    const place = box.current!; // the reference is empty before this effect is cleaned up
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const draw = (): void => {
      plot.current?.destroy();
      plot.current = new uPlot(options(p, place.clientWidth), points(p, data), place);
    };
    const sizes = new ResizeObserver(() => plot.current?.setSize({ width: place.clientWidth, height }));
    draw();
    sizes.observe(place);
    dark.addEventListener("change", draw);
    return () => {
      sizes.disconnect();
      dark.removeEventListener("change", draw);
      plot.current?.destroy();
      plot.current = null;
    };
  }, [p.metric, p.topic]);
  useEffect(() => plot.current?.setData(drawn));
  const last = drawn[1]!.at(-1);
  return (
    <figure class="chart">
      <div ref={box} role="img" aria-label={`${p.name} over the last 15 minutes; now ${last === undefined || last === null ? "unknown" : p.format(last)}`} />
      {at.length < 2 && <figcaption class="quiet">{fault ? fault.message : "Samples are taken every 10 s; the first ones are awaited."}</figcaption>}
    </figure>
  );
}
