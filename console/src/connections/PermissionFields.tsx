import { Fieldset, MultiSelect, NativeSelect, Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { api } from "../api/client";
import type { UserFacts } from "../api/types";
import { useLive } from "../live/LiveProvider";
import type { Permissions } from "./connections";

/** Who may use a connection: users, pipelines, and the right that users need. */
export function PermissionFields({ value, onChange }: { value: Permissions; onChange: (value: Permissions) => void }) {
  const { pipelines } = useLive();
  const users = useQuery({ queryKey: ["users"], queryFn: () => api.get<UserFacts[]>("/users") });
  const known = [...(pipelines?.values() ?? [])].map((each) => ({ value: each.id, label: each.name }));
  const chosen = (names: string[]) => (names.length ? names : null);
  return (
    <Fieldset legend="Permissions">
      <Stack gap="sm">
        <NativeSelect label="Users need the right" value={value.right} data={["edit", "admin"]} onChange={(event) => onChange({ ...value, right: event.currentTarget.value as Permissions["right"] })} />
        <MultiSelect label="Users" placeholder={value.users ? undefined : "all users"} searchable data={users.data?.map((each) => each.name) ?? []} value={value.users ?? []} onChange={(names) => onChange({ ...value, users: chosen(names) })} />
        <MultiSelect label="Pipelines" placeholder={value.pipelines ? undefined : "all pipelines"} searchable data={known} value={value.pipelines ?? []} onChange={(ids) => onChange({ ...value, pipelines: chosen(ids) })} />
      </Stack>
    </Fieldset>
  );
}
