import { Button, Group, TextInput } from "@mantine/core";
import { useState } from "react";

interface Props { name: string; busy: boolean; onReset: () => void }

/** Applies a text and resets the state. The name of the pipeline must be typed. */
export function ResetState({ name, busy, onReset }: Props) {
  const [typed, setTyped] = useState("");
  return (
    <Group gap="xs" mt={8} align="end">
      <TextInput size="xs" label={`Or reset the state: offsets, open windows and dead letters are lost. Type ${name} to confirm.`} value={typed} onChange={(event) => setTyped(event.currentTarget.value)} />
      <Button size="xs" color="red.8" disabled={typed !== name} loading={busy} onClick={onReset}>
        Reset the state and apply
      </Button>
    </Group>
  );
}
