// The changes that the page offers, each in words.
import type { Action } from "./action";
import { type Partition, partitionPath, type Status, topicPath } from "./api";

/** What this process lets people change. A worker changes nothing itself, and a controller that stands by sends writes elsewhere. */
export interface Powers {
  topics: boolean; // pause, resume, reset, retry
  fleet: boolean; // add, remove, move, drain
}

export const powers = (s: Status): Powers => ({
  topics: s.role === "standalone" || (s.role === "controller" && s.leader_address === ""),
  fleet: s.role === "controller" && s.leader_address === "",
});

export const pauseTopic = (topic: string): Action => ({
  title: `Pause ${topic}`,
  explain: "All its partitions stop where they are, and stay stopped over restarts until the topic is resumed. Lag grows meanwhile.",
  verb: "Pause",
  method: "POST",
  path: topicPath(topic) + "/pause",
  done: `${topic} is paused.`,
});

export const resumeTopic = (topic: string): Action => ({
  title: `Resume ${topic}`,
  explain: "Its partitions go on where they stopped. Those that were paused one by one stay paused.",
  verb: "Resume",
  method: "POST",
  path: topicPath(topic) + "/resume",
  done: `${topic} goes on.`,
});

export const addTopic = (): Action => ({
  title: "Add a topic",
  explain: "It is mirrored from now on: from its first record, or from where it stopped if it was mirrored before.",
  verb: "Add",
  method: "POST",
  path: "topics",
  fields: [
    { name: "topic", label: "Topic", required: true, hint: "Its name in the source cluster." },
    { name: "partitions", label: "Partitions", hint: "Empty: as many as the source has." },
  ],
  body: (v) => ({ topic: v["topic"], ...(v["partitions"] && { partitions: /^\d+$/.test(v["partitions"]) ? Number(v["partitions"]) : v["partitions"] }) }),
  done: "The topic is added.",
});

export const removeTopic = (topic: string): Action => ({
  title: `Remove ${topic}`,
  explain: "It is mirrored no longer. Its positions stay, so adding it again goes on from there; what the source deletes meanwhile is not copied.",
  verb: "Remove",
  grave: true,
  method: "DELETE",
  path: topicPath(topic),
  done: `${topic} is removed.`,
});

const named = (p: Partition): string => `${p.topic}-${p.partition}`;

export const pausePartition = (p: Partition): Action => ({
  title: `Pause ${named(p)}`,
  explain: "It stops where it is, and stays stopped over restarts until it is resumed.",
  verb: "Pause",
  method: "POST",
  path: partitionPath(p) + "/pause",
  done: `${named(p)} is paused.`,
});

export const resumePartition = (p: Partition): Action => ({
  title: `Resume ${named(p)}`,
  explain: "It goes on where it stopped, unless its topic is paused as a whole.",
  verb: "Resume",
  method: "POST",
  path: partitionPath(p) + "/resume",
  done: `${named(p)} goes on.`,
});

export const retryPartition = (p: Partition): Action => ({
  title: `Retry ${named(p)}`,
  explain: "It is tried at once. It is tried by itself every 10 s, too; what it needs must be mended first.",
  verb: "Retry",
  method: "POST",
  path: partitionPath(p) + "/retry",
  done: `${named(p)} is being tried.`,
});

export const resetPartition = (p: Partition): Action => ({
  title: `Reset ${named(p)}`,
  explain:
    `It is drained and begins anew at another position; now it is at ${p.acked}. What lies between is copied a second time if that is further back, ` +
    `and not at all if it is further on.`,
  verb: "Reset",
  grave: true,
  method: "POST",
  path: partitionPath(p) + "/reset",
  fields: [{ name: "to", label: "To", required: true, hint: "earliest, latest, an offset, or a time such as 2006-01-02T15:04:05Z" }],
  body: (v) => ({ to: v["to"] }),
  done: `${named(p)} will be reset; an event tells of it.`,
});

export const movePartition = (p: Partition, workers: string[]): Action => ({
  title: `Move ${named(p)}`,
  explain: `It is drained${p.worker && ` by ${p.worker}`}, goes to the worker that you choose and stays there. “Any” frees it: the controller decides again.`,
  verb: "Move",
  method: "POST",
  path: partitionPath(p) + "/move",
  fields: [{ name: "worker", label: "Worker", options: ["Any", ...workers] }],
  body: (v) => ({ worker: v["worker"] === "Any" ? "" : v["worker"] }),
  done: `${named(p)} will move.`,
});

export const drainWorker = (id: string): Action => ({
  title: `Drain ${id}`,
  explain: "Its partitions go to the other workers, and it gets no new ones until it is enabled again.",
  verb: "Drain",
  method: "POST",
  path: `workers/${encodeURIComponent(id)}/drain`,
  done: `${id} is being drained.`,
});

export const enableWorker = (id: string): Action => ({
  title: `Enable ${id}`,
  explain: "It takes its share of the partitions again.",
  verb: "Enable",
  method: "POST",
  path: `workers/${encodeURIComponent(id)}/enable`,
  done: `${id} gets its share again.`,
});

export const rebalance = (): Action => ({
  title: "Rebalance",
  explain: "The controller decides anew who mirrors what, and moves partitions if that makes the load more even.",
  verb: "Rebalance",
  method: "POST",
  path: "rebalance",
  done: "The controller has decided anew.",
});
