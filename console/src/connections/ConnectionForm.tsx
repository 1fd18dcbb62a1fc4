import { Button, Group, NativeSelect, Stack, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api } from "../api/client";
import { ErrorNotice } from "../parts/ErrorNotice";
import { Loading } from "../parts/Loading";
import { Notice } from "../parts/Notice";
import { useMay } from "../session/SessionProvider";
import { type Connection, type Permissions, type Tested, useConnectorTypes, useSave, useSchema } from "./connections";
import { OptionField } from "./OptionField";
import { PermissionFields } from "./PermissionFields";
import { compact, type Field, fieldsOf, isImportant, type Values } from "./schema";

const ALL: Permissions = { users: null, pipelines: null, right: "edit" };

/** The form of a connection, made from the schema of its connector. */
export function ConnectionForm({ connection, onDone }: { connection?: Connection; onDone: () => void }) {
  const admin = useMay("admin");
  const types = useConnectorTypes();
  const [name, setName] = useState(connection?.name ?? "");
  const [type, setType] = useState(connection?.type ?? "");
  const [options, setOptions] = useState<Values>(connection?.options ?? {});
  const [permissions, setPermissions] = useState(connection?.permissions ?? ALL);
  const schema = useSchema(type);
  const save = useSave(connection !== undefined);
  const test = useMutation({
    mutationFn: () => api.post<Tested>("/connections/test", { type, connection: compact(options) }),
  });
  const fields = schema.data ? fieldsOf(schema.data.source ?? schema.data.sink ?? {}) : [];

  function submit(event: FormEvent): void {
    event.preventDefault();
    save.mutate({ name, type, options: compact(options), permissions: admin ? permissions : undefined }, { onSuccess: onDone });
  }

  return (
    <form className="surface" onSubmit={submit} style={{ padding: 16 }} aria-label={connection ? `Connection ${connection.name}` : "New connection"}>
      <Stack gap="sm" maw={640}>
        <h2 style={{ margin: 0, fontSize: 16 }}>{connection ? connection.name : "New connection"}</h2>
        {!connection && <TextInput label="Name" description="Pipelines use the connection by this name." required maxLength={64} value={name} onChange={(event) => setName(event.currentTarget.value)} />}
        {!connection && <NativeSelect label="Connector" required value={type} onChange={(event) => { setType(event.currentTarget.value); setOptions({}); }} data={[{ value: "", label: "Choose a connector" }, ...(types.data ?? [])]} />}
        {schema.isLoading && <Loading />}
        {schema.isError && <ErrorNotice error={schema.error} />}
        <Options fields={fields} options={options} onChange={setOptions} />
        {admin && type && <PermissionFields value={permissions} onChange={setPermissions} />}
        <Group gap="xs">
          <Button type="submit" loading={save.isPending} disabled={!name || !type}>{connection ? "Save" : "Create"}</Button>
          {!connection && <Button variant="default" loading={test.isPending} disabled={!type} onClick={() => test.mutate()}>Test</Button>}
          <Button variant="subtle" onClick={onDone}>Cancel</Button>
        </Group>
        {save.isError && <ErrorNotice error={save.error} />}
        {test.isError && <ErrorNotice error={test.error} />}
        {test.data && <TestResult result={test.data} />}
      </Stack>
    </form>
  );
}

export function TestResult({ result }: { result: Tested }) {
  return (
    <Notice tone="good" title="The connection works" role="status">
      {result.tables !== null && `${result.tables} tables`}
    </Notice>
  );
}

/** The options that a connection needs or has, and a choice of the others. */
function Options({ fields, options, onChange }: { fields: Field[]; options: Values; onChange: (options: Values) => void }) {
  const [added, setAdded] = useState<string[]>([]);
  const visible = fields.filter((each) => isImportant(each) || each.name in options || added.includes(each.name));
  const others = fields.filter((each) => !visible.includes(each)).map((each) => each.name);
  return (
    <>
      {visible.map((field) => (
        <OptionField key={field.name} field={field} value={options[field.name]} onChange={(value) => onChange({ ...options, [field.name]: value })} />
      ))}
      {others.length > 0 && (
        <NativeSelect label="Further option" value="" onChange={(event) => setAdded([...added, event.currentTarget.value])} data={[{ value: "", label: "Choose an option to add" }, ...others]} />
      )}
    </>
  );
}
