import { SegmentedControl } from "@mantine/core";
import { useState } from "react";
import type { Letter } from "../../api/types";
import { bytes } from "../../format/numbers";
import classes from "./Letters.module.css";

/** The payload of a dead letter as JSON, text or hexadecimal digits. */
export function Payload({ letter }: { letter: Letter }) {
  const json = pretty(letter.payload);
  const hex = letter.payload_hex ?? toHex(letter.payload);
  const views = [...(json ? ["JSON"] : []), ...(letter.payload !== null ? ["Text"] : []), ...(hex ? ["Hex"] : [])];
  const [view, setView] = useState(views[0]);
  if (!views.length) return <p className="quiet">The dead letter has no payload.</p>;
  const text = view === "JSON" ? json : view === "Text" ? letter.payload : grouped(hex);
  return (
    <div className={classes.payload}>
      <div className={classes.views}>
        <SegmentedControl size="xs" aria-label="View of the payload" value={view} onChange={setView} data={views} />
        <span className="quiet">{bytes(hex.length / 2)}</span>
      </div>
      <pre tabIndex={0}>{text}</pre>
    </div>
  );
}

function pretty(payload: string | null): string | null {
  try {
    return payload === null ? null : JSON.stringify(JSON.parse(payload), null, 2);
  } catch {
    return null;
  }
}

function toHex(payload: string | null): string {
  return [...new TextEncoder().encode(payload ?? "")].map((each) => each.toString(16).padStart(2, "0")).join("");
}

function grouped(hex: string): string {
  return (hex.match(/.{1,64}/g) ?? []).map((line) => (line.match(/../g) ?? []).join(" ")).join("\n");
}
