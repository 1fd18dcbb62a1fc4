import { Checkbox, Group } from "@mantine/core";
import { type Right, RIGHTS } from "../api/types";

const MEANING: Record<Right, string> = {
  view: "health, texts, versions", data: "rows: logs, dead letters", operate: "start, stop, replay",
  edit: "texts; may run code as the server", admin: "users, audit, all rights",
};

interface Props { label: string; value: Right[]; of?: Right[]; onChange: (value: Right[]) => void }

/** A choice of rights. */
export function RightsField({ label, value, of = RIGHTS, onChange }: Props) {
  return (
    <Checkbox.Group label={label} value={value} onChange={(next) => onChange(next as Right[])}>
      <Group gap="md" mt={6}>
        {of.map((right) => <Checkbox key={right} size="xs" value={right} label={right} title={MEANING[right]} />)}
      </Group>
    </Checkbox.Group>
  );
}
