import { Button, Group, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useLocation } from "wouter";
import { api } from "../api/client";
import { pipelinePath } from "../api/queries";
import type { Summary } from "../api/types";
import { ErrorNotice } from "../parts/ErrorNotice";

/** Deletes a stopped pipeline after its name is typed. Its state directory remains. */
export function DeletePipeline({ pipeline }: { pipeline: Summary }) {
  const [, navigate] = useLocation();
  const [typed, setTyped] = useState<string | null>(null);
  const remove = useMutation({
    mutationFn: () => api.delete(pipelinePath(pipeline.id)),
    onSuccess: () => navigate("/"),
  });
  if (typed === null) {
    return (
      <Button variant="subtle" color="gray" onClick={() => setTyped("")}>
        Delete
      </Button>
    );
  }
  function submit(event: FormEvent): void {
    event.preventDefault();
    remove.mutate();
  }
  return (
    <form onSubmit={submit}>
      <Group gap="xs" align="end">
        <TextInput size="xs" label={`Type ${pipeline.name} to delete it`} autoFocus value={typed} onChange={(event) => setTyped(event.currentTarget.value)} />
        <Button size="xs" type="submit" color="red.8" disabled={typed !== pipeline.name} loading={remove.isPending}>
          Delete
        </Button>
        <Button size="xs" variant="subtle" onClick={() => setTyped(null)}>
          Cancel
        </Button>
      </Group>
      {remove.isError && <ErrorNotice error={remove.error} />}
    </form>
  );
}
