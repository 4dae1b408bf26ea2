// What changes something: asked back first, sent with the token if the server wants one, and its result shown.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Refusal, write } from "./api";
import { refresh } from "./live";

export interface Field {
  name: string;
  label: string;
  hint?: string;
  options?: string[]; // a choice of these
  required?: boolean;
}

export interface Action {
  title: string; // a question's worth: "Pause orders"
  explain: string; // what it does to the mirror
  verb: string; // on the button
  grave?: boolean; // it can't simply be undone
  method: "POST" | "PUT" | "DELETE";
  path: string;
  fields?: Field[];
  body?: (values: Record<string, string>) => unknown;
  done: string; // the result in words
}

let open: (a: Action) => void = () => undefined;
let say: (text: string) => void = () => undefined;
let token = ""; // in this page's memory and nowhere else: a reload forgets it

/** A button that asks whether to do something. */
export function Act({ label, action, of }: { label: string; action: () => Action; of?: string }): JSX.Element {
  return (
    <button type="button" aria-label={of === undefined ? undefined : `${label} ${of}`} onClick={() => open(action())}>
      {label}
    </button>
  );
}

/** The one dialogue, and the line that tells of results. Both are there once. */
export function Actions(): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const [action, setAction] = useState<Action | undefined>();
  const [fault, setFault] = useState("");
  const [asksToken, setAsksToken] = useState(false);
  const [busy, setBusy] = useState(false);
  const [told, setTold] = useState("");
  useEffect(() => {
    let fade: ReturnType<typeof setTimeout> | undefined;
    say = (text) => {
      clearTimeout(fade);
      setTold(text);
      fade = setTimeout(() => setTold(""), 8000);
    };
    open = (a) => {
      setAction(a);
      setFault("");
      setAsksToken(false);
      dialog.current?.showModal();
    };
    return () => clearTimeout(fade);
  }, []);

  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    if (!action || busy) return;
    const given = Object.fromEntries([...new FormData(event.target as HTMLFormElement)].map(([k, v]) => [k, String(v).trim()]));
    if (given["token"]) token = given["token"];
    setBusy(true);
    setFault("");
    try {
      await write(action.method, action.path, action.body?.(given), token);
      dialog.current?.close();
      say(action.done);
      refresh();
    } catch (err) {
      const refusal = err as Refusal;
      if (refusal.status === 401) {
        setAsksToken(true);
        setFault(token === "" ? "This server changes nothing without its token." : "The server does not take this token.");
        token = "";
      } else {
        setFault(refusal.status === 0 ? `Not known whether it was done: ${refusal.message}.` : `Refused (${refusal.status}): ${refusal.message}`);
      }
    } finally {
      setBusy(false);
    }
  };

  return (
    <>
      <dialog ref={dialog} aria-labelledby="act-title" onClose={() => setAction(undefined)}>
        {action && (
          <form onSubmit={(e) => void submit(e)}>
            <h2 id="act-title">{action.title}?</h2>
            <p>{action.explain}</p>
            {action.fields?.map((f) => (
              <Input key={f.name} of={f} />
            ))}
            {asksToken && <Input of={{ name: "token", label: "Token", required: true, hint: "Kept until this page is closed or loaded anew." }} secret />}
            <p class="fault" role="alert">
              {fault}
            </p>
            <div class="buttons">
              <button type="button" onClick={() => dialog.current?.close()}>
                Cancel
              </button>
              <button type="submit" class={action.grave ? "grave" : "main"} disabled={busy}>
                {busy ? "Asking …" : action.verb}
              </button>
            </div>
          </form>
        )}
      </dialog>
      <p class="told" role="status">
        {told}
      </p>
    </>
  );
}

function Input({ of: f, secret }: { of: Field; secret?: boolean }): JSX.Element {
  const id = "field-" + f.name;
  return (
    <div class="field">
      <label for={id}>{f.label}</label>
      {f.options ? (
        <select id={id} name={f.name}>
          {f.options.map((o) => (
            <option key={o}>{o}</option>
          ))}
        </select>
      ) : secret ? (
        <input id={id} name={f.name} type="password" autocomplete="off" required={f.required ?? false} aria-describedby={id + "-hint"} />
      ) : (
        <input id={id} name={f.name} autocomplete="off" spellcheck={false} required={f.required ?? false} aria-describedby={id + "-hint"} />
      )}
      {f.hint && <small id={id + "-hint"}>{f.hint}</small>}
    </div>
  );
}
