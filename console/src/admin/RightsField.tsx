import { Checkbox, Stack } from "@mantine/core";
import { type Right, RIGHTS } from "../api/types";

const MEANING: Record<Right, string> = {
  view: "health, texts and versions", data: "logs and dead letters", operate: "start, stop and replay",
  edit: "check and apply; may run code with the rights of the server", admin: "users and audit, and all other rights",
};

interface Props { label: string; value: Right[]; of?: Right[]; onChange: (value: Right[]) => void }

/** A choice of rights. */
export function RightsField({ label, value, of = RIGHTS, onChange }: Props) {
  return (
    <Checkbox.Group label={label} value={value} onChange={(next) => onChange(next as Right[])}>
      <Stack gap={6} mt={6}>
        {of.map((right) => <Checkbox key={right} size="xs" value={right} label={<><strong>{right}</strong> <span className="quiet">{MEANING[right]}</span></>} />)}
      </Stack>
    </Checkbox.Group>
  );
}
