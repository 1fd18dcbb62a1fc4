import { Button, Group, Stack } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../api/client";
import { type Right, RIGHTS, type UserFacts } from "../api/types";
import { ErrorNotice } from "../parts/ErrorNotice";
import { RightsField } from "./RightsField";

/** The rights of a user, which can be changed. */
export function UserRights({ user }: { user: UserFacts }) {
  const cache = useQueryClient();
  const [draft, setDraft] = useState<Right[] | null>(null);
  const change = useMutation({
    mutationFn: (rights: Right[]) => api.patch(`/users/${encodeURIComponent(user.name)}`, { rights }),
    onSuccess: () => {
      setDraft(null);
      return cache.invalidateQueries({ queryKey: ["users"] });
    },
  });
  if (!draft) {
    return (
      <Group gap="xs">
        {RIGHTS.filter((each) => user.rights.includes(each)).join(", ") || <span className="quiet">none</span>}
        <Button size="compact-xs" variant="subtle" onClick={() => setDraft(user.rights)} aria-label={`Change the rights of ${user.name}`}>
          Change
        </Button>
      </Group>
    );
  }
  return (
    <Stack gap="xs">
      <RightsField label={`Rights of ${user.name}`} value={draft} onChange={setDraft} />
      <Group gap="xs">
        <Button size="xs" loading={change.isPending} onClick={() => change.mutate(draft)}>Save</Button>
        <Button size="xs" variant="subtle" onClick={() => setDraft(null)}>Cancel</Button>
      </Group>
      {change.isError && <ErrorNotice error={change.error} />}
    </Stack>
  );
}
