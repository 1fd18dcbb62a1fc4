import { Checkbox, Fieldset, NativeSelect, NumberInput, PasswordInput, Stack, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import { InlineCode } from "../parts/InlineCode";
import { type Field, isSet, type Values } from "./schema";

interface Props { field: Field; value: unknown; onChange: (value: unknown) => void }

/** An option of a connector, by the kind of its values. A secret that is set is never shown. */
export function OptionField({ field, value, onChange }: Props) {
  const description = field.description ? <InlineCode text={field.description} /> : undefined;
  const shared = { label: field.name, description, required: field.required };
  const text = typeof value === "string" || typeof value === "number" ? String(value) : "";
  switch (field.kind) {
    case "group":
      return <Group field={field} value={(value ?? {}) as Values} onChange={onChange} />;
    case "secret":
      return <PasswordInput {...shared} required={field.required && !isSet(value)} autoComplete="new-password" value={text} placeholder={isSet(value) ? "set; leave empty to keep it" : ""} onChange={(event) => onChange(event.currentTarget.value || { set: true })} />;
    case "switch":
      return <Checkbox label={field.name} description={description} checked={(value ?? field.byDefault === "true") === true} onChange={(event) => onChange(event.currentTarget.checked)} />;
    case "choice":
      return <NativeSelect {...shared} value={text} data={[{ value: "", label: field.byDefault ? `default: ${field.byDefault}` : "–" }, ...field.choices]} onChange={(event) => onChange(event.currentTarget.value)} />;
    case "number":
      return <NumberInput {...shared} value={text} placeholder={field.byDefault} onChange={(next) => onChange(next)} />;
    case "json":
      return <JsonField field={field} value={value} onChange={onChange} />;
    default:
      return <TextInput {...shared} value={text} placeholder={field.byDefault} onChange={(event) => onChange(event.currentTarget.value)} />;
  }
}

function Group({ field, value, onChange }: { field: Field; value: Values; onChange: (value: Values) => void }) {
  return (
    <Fieldset legend={field.name} variant="default">
      <Stack gap="sm">
        {field.fields.map((each) => (
          <OptionField key={each.name} field={{ ...each, required: false }} value={value[each.name]} onChange={(next) => onChange({ ...value, [each.name]: next })} />
        ))}
      </Stack>
    </Fieldset>
  );
}

function JsonField({ field, value, onChange }: Props) {
  const [text, setText] = useState(value === undefined ? "" : JSON.stringify(value, null, 2));
  const [wrong, setWrong] = useState(false);
  function read(next: string): void {
    setText(next);
    try {
      onChange(next.trim() ? JSON.parse(next) : undefined);
      setWrong(false);
    } catch {
      setWrong(true);
    }
  }
  return <Textarea label={field.name} description={<InlineCode text={field.description || "as JSON"} />} required={field.required} autosize minRows={2} className="mono" error={wrong && "expected JSON"} value={text} onChange={(event) => read(event.currentTarget.value)} />;
}
