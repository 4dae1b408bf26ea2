"use strict";

const number = (n) => Math.round(n).toLocaleString("en");
const set = (id, text) => { document.getElementById(id).textContent = text; };

async function ask(path) {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(path + ": " + answer.status);
  return answer.json();
}

function row(topic) {
  const tr = document.createElement("tr");
  const states = Object.entries(topic.states).map(([state, n]) => n + " " + state).join(", ");
  for (const text of [topic.topic, topic.partition_count, states, number(topic.lag_records), number(topic.records_per_second)]) {
    const td = document.createElement("td");
    td.textContent = text;
    tr.append(td);
  }
  return tr;
}

async function refresh() {
  const state = document.getElementById("state");
  try {
    const [status, topics] = await Promise.all([ask("/api/v1/status"), ask("/api/v1/topics?sort=-lag_records")]);
    set("route", status.route.name + " · " + status.version);
    state.textContent = status.route.state + (status.route.reason ? ": " + status.route.reason : "");
    state.className = status.route.state;
    set("lag", number(status.route.lag_records));
    set("records", number(status.route.records_per_second) + " /s");
    set("bytes", (status.route.bytes_per_second / 1e6).toFixed(2) + " MB/s");
    document.getElementById("topics").replaceChildren(...topics.items.map(row));
  } catch (err) {
    state.textContent = "no answer: " + err.message;
    state.className = "degraded";
  }
  setTimeout(refresh, 2000);
}

refresh();
