// Where the reader is: the part of the address behind #, so that every view can be linked to and the browser's back button works.
import { useEffect, useState } from "preact/hooks";

export interface Place {
  path: string[]; // decoded
  query: URLSearchParams;
}

function here(): Place {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { path: path.split("/").filter(Boolean).map(decode), query: new URLSearchParams(query) };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function usePlace(): Place {
  const [place, setPlace] = useState(here);
  useEffect(() => {
    const moved = (): void => setPlace(here());
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  return place;
}

/** Changes the query of this view; an empty value removes its key. Typing replaces the entry of the history, a choice adds one. */
export function setQuery(place: Place, changes: Record<string, string>, replace = false): void {
  const query = new URLSearchParams(place.query);
  for (const [key, value] of Object.entries(changes)) value === "" ? query.delete(key) : query.set(key, value);
  const text = query.toString();
  const hash = "#/" + place.path.map(encodeURIComponent).join("/") + (text && "?" + text);
  if (!replace) {
    location.hash = hash;
    return;
  }
  history.replaceState(null, "", hash);
  dispatchEvent(new HashChangeEvent("hashchange"));
}
