import { Button, Group } from "@mantine/core";
import { Link } from "wouter";
import type { Letter, Letters } from "../../api/types";
import classes from "./Letters.module.css";

interface Props { id: string; letter: Letter; text: string | null; place: Letters["places"][string] | undefined; mayEdit: boolean }

const CONTEXT = 5;

/** The lines of the node on which the record failed, and the way to mend them. */
export function FailingLine({ id, letter, text, place, mayEdit }: Props) {
  const lines = place && text !== null ? excerpt(text, place.line) : [];
  const search = new URLSearchParams({ letter: letter.id, ...(place ? { line: String(place.line) } : {}) });
  return (
    <div className={classes.failing}>
      {lines.length > 0 && (
        <pre tabIndex={0} aria-label={`Lines of ${letter.node}`}>
          {lines.map(([number, line]) => (
            <div key={number} data-failing={number === place?.line || undefined}>
              <span>{number}</span>{line}
            </div>
          ))}
        </pre>
      )}
      {mayEdit && (
        <Group gap="xs">
          <Button component={Link} size="xs" href={`/pipelines/${id}/editor?${search}`}>Mend and test on this letter</Button>
        </Group>
      )}
    </div>
  );
}

function excerpt(text: string, line: number): [number, string][] {
  return text.split("\n").slice(line - 1, line + CONTEXT).map((each, index) => [line + index, each]);
}
