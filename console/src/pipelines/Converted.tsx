import { Button } from "@mantine/core";
import type { Problem } from "../api/types";
import { CodeEditor } from "../pipeline/editor/CodeEditor";
import classes from "./Converted.module.css";

export interface Conversion { language: string; text: string }
interface Props { conversion: Conversion; onUse: () => void }

const SYSTEMS: Record<string, string> = {
  arkflow: "ArkFlow", arroyo: "Arroyo", streamling: "Streamling", stream_data_processor: "stream-data-processor", sql: "SQL",
};
const NONE: Problem[] = [];
const nothing = () => {};

/** Whether a text is of another system, whose YAML is worth a look. */
export const isForeign = ({ language }: Conversion): boolean => language !== "yaml";

export const systemOf = (language: string): string => SYSTEMS[language] ?? language;

/** The text of another system as YAML, beside the text. */
export function Converted({ conversion, onUse }: Props) {
  return (
    <section className="surface" aria-label="The text as YAML">
      <div className={classes.head}>
        <strong>As YAML</strong>
        <Button size="xs" variant="default" onClick={onUse}>Use this text</Button>
      </div>
      <div className={classes.text}>
        <CodeEditor label="The text as YAML" language="yaml" text={conversion.text} readOnly errors={NONE} warnings={NONE} onChange={nothing} />
      </div>
    </section>
  );
}
