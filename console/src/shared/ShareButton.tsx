import { Button, Group, NativeSelect, Popover, Stack } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Once } from "../admin/Once";
import { api } from "../api/client";
import { pipelinePath } from "../api/queries";
import { ErrorNotice } from "../parts/ErrorNotice";
import { Time } from "../parts/Time";

interface Share { id: string; letter: string | null; author: string; time: string; expires: string }

/** A button that creates and revokes links of a pipeline, or of one of its dead letters. */
export function ShareButton({ id, letter }: { id: string; letter?: string }) {
  const path = `${pipelinePath(id)}/shares`;
  const cache = useQueryClient();
  const [open, setOpen] = useState(false);
  const [days, setDays] = useState("7");
  const shares = useQuery({ queryKey: ["shares", id], queryFn: () => api.get<Share[]>(path), enabled: open });
  const refresh = () => cache.invalidateQueries({ queryKey: ["shares", id] });
  const create = useMutation({ mutationFn: () => api.post<Share & { token: string }>(path, { letter, days: Number(days) }), onSuccess: refresh });
  const revoke = useMutation({ mutationFn: (share: string) => api.delete(`${path}/${share}`), onSuccess: refresh });
  const known = shares.data?.filter((each) => (each.letter ?? undefined) === letter) ?? [];
  return (
    <Popover opened={open} onChange={setOpen} position="bottom-end" width={380} trapFocus withinPortal>
      <Popover.Target>
        <Button size={letter ? "xs" : "sm"} variant="default" onClick={() => setOpen(!open)}>Share</Button>
      </Popover.Target>
      <Popover.Dropdown aria-label="Share">
        <Stack gap="sm">
          <span>{letter ? "A link shows this dead letter with its payload" : "A link shows states and numbers without texts and rows"}, to everyone who has it.</span>
          <Group gap="xs" align="end">
            <NativeSelect label="Lifetime of the link" value={days} onChange={(event) => setDays(event.currentTarget.value)} data={[{ value: "1", label: "1 day" }, { value: "7", label: "7 days" }, { value: "30", label: "30 days" }]} />
            <Button loading={create.isPending} onClick={() => create.mutate()}>Create link</Button>
          </Group>
          {create.isError && <ErrorNotice error={create.error} />}
          {create.data && <Once title="The link, which is shown only now" text={`${window.location.origin}/shared#token=${create.data.token}`} />}
          {known.map((each) => (
            <Group key={each.id} justify="space-between" gap="xs">
              <span className="quiet">by {each.author}, expires <Time at={each.expires} /></span>
              <Button size="xs" variant="subtle" onClick={() => revoke.mutate(each.id)}>Revoke</Button>
            </Group>
          ))}
          {revoke.isError && <ErrorNotice error={revoke.error} />}
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}
