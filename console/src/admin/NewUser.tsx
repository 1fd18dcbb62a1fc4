import { Button, Stack, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api } from "../api/client";
import type { Right } from "../api/types";
import { ErrorNotice } from "../parts/ErrorNotice";
import { Once } from "./Once";
import { RightsField } from "./RightsField";

/** A form for a new user, whose first login is by an address with a code. */
export function NewUser() {
  const cache = useQueryClient();
  const [name, setName] = useState("");
  const [rights, setRights] = useState<Right[]>(["view"]);
  const create = useMutation({
    mutationFn: () => api.post<{ name: string; code: string | null }>("/users", { name, rights }),
    onSuccess: () => {
      setName("");
      return cache.invalidateQueries({ queryKey: ["users"] });
    },
  });

  function submit(event: FormEvent): void {
    event.preventDefault();
    create.mutate();
  }

  return (
    <form className="surface" onSubmit={submit} style={{ padding: 16 }}>
      <Stack gap="sm" maw={560}>
        <h2 style={{ margin: 0, fontSize: 16 }}>New user</h2>
        <TextInput label="Name" required maxLength={64} value={name} onChange={(event) => setName(event.currentTarget.value)} />
        <RightsField label="Rights" value={rights} onChange={setRights} />
        <div><Button type="submit" loading={create.isPending} disabled={!name}>Create</Button></div>
        {create.isError && <ErrorNotice error={create.error} />}
        {create.data?.code && (
          <Once title={`${create.data.name} logs in with this address, once within 15 minutes`} text={`${window.location.origin}/login#code=${create.data.code}`} />
        )}
      </Stack>
    </form>
  );
}
